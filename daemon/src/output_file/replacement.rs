//! Replaces a file by a new one, completely or not at all.

use super::destination::{Place, folder_of, open_found};
use anyhow::{Context, bail};
use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Mode of a new file before the umask.
const NEW: u32 = 0o666;
/// Mode until the old file's is set: its contents may be private.
const PRIVATE: u32 = 0o600;
const PERMISSIONS: u32 = 0o777;
const GROUP: u32 = 0o070;

/// A file that is being written beside the one that it will replace. It is removed if it is dropped before
/// [`finish`](Self::finish).
pub struct Replacement {
    // Removed by a path in `folder`, so it must be dropped before it.
    temporary: Temporary,
    target: PathBuf,
    old: Option<Metadata>,
    /// The folder of both files, even if its path changes.
    _folder: File,
}

/// The new file.
struct Temporary {
    file: File,
    /// Its temporary name, until it gets the target's.
    path: Option<PathBuf>,
}

impl Replacement {
    /// Creates the new file.
    ///
    /// # Errors
    ///
    /// The user may not write to the old file, or may not create files in its folder.
    pub fn begin(place: &Place) -> anyhow::Result<Self> {
        let shown = place.path.display();
        let (path, name) = (folder_of(&place.path), place.path.file_name());
        let Some(name) = name else {
            bail!("cannot write {shown}: it is a folder: name a file in it");
        };
        let folder = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_PATH | libc::O_DIRECTORY)
            .open(path)
            .with_context(|| {
                format!(
                    "cannot write {shown}: cannot open the folder {}",
                    path.display()
                )
            })?;
        let target = in_folder(&folder, name);
        // Replacing a file only needs permission for the folder. Opening the file checks the permission for the file.
        let old = place
            .found
            .map(|found| open_found(&target, found)?.metadata())
            .transpose();
        let old = old.with_context(|| format!("cannot write {shown}"))?;
        let mode = old.as_ref().map_or(NEW, |_| PRIVATE);
        let temporary = Temporary::create(&folder, mode).with_context(|| {
            format!(
                "cannot write {shown}: no file can be created in its folder: choose another one, or '-' for standard output"
            )
        })?;
        Ok(Self {
            temporary,
            target,
            old,
            _folder: folder,
        })
    }

    /// The new file.
    pub fn file(&self) -> &File {
        &self.temporary.file
    }

    /// Gives the new file the old one's owner, group, mode and name. Returns its size.
    pub fn finish(mut self) -> io::Result<u64> {
        let file = &self.temporary.file;
        if let Some(old) = &self.old {
            take_over(file, old)?;
        }
        // After a crash, either the old or the complete new content is there.
        file.sync_all()?;
        let size = file.metadata()?.len();
        self.temporary.rename(&self.target)?;
        Ok(size)
    }
}

impl Temporary {
    fn create(folder: &File, mode: u32) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let pid = std::process::id();
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = in_folder(folder, OsStr::new(&format!(".varid-{pid}-{number}.tmp")));
            let mut options = OpenOptions::new();
            match options.write(true).create_new(true).mode(mode).open(&path) {
                // A process with the same pid was killed earlier.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                file => {
                    let (file, path) = (file?, Some(path));
                    return Ok(Self { file, path });
                }
            }
        }
    }

    fn rename(&mut self, target: &Path) -> io::Result<()> {
        if let Some(path) = &self.path {
            fs::rename(path, target)?;
        }
        // The name may belong to another file from now on.
        self.path = None;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

/// Returns a path in an open folder. It stays valid if the folder is renamed.
fn in_folder(folder: &File, name: &OsStr) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name)
}

/// Copies the owner, group and permissions of `old` to a file, as far as this user is permitted. If the group cannot be set, the
/// file gets no permissions for its group.
fn take_over(file: &File, old: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    let mut mode = old.mode() & PERMISSIONS;
    let is_same = (new.uid(), new.gid()) == (old.uid(), old.gid());
    if !is_same && fchown(file, Some(old.uid()), Some(old.gid())).is_err() {
        let has_group = new.gid() == old.gid() || fchown(file, None, Some(old.gid())).is_ok();
        if !has_group {
            mode &= !GROUP;
        }
    }
    file.set_permissions(Permissions::from_mode(mode))
}
