//! VMs in processes, and attribution: from what was sampled to the frames that a profile shows.
//!
//! Each kind of VM is a folder; what is asked of any of them is the seam, and attribution knows nothing else of a VM.
//!
//! | question | folder |
//! |---|---|
//! | what does a kind of VM answer: is one in this process, which frames has a sample, which methods | [`seam`] |
//! | what follows from the layout that a tunnel, the table of builds or a library describes | [`described`] |
//! | which kinds are there | `kinds`: `art`, `dalvik`, `shadow`, `hotspot` |
//! | what is known of a process with a VM: its methods, its threads' last callchains | [`ManagedProcess`] |
//! | which frames does a sample show | [`attribution`] |
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

// The tests of another crate use these tests' world.
#[cfg(test)]
extern crate self as varid_vm;

mod art;
pub mod attribution;
mod by_place;
mod dalvik;
pub mod described;
#[doc(hidden)]
pub mod fuzzing;
mod hotspot;
mod kinds;
mod managed_process;
pub mod seam;
mod shadow;
#[doc(hidden)]
pub mod testing;

pub use art::layout::{LayoutError, LibraryLayout, SelfPointer};
pub use described::Description;
pub use hotspot::{Jvm, JvmError, methods as java_methods};
pub use managed_process::ManagedProcess;
pub use seam::{Method, VmKinds};
