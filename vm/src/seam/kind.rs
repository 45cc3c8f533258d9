//! Which kinds of VM are looked for, and is one of them in a process?

use super::Vm;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;
use varid_model::{Pid, maps_entries};
use varid_process::reader;
use varid_process::{BytecodeFormat, Formats, Process};

/// A kind of VM: how one is found in a process.
///
/// A kind that is added is a folder with one `VmKind` and one [`Vm`]; the rest of varid asks them, and knows none by its name.
pub trait VmKind: fmt::Debug + Sync {
    /// Whether a file of this path is a library that holds such a VM, whatever build of it. Its code is shown as the VM's.
    fn is_library(&self, path: &Path) -> bool;

    /// Whether a process that maps a file of this path has, or may come to have, a VM of this kind that is found.
    fn is_announced_by(&self, path: &Path) -> bool;

    /// Looks into a process. Of its mappings those of [`VmKind::is_announced_by`] lead to the VM; which of them counts, where there are
    /// several, the kind decides.
    fn find(&self, process: &Process) -> Found;

    /// What doctor says of a library of this kind, from its bytes. None: it is of another kind, or there is nothing to be said.
    fn examine(&self, _path: &Path, _library: &[u8]) -> Option<LibraryReport> {
        None
    }

    /// The formats of its bytecode files, beside dex.
    fn bytecode(&self) -> Vec<&'static dyn BytecodeFormat> {
        Vec::new()
    }
}

/// What a kind has found in a process.
#[derive(Debug)]
pub enum Found {
    /// No VM of this kind.
    No,
    /// One that is not up: it is looked for again.
    NotYet,
    /// What is there does not look like the VM, for this reason; the process may have been changing what was looked at. It is looked for
    /// again, some times.
    Unclear(String),
    /// A VM that cannot be used, for this reason.
    Refused(String),
    /// A VM.
    Vm(Rc<dyn Vm>),
}

impl Found {
    /// How much it says: of several kinds' answers that which says most is taken.
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

/// What is known of a VM from its library alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryReport {
    /// Its build-id.
    pub build_id: Option<Vec<u8>>,
    /// Its unwind information says which bytecode runs.
    pub is_marked: bool,
    /// Whether its frames can be walked.
    pub layout: LayoutReport,
}

/// Who says how the frames of a library's VM are linked, in words that end a sentence about the library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayoutReport {
    /// Known of this build.
    Known(String),
    /// Not known of this build; the library itself says it, and each process is asked whether it agrees.
    InLibrary(String),
    /// Nobody says it, and what would help.
    Unknown(String),
}

/// The kinds of VM that are looked for. `VmKinds::default()` has those that varid knows.
#[derive(Debug, Clone, Copy)]
pub struct VmKinds(pub &'static [&'static dyn VmKind]);

impl VmKinds {
    /// Whether a file of this path is a library of one of them.
    pub fn is_library(self, path: &Path) -> bool {
        self.0.iter().any(|kind| kind.is_library(path))
    }

    /// Whether a process that maps a file of this path may have one of them.
    pub fn is_announced_by(self, path: &Path) -> bool {
        self.0.iter().any(|kind| kind.is_announced_by(path))
    }

    /// Whether a process has mapped what announces one of them.
    pub fn are_mapped_by(self, pid: Pid) -> bool {
        let maps = reader::contents(pid, "maps").unwrap_or_default();
        maps_entries(&maps).any(|map| self.is_announced_by(Path::new(OsStr::from_bytes(map.path))))
    }

    /// Looks into a process: the first VM that one of them finds, or the answer that says most.
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

    /// What doctor says of a library.
    pub fn examine(self, path: &Path, library: &[u8]) -> Option<LibraryReport> {
        let mut kinds = self.0.iter();
        kinds.find_map(|kind| kind.examine(path, library))
    }

    /// The formats of their bytecode files, beside dex.
    pub fn formats(self) -> Formats {
        self.0.iter().flat_map(|kind| kind.bytecode()).collect()
    }
}
