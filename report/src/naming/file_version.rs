//! Has a file changed since it was read?

use std::{fs::Metadata, os::unix::fs::MetadataExt, path::Path};

/// What is another one after a change of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileVersion {
    inode: u64,
    len: u64,
    modified: (i64, i64),
}

impl FileVersion {
    /// That of a file now; none: there is no such file.
    pub fn of(path: &Path) -> Option<Self> {
        let version = |file: Metadata| Self {
            inode: file.ino(),
            len: file.len(),
            modified: (file.mtime(), file.mtime_nsec()),
        };
        path.metadata().ok().map(version)
    }
}
