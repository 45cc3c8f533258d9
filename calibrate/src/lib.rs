//! Measures what each bytecode costs on a VM, as a black box, with a confidence interval.
//!
//! A program of *units*, short sequences of instructions that are repeated, times itself on the VM. A unit's time is the difference of a run with
//! many repetitions and one with few. What each instruction costs is solved for from all units together: their times are sums of their
//! instructions' costs. Several VMs are started one after the other, because where code lies, and what the processor predicts, differs from one to
//! the next more than within one.
//!
//! | question | file |
//! |---|---|
//! | which clocks are there | `clock` |
//! | which instructions does a piece of code execute | `tally` |
//! | what is executed on a VM, in any format | `program` |
//! | which units are measured, how often is one repeated | `selection`, `repetition` |
//! | what units of both formats have in common | `mixed`, `outcome` |
//! | units of Java's bytecode, of dex code | `jvm`, `dex`: folders |
//! | how is a VM started, and asked | `vm_command`, `vm_process` |
//! | when is what measured | `measure` |
//! | what does one repetition take | `slopes`, `quantile` |
//! | what does each instruction cost, alone and beside others | `solve`, `equations`, `least_squares` |
//! | how are costs distributed, and how do two clocks agree | `distribution` |
//! | what is printed, what is written | `summary`, `table` |
//! | why did it fail | `error` |
//!
//! ```
//! use varid_calibrate::{Clock, Selection, java_program};
//!
//! let only = Selection::Only(vec!["iadd".to_owned()]);
//! let program = java_program(&only, &[Clock::Nano])?;
//! // iadd, what pushes its operands, and what removes them.
//! assert!(program.timers.iter().any(|timer| timer.unit == "iadd"));
//! # Ok::<(), varid_calibrate::Error>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod clock;
mod dex;
mod distribution;
mod equations;
mod error;
mod jvm;
mod least_squares;
mod measure;
mod mixed;
mod outcome;
mod program;
mod quantile;
mod repetition;
mod selection;
mod slopes;
mod solve;
mod summary;
mod table;
mod tally;
mod vm_command;
mod vm_process;

pub use clock::Clock;
pub use dex::dex_program;
pub use distribution::{Agreement, Quartiles, clusters};
pub use error::{Error, Result};
pub use jvm::java_program;
pub use measure::{Setup, measure, write_program};
pub use program::{MethodNumber, Program, ProgramFile, Run, Shape, Timer, UnitKind, Unseparated};
pub use selection::Selection;
pub use slopes::{Launch, Round, slope};
pub use solve::{CONFIDENCE, Cost, Costs, Origin, Solved, solve};
pub use summary::Summary;
pub use table::{Provenance, write_table};
pub use tally::{CostKey, Tally};
pub use vm_command::{ArtInterpreter, CodeFormat, VmCommand};
