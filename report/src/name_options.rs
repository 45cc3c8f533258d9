//! Where do names come from, and how detailed are they?

use std::path::PathBuf;

/// Where names and lines come from. The default is the recorded files where they were, on the
/// machine that they were recorded on, and functions without lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameOptions {
    /// A folder with the recorded machine's file system.
    pub symfs: Option<PathBuf>,
    /// Folders with the recorded machine's files, with or without debug information, found by
    /// build-id.
    pub symbols: Vec<PathBuf>,
    /// A folder with files of recorded machines that were kept: `.build-id/ab/cdef…`.
    pub kept: Option<PathBuf>,
    /// What R8 or ProGuard called the app's methods.
    pub mapping: Option<PathBuf>,
    /// The recorded kernel's ELF file, with debug information.
    pub vmlinux: Option<PathBuf>,
    /// Whether functions that were compiled into their callers are frames of their own.
    pub inlined: bool,
    /// Whether every frame has its line.
    pub lines: bool,
}

/// What is looked up of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Detail {
    /// Functions that were inlined there, each by itself.
    pub inlined: bool,
    /// Lines.
    pub lines: bool,
}

impl NameOptions {
    /// What is looked up of each address.
    pub(crate) const fn detail(&self) -> Detail {
        Detail {
            inlined: self.inlined,
            lines: self.lines,
        }
    }
}
