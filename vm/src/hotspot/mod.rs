//! HotSpot, the VM of OpenJDK: described from outside by the tables that its library exports for debuggers (`gHotSpotVMStructs` and others).
//!
//! Its library is also recognised by its name, so that its code has the layer `vm`. Its frames are found by unwinding the copy of the stack,
//! with the words that the shim has found beyond it.
//!
//! | question | file |
//! |---|---|
//! | what is known of a process's VM | `jvm` |
//! | which library has the process loaded, and where are its tables | `process`, `library` |
//! | what is in the tables | `tables` |
//! | which fields are taken, and which are missing | `fields`, `member` |
//! | where are the members of structures | `layout` |
//! | what do the tables not have | `unexported` |
//! | which version is it, with which flags | `version`, `flags` |
//! | where is its code | `code_heaps`, `interpreter` |
//! | how many classes has it unloaded | `unloading` |
//! | are its threads those of the process | `threads` |
//! | how is its memory read | `memory`, `pages` |
//! | how is it described in a line | `shown` |
//! | what is the shim told | `shim_places` |
//! | what does attribution ask of it | `vm` |
//! | which methods does its code execute | `methods`, and their pointers in a recording: `named_methods` |
//! | which code was seen, and how is a frame of it left | `known_code`, `known_blob`, `unwinding` |
//! | which methods does an address of compiled code execute | `known_scopes` |
//! | in which compiled code were leaves sampled | `sampled_code` |
//! | of which classes are the objects that samples have allocated | `allocated_classes` |

mod allocated_classes;
mod code_heaps;
mod error;
mod fields;
mod flags;
mod interpreter;
mod jvm;
mod known_blob;
mod known_code;
mod known_scopes;
mod layout;
mod library;
mod member;
mod memory;
pub mod methods;
mod named_methods;
mod pages;
mod process;
mod sampled_code;
mod shim_places;
mod shown;
mod tables;
#[cfg(test)]
mod tests;
mod threads;
mod unexported;
mod unloading;
mod unwinding;
mod version;
mod vm;

pub use error::JvmError;
pub use jvm::Jvm;
pub(crate) use library::LoadedLibrary;

use crate::seam::{Found, ProcessReport, SelfDescription, VmKind};
use std::path::Path;
use std::rc::Rc;
use varid_model::Machine;
use varid_process::Process;
use vm::HotSpotVm;

/// Whether this program knows how to leave frames of generated code: there are rules for two machines.
const KNOWS_FRAMES: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// The VM of OpenJDK.
#[derive(Debug)]
pub struct HotSpot;

impl VmKind for HotSpot {
    fn is_library(&self, path: &Path) -> bool {
        process::is_library(path)
    }

    fn is_announced_by(&self, path: &Path) -> bool {
        KNOWS_FRAMES && process::is_library(path)
    }

    /// A VM that cannot be described is treated as native code: its generated code has no names.
    fn find(&self, process: &Process) -> Found {
        if !KNOWS_FRAMES {
            return Found::No;
        }
        let Some((mapped, image)) = process::library_in(process) else {
            return Found::No;
        };
        match process::describe(process, mapped, image) {
            Ok(jvm) if jvm.machine == Machine::NATIVE => {
                Found::Vm(Rc::new(HotSpotVm::new(Rc::new(jvm))))
            }
            Err(JvmError::NotStarted(_)) => Found::NotYet,
            Ok(_) | Err(_) => Found::No,
        }
    }

    fn describes_itself(&self, path: &Path) -> bool {
        process::is_library(path)
    }

    fn examine_process(&self, process: &Process) -> Option<ProcessReport> {
        let (mapped, image) = process::library_in(process)?;
        let vm = match process::describe(process, mapped, image) {
            Ok(jvm) => SelfDescription::Complete(jvm.to_string()),
            Err(error @ JvmError::NotStarted(_)) => SelfDescription::NotStarted(error.to_string()),
            Err(error) => SelfDescription::Refused(error.to_string()),
        };
        Some(ProcessReport {
            library: image.path.clone(),
            vm,
        })
    }
}

impl Jvm {
    /// Returns true if `path` names a library of HotSpot.
    pub fn is_library(path: &Path) -> bool {
        process::is_library(path)
    }

    /// Describes the HotSpot of a process. None if it has loaded none.
    ///
    /// # Errors
    ///
    /// The VM has not started, or something is missing or implausible.
    pub fn of_process(process: &Process) -> Option<Result<Self, JvmError>> {
        let (mapped, image) = process::library_in(process)?;
        Some(process::describe(process, mapped, image))
    }
}
