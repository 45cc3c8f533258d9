//! Units of dex code, as a dex file.
//!
//! A register has one type and, unless it is a result, one value in all units. So any instructions can follow each other.
//!
//! | question | file |
//! |---|---|
//! | which registers are there | `registers` |
//! | how are operands packed | `encode` |
//! | how is an instruction written, and what is its key | `instruction` |
//! | what do calls, fields, clocks and requests need | `fixture` |
//! | what is a unit | `unit` |
//! | which units are there | `catalogue`, `objects`, `mixed` |
//! | how is a timed method written | `timed_method` |
//! | which class calls the timed methods | `main_class` |
//! | how does all that become a program | `build` |

mod build;
mod catalogue;
mod encode;
mod fixture;
mod instruction;
mod main_class;
mod mixed;
mod objects;
mod registers;
mod timed_method;
mod unit;

pub use build::dex_program;
