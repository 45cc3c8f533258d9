//! The interface between varid and a VM. Nothing here depends on a particular VM.
//!
//! | type | purpose |
//! |---|---|
//! | [`VmKind`], [`VmKinds`], [`Found`] | finds a VM in a process |
//! | [`Vm`] | the VM of one process: its code, frames and methods |
//! | [`Unwound`], [`ManagedStack`], [`FrameMethods`] | a sample as a VM gets it, and the frames it returns |
//! | [`CodeKind`] | what a range of a VM's code does |
//! | [`Method`], [`MethodInMemory`], [`Methods`] | what a method pointer stands for |
//! | `stack_copy`, `stack_positions` | the copied part of the stack; frames that lie elsewhere |

mod code_kind;
mod kind;
mod method;
mod sample;
pub(crate) mod stack_copy;
pub(crate) mod stack_positions;
mod vm;

pub use code_kind::CodeKind;
pub use kind::{
    Found, LayoutReport, LibraryReport, ProcessReport, SelfDescription, VmKind, VmKinds,
};
pub use method::{Method, MethodInMemory, Methods};
pub use sample::{FrameMethods, LeafMethod, ManagedStack, MergeOrder, Unwound};
pub use vm::{
    Agent, CodeChange, ExecutedCode, Refreshed, Vm, VmAbout, VmChanges, VmCode, VmCompiler,
    VmFrames, VmMethods, VmTarget, WalkedCompiledFrame,
};
