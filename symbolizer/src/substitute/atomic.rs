//! Writes files so that they appear complete or not at all.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::sparse::Sparse;
use crate::{Error, Result};

/// Writes a file through `fill` under a temporary name in the same folder, then renames it to `path`. Returns the result of `fill`.
pub(super) fn write<T>(path: &Path, fill: impl FnOnce(&File) -> Result<T>) -> Result<T> {
    let temporary = Temporary::beside(path);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary.0)
        .map_err(Error::io("create", &temporary.0))?;
    let filled = fill(&file)?;
    drop(file);
    temporary.rename(path)?;
    Ok(filled)
}

/// Copies a sparse file. It is never linked: changes of one file would change the other.
pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    write(to, |file| {
        let source = File::open(from).map_err(Error::io("open", from))?;
        Sparse::copy(&source, file).map_err(Error::io("copy to", to))
    })
}

/// A temporary file, which is removed when this is dropped.
struct Temporary(PathBuf);

impl Temporary {
    /// Makes an unused name in the folder of `path`.
    fn beside(path: &Path) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(
            ".{}-{}.tmp",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        ));
        Self(path.with_file_name(name))
    }

    /// Gives the file its final name.
    fn rename(self, path: &Path) -> Result<()> {
        fs::rename(&self.0, path).map_err(Error::io("rename to", path))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Ignore errors: the file was not created, has its final name, or was removed with its folder.
        let _ = fs::remove_file(&self.0);
    }
}
