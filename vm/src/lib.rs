//! VMs in processes, and attribution: from what was sampled to the frames that a profile shows.
//!
//! Each kind of VM is a folder (`art`, `dalvik`, `shadow`, `hotspot`) with one [`VmKind`], which recognises it in a process, and one
//! [`Vm`], which answers what attribution asks.
//!
//! | question | file |
//! |---|---|
//! | which kinds are there, what does each answer | [`VmKinds`], [`VmKind`], [`Vm`] |
//! | which VM does a process have | `find` |
//! | which layout does a library of ART have that no table knows | [`LibraryLayout`], `art_layout` |
//! | what is known of it, whatever its kind | [`VmFacts`] |
//! | what is known of a process with a VM | [`ManagedProcess`] |
//! | what does a method pointer stand for | [`Method`], `dex` |
//! | which frames does a sample show | [`attribution`] |
//! | which of them are those of the thread's last sample | `callchain_cache` |
//! | which of them lie elsewhere than on the stack | `stack_positions` |
//! | what do an interpreter loop's registers say | `interpreter_loop`, `executed`, `handlers` |
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

// The tests of another crate use these tests' world.
#[cfg(test)]
extern crate self as varid_vm;

mod art;
mod art_layout;
pub mod attribution;
mod callchain_cache;
mod code_kind;
mod dalvik;
mod dex;
mod executed;
mod facts;
mod find;
#[doc(hidden)]
pub mod fuzzing;
mod handlers;
pub mod hotspot;
mod interpreter_loop;
mod kind;
mod kinds;
mod managed_process;
mod method;
mod quick_code;
mod shadow;
mod stack_copy;
mod stack_positions;
#[doc(hidden)]
pub mod testing;
mod unwound_stacks;

pub use art_layout::{Check, Checks, LayoutError, LibraryLayout, SelfPointer};
pub use code_kind::CodeKind;
pub use facts::{KnownBy, VmFacts};
pub use find::without_layout;
pub use kind::{CodeChange, LeafMethod, ManagedStack, MergeOrder, Methods, Unwound, Vm, VmKind};
pub use kinds::VmKinds;
pub use managed_process::ManagedProcess;
pub use method::Method;
