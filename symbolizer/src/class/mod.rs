//! Java's class files, and how they name methods.
//!
//! | question | file |
//! |---|---|
//! | which types does a method's descriptor name | `descriptor` |

mod descriptor;

pub use descriptor::parameters;
