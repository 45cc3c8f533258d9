//! How does a new file take an old one's place, whole or not at all?

use super::destination::{Place, folder_of};
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
/// Mode while an old file's is not yet set: what it holds may be for this user only.
const PRIVATE: u32 = 0o600;
const PERMISSIONS: u32 = 0o777;
const GROUP: u32 = 0o070;

/// A file that is being written beside the one whose place it takes. Dropped before [`finish`](Self::finish), it is removed.
pub struct Replacement {
    // Removed by a path in `folder`, so dropped before it.
    temporary: Temporary,
    target: PathBuf,
    old: Option<Metadata>,
    /// Holds both files, wherever its path leads by now.
    _folder: File,
}

/// The new file, under a name of its own.
struct Temporary {
    file: File,
    path: PathBuf,
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
        let old = place.exists.then(|| writable(&target)).transpose();
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

    /// Gives the new file the old one's owner, group, mode and name; its size.
    pub fn finish(self) -> io::Result<u64> {
        let file = &self.temporary.file;
        if let Some(old) = &self.old {
            take_over(file, old)?;
            // After a crash the old content is there, or the new one.
            file.sync_all()?;
        }
        let size = file.metadata()?.len();
        fs::rename(&self.temporary.path, &self.target)?;
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
                // A killed process had the same pid.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                file => return Ok(Self { file: file?, path }),
            }
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After the rename there is none.
        let _ = fs::remove_file(&self.path);
    }
}

/// A path in an open folder, which leads nowhere else if the folder is renamed.
fn in_folder(folder: &File, name: &OsStr) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name)
}

/// Asks the kernel whether this user may write to a regular file: replacing it takes the folder's permission only. `create` lets
/// the kernel protect files of other users in folders such as /tmp.
fn writable(path: &Path) -> io::Result<Metadata> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW);
    let found = options.open(path)?.metadata()?;
    match found.is_file() {
        true => Ok(found),
        false => Err(io::Error::other("it was replaced just now")),
    }
}

/// Gives a file another one's owner, group and permissions, as far as this user may: who is not root keeps their own files, and
/// permissions of a group are for that group only.
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
