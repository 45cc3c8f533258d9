//! Kinds of VM, and how one is found in a process.

use super::Vm;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use varid_model::{Pid, maps_entries};
use varid_process::reader;
use varid_process::{BytecodeFormat, Formats, Process};

/// A kind of VM: finds one in a process.
///
/// To add a kind, write a folder with one `VmKind` and one [`Vm`], and list it in `kinds.rs`. For a VM with a layout description
/// write a `DescribedKind` instead.
pub trait VmKind: fmt::Debug + Sync {
    /// Returns true if `path` names a library that holds this VM, of any build. Its code belongs to the layer `vm`.
    fn is_library(&self, path: &Path) -> bool;

    /// Returns true if a process that maps `path` may have a VM that [`VmKind::find`] finds, now or later.
    fn is_announced_by(&self, path: &Path) -> bool;

    /// Looks for the VM in a process. If several mappings announce one, the kind decides which counts.
    fn find(&self, process: &Process) -> Found;

    /// Describes a library of this kind for `varid doctor`, from its bytes. None if it is of another kind.
    fn examine(&self, _path: &Path, _library: &[u8]) -> Option<LibraryReport> {
        None
    }

    /// Returns true if the VM in a library of this path describes itself in each process: [`VmKind::examine_process`] says how.
    fn describes_itself(&self, _path: &Path) -> bool {
        false
    }

    /// Describes the VM of a process for `varid doctor`, if it is of a kind whose VMs describe themselves. None if the process has no such VM.
    fn examine_process(&self, _process: &Process) -> Option<ProcessReport> {
        None
    }

    /// The formats of its bytecode files, other than dex.
    fn bytecode(&self) -> Vec<&'static dyn BytecodeFormat> {
        Vec::new()
    }
}

/// The result of looking for a VM in a process.
#[derive(Debug)]
pub enum Found {
    /// No VM of this kind, as far as the process shows.
    No,
    /// One that has not started yet.
    NotYet,
    /// The process's memory contradicts the VM's layout, for this reason, but may have been changing. The caller looks again, a limited number
    /// of times.
    Unclear(String),
    /// A VM that cannot be used, and why.
    Refused(String),
    /// A VM.
    Vm(Rc<dyn Vm>),
}

impl Found {
    /// Of several kinds' results the one with the largest weight counts: a VM that may still start is not hidden by another kind's refusal.
    const fn weight(&self) -> u8 {
        match self {
            Self::No => 0,
            Self::Refused(_) => 1,
            Self::Unclear(_) => 2,
            Self::NotYet => 3,
            Self::Vm(_) => 4,
        }
    }
}

/// What a library says about its VM, without a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryReport {
    /// Its build-id.
    pub build_id: Option<Vec<u8>>,
    /// Its unwind information gives the executed bytecode.
    pub is_marked: bool,
    /// Whether its frames can be walked.
    pub layout: LayoutReport,
}

/// Where the layout of a library's VM comes from, as the end of a sentence about the library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayoutReport {
    /// From the table of builds.
    Known(String),
    /// Derived from the library itself, and checked in each process.
    InLibrary(String),
    /// The layout is not known; the text says what would help.
    Unknown(String),
}

/// What a process's VM says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessReport {
    /// The VM's library, as the process has it.
    pub library: PathBuf,
    /// What is known of the VM.
    pub vm: SelfDescription,
}

/// Whether a VM can be described by what it says about itself. Each text is the end of a sentence about the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SelfDescription {
    /// All that is needed is known.
    Complete(String),
    /// It has not started yet.
    NotStarted(String),
    /// Something is missing or implausible.
    Refused(String),
}

/// The kinds of VM that varid looks for. `VmKinds::default()` has all built-in kinds.
#[derive(Debug, Clone, Copy)]
pub struct VmKinds(pub &'static [&'static dyn VmKind]);

impl VmKinds {
    /// Returns true if `path` names a library of any kind.
    pub fn is_library(self, path: &Path) -> bool {
        self.0.iter().any(|kind| kind.is_library(path))
    }

    /// Returns true if a process that maps `path` may have a VM of any kind.
    pub fn is_announced_by(self, path: &Path) -> bool {
        self.0.iter().any(|kind| kind.is_announced_by(path))
    }

    /// Returns true if a process maps a file that announces a VM.
    pub fn are_mapped_by(self, pid: Pid) -> bool {
        let maps = reader::contents(pid, "maps").unwrap_or_default();
        maps_entries(&maps).any(|map| self.is_announced_by(Path::new(OsStr::from_bytes(map.path))))
    }

    /// Looks for a VM in a process: the first one found, or the most specific result without one.
    pub fn find(self, process: &Process) -> Found {
        let mut answer = Found::No;
        for kind in self.0 {
            let found = kind.find(process);
            if found.weight() > answer.weight() {
                answer = found;
            }
            if matches!(answer, Found::Vm(_)) {
                break;
            }
        }
        answer
    }

    /// Describes a library for `varid doctor`.
    pub fn examine(self, path: &Path, library: &[u8]) -> Option<LibraryReport> {
        let mut kinds = self.0.iter();
        kinds.find_map(|kind| kind.examine(path, library))
    }

    /// Returns true if the VM in a library of this path describes itself in each process.
    pub fn describes_itself(self, path: &Path) -> bool {
        self.0.iter().any(|kind| kind.describes_itself(path))
    }

    /// Describes the VM of a process that describes itself, for `varid doctor`.
    pub fn examine_process(self, process: &Process) -> Option<ProcessReport> {
        let mut kinds = self.0.iter();
        kinds.find_map(|kind| kind.examine_process(process))
    }

    /// The formats of all kinds' bytecode files, other than dex.
    pub fn formats(self) -> Formats {
        self.0.iter().flat_map(|kind| kind.bytecode()).collect()
    }
}
