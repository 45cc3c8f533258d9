//! A kind of VM that varid does not know: stackvm, whose frames have their method at the stack pointer and no links, and whose
//! bytecode is a format of its own.
//!
//! All that varid needs to know of it is here: one [`DescribedKind`](varid_vm::described::DescribedKind), one
//! [`Vm`](varid_vm::seam::Vm), one
//! [`BytecodeFormat`](varid_process::BytecodeFormat).
#![forbid(unsafe_code)]

mod image;
mod kind;

pub use kind::StackVm;
