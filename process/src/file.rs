//! Opens the file behind a mapping of a process.
//!
//! A file is opened only because the process has mapped it. varid may be allowed to read more than the process. So it shows no file that
//! the process could not read itself.

use crate::reader::{self, FileMetadata, ForeignFile as File, PathTarget};
use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use varid_model::{Device, Mode, Pid, is_own_memory};
use varid_symbolizer::container;

/// The largest dex file, in bytes. A larger one is not read into memory.
const MAX_FILE: u64 = 1 << 28;

/// Identifies a file behind a mapping, whatever its path leads to by now.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileKey {
    /// The device, `st_dev`.
    pub device: u64,
    /// The inode.
    pub inode: u64,
    /// Size in bytes.
    pub size: u64,
    /// Last change, in seconds and nanoseconds.
    pub changed: (i64, i64),
}

impl FileKey {
    /// The key of a file.
    pub fn of(file: &FileMetadata) -> Self {
        Self {
            device: file.dev(),
            inode: file.ino(),
            size: file.len(),
            changed: file.changed(),
        }
    }

    /// Returns true if inode, size and last change are the same.
    pub(super) fn same_but_for_device(&self, other: &Self) -> bool {
        let of = |key: &Self| (key.inode, key.size, key.changed);
        of(self) == of(other)
    }
}

/// A mapping, from the process's memory map or the kernel's record.
#[derive(Debug, Clone)]
pub struct KernelMapping<'a> {
    /// The process.
    pub pid: Pid,
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// Offset in the file.
    pub pgoff: u64,
    /// The file's device.
    pub device: Device,
    /// The inode. 0: memory without a file.
    pub inode: u64,
    /// What the process may do with it.
    pub mode: Mode,
    /// The path, or a name in brackets. It need not be UTF-8.
    pub path: &'a Path,
}

impl KernelMapping<'_> {
    /// Returns the addresses at which the file's bytes from `offset` to `end` are mapped, and the distance of the first of them from
    /// `offset`.
    pub(super) fn part(&self, offset: u64, end: u64) -> Option<(Range<u64>, u64)> {
        let size = self.end.checked_sub(self.start)?;
        let mapped = self.pgoff..self.pgoff.checked_add(size)?;
        let (first, last) = (offset.max(mapped.start), end.min(mapped.end));
        let address = |at: u64| self.start.checked_add(at.checked_sub(mapped.start)?);
        (first < last)
            .then(|| Some((address(first)?..address(last)?, first.checked_sub(offset)?)))
            .flatten()
    }

    /// Returns true if the file may be an oat file, by its name. An oat file is an ELF file that contains dex files.
    pub(super) fn may_be_oat(&self) -> bool {
        let extension = without_deleted(self.path).extension();
        extension
            .is_some_and(|extension| ["oat", "odex", "dex"].iter().any(|oat| extension == *oat))
    }
}

/// Opens the file behind a mapping: through the mapping itself, if that is allowed and the file is still mapped there. Otherwise by its
/// path, below the process's root or, if the process has gone, here; then it must be the regular file with that inode on that device.
pub(crate) fn open(mapped: &KernelMapping<'_>) -> io::Result<(File, FileKey)> {
    let KernelMapping {
        pid, start, end, ..
    } = *mapped;
    let path = without_deleted(mapped.path);
    let task = reader::task_of(pid);
    let through_mapping = PathBuf::from(format!("/proc/{task}/map_files/{start:x}-{end:x}"));
    let mut below_root = OsString::from(format!("/proc/{task}/root"));
    below_root.push(path);
    let same = PathTarget::Same(mapped.device, mapped.inode);
    // Another file may be mapped there by now.
    let same_inode = |file: File| match file.metadata()?.ino() == mapped.inode {
        true => Ok(file),
        false => Err(io::Error::other("the mapping is of another file by now")),
    };
    let mut opened =
        reader::open(pid, &through_mapping, PathTarget::Mapped, None).and_then(same_inode);
    // Memory without a file has no path.
    let paths = match is_own_memory(path) {
        true => &[][..],
        false => &[Path::new(&below_root), path],
    };
    for candidate in paths {
        if !matches!(&opened, Err(error) if error.kind() != io::ErrorKind::TimedOut) {
            break;
        }
        opened = reader::open(pid, candidate, same.clone(), None);
    }
    let file = opened?;
    let key = FileKey::of(&file.metadata()?);
    Ok((file, key))
}

/// Returns the path of a file without the suffix that the kernel adds when the file is deleted.
pub(crate) fn without_deleted(path: &Path) -> &Path {
    let bytes = path.as_os_str().as_bytes();
    Path::new(OsStr::from_bytes(
        bytes.strip_suffix(b" (deleted)").unwrap_or(bytes),
    ))
}

/// Returns true if the file begins with the magic of an ELF file.
pub(crate) fn is_elf(file: &File) -> bool {
    let mut magic = [0; 4];
    file.read_near(&mut magic, 0).is_ok() && magic == *b"\x7fELF"
}

/// Returns the first bytes at an offset of a file.
pub(crate) fn head(file: &File, offset: u64) -> Option<[u8; 8]> {
    let mut head = [0; 8];
    file.read_near(&mut head, offset).ok().map(|()| head)
}

/// Returns true if the file may contain dex files elsewhere than at its start.
pub(crate) fn is_container(file: &File) -> bool {
    let mut magic = [0; 4];
    file.read_near(&mut magic, 0).is_ok() && container::is_container(&magic)
}

/// Returns the size of the file in bytes, or 0 if it is not known.
pub(crate) fn len(file: &File) -> u64 {
    file.metadata().map_or(0, |meta| meta.len())
}

/// Reads `len` bytes of the file from `offset` on, or fewer at its end.
pub fn read(file: &File, offset: u64, len: u64) -> io::Result<Vec<u8>> {
    let len = file.metadata()?.len().saturating_sub(offset).min(len);
    if len > MAX_FILE {
        return Err(io::Error::other(format!(
            "{len} bytes are more than a profiler reads"
        )));
    }
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
    let filled = file.read_at(&mut bytes, offset)?;
    bytes.truncate(filled);
    Ok(bytes)
}
