//! Detects changes of a file.

use std::{fs::Metadata, os::unix::fs::MetadataExt, path::Path};

/// Identifies the version of a file. It differs after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileVersion {
    inode: u64,
    len: u64,
    modified: (i64, i64),
}

impl FileVersion {
    /// Returns the current version of a file. None if it does not exist.
    pub fn of(path: &Path) -> Option<Self> {
        let version = |file: Metadata| Self {
            inode: file.ino(),
            len: file.len(),
            modified: (file.mtime(), file.mtime_nsec()),
        };
        path.metadata().ok().map(version)
    }
}
