//! What does the path of an output lead to?

use anyhow::{Context, bail};
use nix::errno::Errno;
use nix::sys::statfs::{PROC_SUPER_MAGIC, statfs};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use varid_recording::{SESSION_JSON, SYMBOLS, may_hold};

/// The kernel's own limit (path_resolution(7)).
const MAX_LINKS: usize = 40;

/// Modes of a folder in which the kernel follows links of the folder's owner and the process's user only.
const STICKY: u32 = 0o1000;
const WRITABLE_BY_ALL: u32 = 0o002;

/// What an output is written to.
pub enum Destination {
    /// A regular file, or none yet.
    File(Place),
    /// Anything else, open for writing.
    Stream(File),
}

/// The path of a file after symbolic links.
pub struct Place {
    pub path: PathBuf,
    /// A regular file is there.
    pub exists: bool,
}

impl Destination {
    /// Follows the symbolic links that `path` ends with, and opens what is not a regular file. A FIFO is waited for until it
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
                    let exists = false;
                    return Ok(Self::File(Place { path, exists }));
                }
                found => found?,
            };
            let kind = found.file_type();
            if kind.is_file() {
                let exists = true;
                return Ok(Self::File(Place { path, exists }));
            }
            if !kind.is_symlink() {
                return Ok(Self::Stream(stream(&path, &found)?));
            }
            let folder = folder_of(&path);
            // A link there names an open file or a folder, not a path.
            if statfs(folder)?.filesystem_type() == PROC_SUPER_MAGIC {
                return Ok(Self::Stream(descriptor(&path)?));
            }
            check_link(folder, &found)?;
            path = folder.join(fs::read_link(&path)?);
        }
        bail!("it leads through more than {MAX_LINKS} symbolic links")
    }
}

impl Place {
    /// Refuses to replace a file that the command reads, or one of a session.
    pub fn refuse_inputs(&self, inputs: &[PathBuf]) -> anyhow::Result<()> {
        let shown = self.path.display();
        let identity = |path: &Path| fs::metadata(path).map(|it| (it.dev(), it.ino())).ok();
        let own = identity(&self.path).filter(|_| self.exists);
        if own.is_some() && inputs.iter().any(|input| identity(input) == own) {
            bail!("{shown} is also read by this command: name another file for its output");
        }
        let folder = folder_of(&self.path);
        let name = self.path.file_name().and_then(|name| name.to_str());
        let is_session = |folder: &Path| folder.join(SESSION_JSON).is_file();
        let in_session = is_session(folder) && name.is_some_and(may_hold);
        // By its real path: the folder may be named by `.`.
        let real = fs::canonicalize(folder).unwrap_or_default();
        let in_symbols = real.ends_with(SYMBOLS) && real.parent().is_some_and(is_session);
        if in_session || in_symbols {
            bail!("{shown} belongs to a session: name another file for the output");
        }
        Ok(())
    }
}

/// The folder that a path's last name is in.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) => Path::new("."),
        None => path,
    }
}

/// Applies the kernel's rule for links in folders such as /tmp (protected_symlinks, proc_sys_fs(5)): another user's link would
/// choose which of this user's files is replaced.
fn check_link(folder: &Path, link: &Metadata) -> anyhow::Result<()> {
    let above = fs::metadata(folder)?;
    let is_shared = above.mode() & (STICKY | WRITABLE_BY_ALL) == STICKY | WRITABLE_BY_ALL;
    let is_ours = link.uid() == nix::unistd::geteuid().as_raw() || link.uid() == above.uid();
    if is_shared && !is_ours {
        bail!("it is another user's symbolic link in a folder that all may write to");
    }
    Ok(())
}

/// Opens what is no regular file. `create` lets the kernel protect folders such as /tmp: another user's FIFO there is refused.
fn stream(path: &Path, found: &Metadata) -> anyhow::Result<File> {
    let kind = found.file_type();
    if kind.is_dir() {
        bail!("it is a folder: name a file in it");
    }
    if kind.is_socket() {
        bail!("it is a socket: name a file, or - for standard output");
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    Ok(options.custom_flags(libc::O_NOCTTY).open(path)?)
}

/// Opens what a descriptor's link in /proc stands for. This process's standard output and error are written through the
/// descriptor itself, which has their position; a file behind another one is written at its end.
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
