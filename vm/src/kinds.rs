//! Which kinds of VM are looked for?

use crate::art_layout::{LayoutError, LibraryLayout};
use crate::facts::VmFacts;
use crate::kind::{Vm, VmKind};
use crate::{art, dalvik, shadow};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;
use varid_model::{Pid, maps_entries};
use varid_process::Formats;
use varid_process::reader::{self, ForeignFile};
use varid_tunnel::abi::NAME;
use varid_tunnel::builds::Build;

/// The kinds of VM that are looked for, in this order.
///
/// ```
/// use std::path::Path;
/// use varid_vm::VmKinds;
///
/// let kinds = VmKinds::default();
/// assert!(kinds.is_library(Path::new("/apex/com.android.art/lib64/libart.so")));
/// assert!(!kinds.is_library(Path::new("/usr/lib/libc.so.6")));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct VmKinds(pub &'static [&'static dyn VmKind]);

impl Default for VmKinds {
    fn default() -> Self {
        Self(&[&art::Art, &dalvik::Dalvik, &shadow::Shadow])
    }
}

impl VmKinds {
    /// Whether a file of this path is a library of one of them.
    pub fn is_library(self, path: &Path) -> bool {
        self.0.iter().any(|kind| kind.is_library(path))
    }

    /// Whether a process has mapped a library of one of them, or the tunnel of a VM that describes itself.
    pub fn are_mapped_by(self, pid: Pid) -> bool {
        let maps = reader::contents(pid, "maps").unwrap_or_default();
        let tunnel = format!("/memfd:{NAME}");
        maps_entries(&maps).any(|map| {
            map.path.starts_with(tunnel.as_bytes())
                || self.is_library(Path::new(OsStr::from_bytes(map.path)))
        })
    }

    /// What a library says itself of how its VM's frames are linked; None: it is of a kind whose libraries are not asked.
    pub fn read_library(
        self,
        path: &Path,
        file: &ForeignFile,
    ) -> Option<Result<Rc<LibraryLayout>, LayoutError>> {
        let mut kinds = self.0.iter().filter(|kind| kind.is_library(path));
        kinds.find_map(|kind| kind.read_library(file))
    }

    /// The VM of which this is known; None: none of the kinds takes it for its own.
    pub fn recognise(self, facts: &VmFacts) -> Option<Rc<dyn Vm>> {
        self.0.iter().find_map(|kind| kind.recognise(facts))
    }

    /// The formats of their bytecode files, beside dex.
    pub fn formats(self) -> Formats {
        self.0.iter().filter_map(|kind| kind.bytecode()).collect()
    }

    /// The build with this build-id, if any kind's table has it.
    pub fn build(self, build_id: &[u8]) -> Option<&'static Build> {
        self.0.iter().find_map(|kind| kind.build(build_id))
    }
}
