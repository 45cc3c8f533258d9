//! Options for the sources of names and for their level of detail.

use std::path::PathBuf;

/// The sources of names and lines. By default, these are the recorded files at their recorded paths if this is the
/// machine of the recording, without lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameOptions {
    /// A folder with the file system of the recorded machine.
    pub symfs: Option<PathBuf>,
    /// Folders with files of the recorded machine, with or without debug information, which are found by build-id.
    pub symbols: Vec<PathBuf>,
    /// A folder with cached files of recorded machines: `.build-id/ab/cdef…`.
    pub kept: Option<PathBuf>,
    /// The mapping file of R8 or ProGuard for the app.
    pub mapping: Option<PathBuf>,
    /// The recorded kernel's ELF file, with debug information.
    pub vmlinux: Option<PathBuf>,
    /// Whether inlined functions are separate frames.
    pub inlined: bool,
    /// Whether frames have lines.
    pub lines: bool,
    /// The methods whose names have their signatures.
    pub signatures: ShownSignatures,
}

/// The methods whose names have their signatures, if a session has these: `org.example.App.mul(int)`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ShownSignatures {
    /// Methods of a profile with the same name.
    #[default]
    OfOverloads,
    /// All methods.
    OfAll,
}

/// The level of detail of a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Detail {
    /// Include inlined functions.
    pub inlined: bool,
    /// Include lines.
    pub lines: bool,
}

impl NameOptions {
    /// Returns the level of detail of lookups.
    pub(crate) const fn detail(&self) -> Detail {
        Detail {
            inlined: self.inlined,
            lines: self.lines,
        }
    }
}
