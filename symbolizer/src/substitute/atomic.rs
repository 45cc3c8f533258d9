//! How does a file appear whole or not at all?

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Error, Result};

/// Writes a file through `fill` under a temporary name in the same folder, then renames it to `path`.
pub(super) fn write(path: &Path, fill: impl FnOnce(&File) -> Result<()>) -> Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(
        ".{}-{}.tmp",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    ));
    let temporary = Temporary(path.with_file_name(name));
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&temporary.0)
        .map_err(Error::io("create", &temporary.0))?;
    fill(&file)?;
    drop(file);
    fs::rename(&temporary.0, path).map_err(Error::io("rename to", path))?;
    std::mem::forget(temporary);
    Ok(())
}

/// A file that goes away unless it got its final name.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // What cannot be removed was not created, or the folder is gone with it.
        let _ = fs::remove_file(&self.0);
    }
}
