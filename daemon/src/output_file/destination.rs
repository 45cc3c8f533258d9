//! Resolves the path of an output.

use anyhow::{Context, bail};
use nix::errno::Errno;
use nix::sys::statfs::{PROC_SUPER_MAGIC, statfs};
use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use varid_recording::{SESSION_JSON, SYMBOLS, may_hold};

/// Maximum number of links, the kernel's own limit (path_resolution(7)).
const MAX_LINKS: usize = 40;

/// The mode bits of a folder in which only files of the folder's owner or the process's user are trusted.
const STICKY: u32 = 0o1000;
const WRITABLE_BY_ALL: u32 = 0o002;

/// The target of an output.
pub enum Destination {
    /// A regular file, which may not exist yet.
    File(Place),
    /// Anything else, open for writing.
    Stream(File),
}

/// The path of a file, after symbolic links.
pub struct Place {
    pub path: PathBuf,
    /// The regular file that exists there.
    pub found: Option<Identity>,
}

/// Identifies the file that was found at a path. The owner is part of it, because a deleted file's inode number is reused.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
    kind: FileType,
    owner: u32,
}

impl Identity {
    fn of(file: &Metadata) -> Self {
        Self {
            device: file.dev(),
            inode: file.ino(),
            kind: file.file_type(),
            owner: file.uid(),
        }
    }
}

impl Destination {
    /// Follows the symbolic links at the end of `path`, and opens anything other than a regular file. Opening a FIFO waits until it
    /// has a reader.
    pub fn find(path: &Path) -> anyhow::Result<Self> {
        if path.as_os_str() == "-" {
            return Ok(Self::Stream(duplicate(io::stdout())?));
        }
        let mut path = path.to_owned();
        for _ in 0..MAX_LINKS {
            let found = match fs::symlink_metadata(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    if path.as_os_str().as_bytes().ends_with(b"/") {
                        bail!("it is a folder's name: name a file in it");
                    }
                    let found = None;
                    return Ok(Self::File(Place { path, found }));
                }
                found => found?,
            };
            let (kind, identity) = (found.file_type(), Identity::of(&found));
            check_kind(kind)?;
            let folder = folder_of(&path);
            check_owner(folder, &found)?;
            if kind.is_file() {
                let found = Some(identity);
                return Ok(Self::File(Place { path, found }));
            }
            if !kind.is_symlink() {
                return Ok(Self::Stream(open_found(&path, identity)?));
            }
            // A link in /proc refers to an open file or a folder, not to a path.
            if statfs(folder)?.filesystem_type() == PROC_SUPER_MAGIC {
                return Ok(Self::Stream(descriptor(&path)?));
            }
            path = folder.join(fs::read_link(&path)?);
        }
        bail!("it leads through more than {MAX_LINKS} symbolic links")
    }
}

impl Place {
    /// Refuses to replace a file that the command reads, or a file of a session.
    pub fn refuse_inputs(&self, inputs: &[PathBuf]) -> anyhow::Result<()> {
        let shown = self.path.display();
        let identity = |path: &PathBuf| fs::metadata(path).map(|it| Identity::of(&it)).ok();
        if self.found.is_some() && inputs.iter().any(|input| identity(input) == self.found) {
            bail!("{shown} is also read by this command: name another file for its output");
        }
        let folder = folder_of(&self.path);
        let name = self.path.file_name().and_then(|name| name.to_str());
        let is_session = |folder: &Path| folder.join(SESSION_JSON).is_file();
        let in_session = is_session(folder) && name.is_some_and(may_hold);
        // Uses the real path, because the folder may be `.`.
        let real = fs::canonicalize(folder).unwrap_or_default();
        let is_symbols =
            |folder: &Path| folder.ends_with(SYMBOLS) && folder.parent().is_some_and(is_session);
        // A kept file has its own folder there.
        let in_symbols = is_symbols(&real) || real.parent().is_some_and(is_symbols);
        if in_session || in_symbols {
            bail!("{shown} belongs to a session: name another file for the output");
        }
        Ok(())
    }
}

/// Returns the folder of a path's last component.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) => Path::new("."),
        None => path,
    }
}

/// Refuses kinds of files that cannot be written to, whoever owns them.
fn check_kind(kind: FileType) -> anyhow::Result<()> {
    if kind.is_dir() {
        bail!("it is a folder: name a file in it");
    }
    if kind.is_socket() {
        bail!("it is a socket: name a file, or - for standard output");
    }
    Ok(())
}

/// Applies the kernel's rules for folders such as /tmp (protected_symlinks, protected_fifos and protected_regular, proc_sys_fs(5)),
/// which may be disabled on a system, to everything in such a folder. Otherwise another user's link could select the file of this
/// user that is replaced, another user's FIFO or device would receive the output, and the new file would be given to the owner of
/// another user's file. A link of another user, except root, is not followed in any folder.
fn check_owner(folder: &Path, found: &Metadata) -> anyhow::Result<()> {
    let above = fs::metadata(folder)?;
    let is_own = found.uid() == nix::unistd::geteuid().as_raw();
    if found.is_symlink() && !is_own && found.uid() != 0 {
        bail!("it is another user's symbolic link: name what it leads to");
    }
    let is_shared = above.mode() & (STICKY | WRITABLE_BY_ALL) == STICKY | WRITABLE_BY_ALL;
    let is_trusted = is_own || found.uid() == above.uid();
    if is_shared && !is_trusted {
        let kind = kind_name(found.file_type());
        bail!("it is another user's {kind} in a folder that all may write to: name another file");
    }
    Ok(())
}

fn kind_name(kind: FileType) -> &'static str {
    if kind.is_symlink() {
        "symbolic link"
    } else if kind.is_fifo() {
        "FIFO"
    } else if kind.is_file() {
        "file"
    } else {
        "device"
    }
}

/// Opens for writing the file that was found at a path, and no file that has replaced it. A descriptor that only refers to the file
/// is checked first: opening a FIFO may wait for ever, and opening a device may have side effects.
pub fn open_found(path: &Path, found: Identity) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_NOFOLLOW);
    let name = options.open(path)?;
    if Identity::of(&name.metadata()?) != found {
        return Err(io::Error::other("it was replaced just now"));
    }
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(libc::O_NOCTTY);
    options.open(format!("/proc/self/fd/{}", name.as_raw_fd()))
}

/// Opens the target of a descriptor's link in /proc. This process's standard output and error are written through the descriptor
/// itself, which has their position. A file behind another descriptor is written at its end.
fn descriptor(link: &Path) -> anyhow::Result<File> {
    let folder = fs::canonicalize(folder_of(link))?;
    let is_own = fs::canonicalize("/proc/self/fd").is_ok_and(|own| own == folder);
    match link.file_name().and_then(|name| name.to_str()) {
        Some("1") if is_own => duplicate(io::stdout()),
        Some("2") if is_own => duplicate(io::stderr()),
        _ => {
            let mut options = OpenOptions::new();
            options.append(true).custom_flags(libc::O_NOCTTY);
            options.open(link).map_err(|error| {
                let is_socket = error.raw_os_error() == Some(Errno::ENXIO as i32);
                let help = if is_socket { ": it is a socket" } else { "" };
                anyhow::anyhow!("{error}{help}")
            })
        }
    }
}

fn duplicate(stream: impl AsFd) -> anyhow::Result<File> {
    let own = stream.as_fd().try_clone_to_owned();
    Ok(File::from(own.context("the descriptor is closed")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_took_the_place_of_the_found_file_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("out"), folder.path().join("other"));
        fs::write(&path, "").unwrap();
        fs::write(&other, "").unwrap();
        let found = Identity::of(&fs::symlink_metadata(&path).unwrap());
        open_found(&path, found).unwrap();

        let refused = || open_found(&path, found).unwrap_err().to_string();
        fs::remove_file(&path).unwrap();
        symlink(&other, &path).unwrap();
        assert!(refused().contains("replaced"), "{}", refused());
        fs::rename(&other, &path).unwrap();
        assert!(refused().contains("replaced"), "{}", refused());
        fs::remove_file(&path).unwrap();
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(refused().contains("replaced"), "{}", refused());
        fs::remove_file(&path).unwrap();
        open_found(&path, found).unwrap_err();
        assert!(!path.exists(), "it was created");
    }
}
