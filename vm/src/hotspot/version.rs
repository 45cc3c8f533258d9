//! Which version of HotSpot is it?

use super::error::{JvmError, Result};
use super::fields::Fields;
use super::member::Width;
use super::memory::PagedMemory;
use super::tables::VmTables;
use std::fmt;
use varid_model::Address;

/// The longest version string in bytes.
const MAX_VERSION: usize = 256;
/// The highest feature release that is a number of a version and not of something else.
const MAX_MAJOR: u64 = 127;

/// The version of a VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VmVersion {
    /// The feature release: 17.
    pub major: u32,
    /// `Abstract_VM_Version::_s_vm_release`: `17.0.15+6-Debian-1deb12u1`.
    pub release: String,
}

impl fmt::Display for VmVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HotSpot {}", self.release)
    }
}

impl VmVersion {
    /// Reads the version.
    pub(super) fn read(tables: &VmTables, memory: &PagedMemory<'_>) -> Result<Self> {
        let mut fields = Fields::of(tables);
        let release = fields.address("Abstract_VM_Version::_s_vm_release");
        let major = fields.address("Abstract_VM_Version::_vm_major_version");
        fields.finish("a HotSpot of unknown version")?;
        let release = memory.pointer("Abstract_VM_Version::_s_vm_release", release)?;
        if release == Address::new(0) {
            return Err(JvmError::NotStarted("it has no version yet"));
        }
        let release = memory.string("the version", release, MAX_VERSION)?;
        // It is shown on terminals.
        let release = release.replace(|character: char| !character.is_ascii_graphic(), "?");
        let what = "Abstract_VM_Version::_vm_major_version";
        let major = memory.number(what, major, Width::Four)?;
        match u32::try_from(major) {
            Ok(known) if known > 0 && major <= MAX_MAJOR => Ok(Self {
                major: known,
                release,
            }),
            _ => Err(JvmError::implausible(
                what,
                major,
                "no HotSpot has this version",
            )),
        }
    }
}
