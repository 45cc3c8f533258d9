//! Files of a process, taken only through its own mappings: the daemon is nobody's deputy.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use varid_symbolizer::container;

/// No dex file is larger; a larger one is not read into memory.
const MAX_FILE: u64 = 1 << 28;

/// What identifies a file behind a mapping, whatever its path says by now.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileKey {
    /// Device and inode.
    pub device: u64,
    /// Inode.
    pub inode: u64,
    /// Bytes.
    pub size: u64,
    /// Last change, in seconds and nanoseconds.
    pub changed: (i64, i64),
}

/// Opens the file behind a mapping: through the mapping itself where that is allowed, else by
/// its path below the process's root, and only if it is the regular file with that inode.
pub fn open(pid: u32, start: u64, end: u64, path: &str, inode: u64) -> io::Result<(File, FileKey)> {
    let through_mapping = PathBuf::from(format!("/proc/{pid}/map_files/{start:x}-{end:x}"));
    let by_path = [
        PathBuf::from(format!("/proc/{pid}/root{path}")),
        // The process has gone: only a path that still leads to the same file will do.
        PathBuf::from(path),
    ];
    // The mapping's name is a link, and the kernel's own; the last part of a path that the
    // kernel has given out is none.
    let mut last = match open_regular(&through_mapping, inode, 0) {
        Ok(opened) => return Ok(opened),
        Err(error) => error,
    };
    for candidate in by_path {
        match open_regular(&candidate, inode, libc::O_NOFOLLOW) {
            Ok(opened) => return Ok(opened),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn open_regular(path: &Path, inode: u64, flags: i32) -> io::Result<(File, FileKey)> {
    if !path.is_absolute() {
        return Err(io::Error::from(io::ErrorKind::NotFound));
    }
    let (file, meta) = look_and_open(path, flags)?;
    if meta.ino() != inode {
        return Err(io::Error::other("the path leads to another file by now"));
    }
    let key = FileKey {
        device: meta.dev(),
        inode,
        size: meta.len(),
        changed: (meta.mtime(), meta.mtime_nsec()),
    };
    Ok((file, key))
}

/// Opens a file that is no mapping's, if the path's last part is a regular file and no link.
pub fn open_unmapped(path: &Path) -> io::Result<(File, Metadata)> {
    look_and_open(path, libc::O_NOFOLLOW)
}

/// Looks before it opens: opening a device or a pipe may do something already.
fn look_and_open(path: &Path, flags: i32) -> io::Result<(File, Metadata)> {
    let handle = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH | flags)
        .open(path)?;
    let meta = handle.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let file = File::open(format!("/proc/self/fd/{}", handle.as_raw_fd()))?;
    Ok((file, meta))
}

/// Whether the file has the first bytes of an ELF file.
pub fn is_elf(file: &File) -> bool {
    let mut magic = [0; 4];
    file.read_exact_at(&mut magic, 0).is_ok() && magic == *b"\x7fELF"
}

/// Whether the file has the first bytes of a dex file at `offset`.
pub fn is_dex(file: &File, offset: u64) -> bool {
    let mut magic = [0; 8];
    file.read_exact_at(&mut magic, offset).is_ok()
        && magic.starts_with(b"dex\n")
        && magic.ends_with(b"\0")
}

/// Whether the file may hold dex files elsewhere than at its start.
pub fn is_container(file: &File) -> bool {
    let mut magic = [0; 4];
    file.read_exact_at(&mut magic, 0).is_ok() && container::is_container(&magic)
}

/// Number of bytes in the file; 0 if it cannot be told.
pub fn len(file: &File) -> u64 {
    file.metadata().map_or(0, |meta| meta.len())
}

/// Reads `len` bytes of the file from `offset` on, or as many as there are; no mapping, because a file that shrinks
/// would kill the reader.
pub fn read(file: &File, offset: u64, len: u64) -> io::Result<Vec<u8>> {
    let len = file.metadata()?.len().saturating_sub(offset).min(len);
    if len > MAX_FILE {
        return Err(io::Error::other(format!(
            "{len} bytes are more than a profiler reads"
        )));
    }
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset.saturating_add(filled as u64))? {
            0 => break,
            read => filled = filled.saturating_add(read),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
