//! A kind of VM that varid does not know: stackvm, whose frames have their method at the stack pointer and no links, and whose
//! bytecode is a format of its own.
//!
//! All that varid needs to know of it is here: one [`VmKind`](varid_vm::VmKind), one [`Vm`](varid_vm::Vm), one
//! [`BytecodeFormat`](varid_process::BytecodeFormat).
#![forbid(unsafe_code)]

mod image;
mod kind;

pub use kind::StackVm;
