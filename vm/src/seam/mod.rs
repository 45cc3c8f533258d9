//! The seam between varid and a VM: what a kind of VM answers, and what it answers with. Nothing here knows a VM.
//!
//! | question | file |
//! |---|---|
//! | which kinds are looked for, is one in this process | [`VmKind`], [`VmKinds`], [`Found`] |
//! | what does the VM of a process answer, and whom | [`Vm`] |
//! | what is asked about a sample, and what is the answer | [`Unwound`], [`ManagedStack`], [`FrameMethods`] |
//! | what does a stretch of a VM's code do | [`CodeKind`] |
//! | what does a method pointer stand for | [`Method`], [`Methods`] |
//! | which part of the stack was copied, which frames lie elsewhere | `stack_copy`, `stack_positions` |

mod code_kind;
mod kind;
mod method;
mod sample;
pub(crate) mod stack_copy;
pub(crate) mod stack_positions;
mod vm;

pub use code_kind::CodeKind;
pub use kind::{Found, LayoutReport, LibraryReport, VmKind, VmKinds};
pub use method::{Method, Methods};
pub use sample::{FrameMethods, LeafMethod, ManagedStack, MergeOrder, Unwound};
pub use vm::{
    Agent, CodeChange, Refreshed, Vm, VmAbout, VmChanges, VmCode, VmCompiler, VmFrames, VmMethods,
    VmTarget, WalkedCompiledFrame,
};
