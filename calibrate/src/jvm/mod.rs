//! Units of Java's bytecode, as class files.
//!
//! | question | file |
//! |---|---|
//! | what distinguishes instructions | `opcode` |
//! | how is an instruction written, and what is its key | `instruction` |
//! | what is a unit, and how is it repeated | `unit` |
//! | which units are there | `catalogue`, `objects`, `mixed` |
//! | how is a timed method written | `timed_method` |
//! | what do calls, fields and the clocks need | `fixture` |
//! | which class calls the timed methods | `main_class` |
//! | how does all that become a program | `build` |

mod build;
mod catalogue;
mod fixture;
mod instruction;
mod main_class;
mod mixed;
mod objects;
mod opcode;
mod timed_method;
mod unit;

pub use build::java_program;
