//! Executes a program for RISC-V on this machine, and counts what it executes by calling context.
//!
//! | question | file |
//! |---|---|
//! | what does a program get: memory, arguments, a heap | `machine` |
//! | which memory is there | `memory` |
//! | which registers are there | `hart`, `control_registers` |
//! | which system calls are there | `system` |
//! | what does an instruction do | `execute` |
//! | which instructions are executed one behind the other | `block` |
//! | which function is an address in | `functions` |
//! | which calling contexts are there | `context`, `call_stack` |
//! | what was counted | `counts` |
//! | what executes it | `interpreter` |
//! | what is told to models of the processor | `observer` |
//! | what does each instruction take | `timing` |
//! | why does it stop | `fault` |
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod block;
mod call_stack;
mod context;
mod control_registers;
mod counts;
mod execute;
mod fault;
mod functions;
mod hart;
mod interpreter;
mod machine;
mod memory;
mod observer;
mod system;
mod timing;

pub use block::{Block, Exit, Link, MAX_LENGTH};
pub use call_stack::{Call, CallStack};
pub use context::{Context, ContextId, Contexts};
pub use counts::{BlockId, Cell, CellId, Counts};
pub use fault::{Cause, Fault, Stop};
pub use functions::Functions;
pub use hart::Hart;
pub use interpreter::Interpreter;
pub use machine::{Limits, LoadError, Machine};
pub use memory::{Memory, MemoryAccess, MemoryFault, Stored};
pub use observer::{InstructionClock, Observer};
pub use system::{Streams, System, UnknownCall};
pub use timing::{Cost, Elsewhere, Timing};
