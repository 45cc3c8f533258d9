//! Native methods of the programs of `varid calibrate`.
//!
//! | question | file |
//! |---|---|
//! | what is the time, by the processor's counter | `counter` |
//! | what does varid ask a program of dex code, and how is it answered | `requests` |

mod counter;
mod requests;
