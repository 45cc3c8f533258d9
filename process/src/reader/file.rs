//! Files of another process.
//!
//! Reading a file may block as long as its file system likes, and so may closing it. A session holds a handle (`O_PATH`), which can do
//! neither. Whoever carries out a request opens the file of the handle.

use super::{Request, fill};
use rustix::fs::{AtFlags, StatxFlags, fstat, makedev, statx};
use rustix::io::Errno;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::{Rc, Weak};
use varid_model::Pid;
use varid_symbolizer::elf::FileBytes;

/// The most bytes of a file in one request: each request has a deadline.
const MAX_READ: usize = 1 << 18;
/// Bytes that are read if fewer are requested: headers and tables are adjacent. A power of two.
const BLOCK: usize = 1 << 14;
/// The most blocks that are kept: names may be anywhere in their table.
const MAX_BLOCKS: usize = 256;

thread_local! {
    /// The blocks that were read last.
    static BLOCKS: RefCell<VecDeque<Block>> = const { RefCell::new(VecDeque::new()) };
}

/// A regular file that a process has opened or mapped.
#[derive(Debug, Clone)]
pub struct ForeignFile {
    /// The process, whose owner is charged for waiting for the file.
    pid: Pid,
    handle: Rc<OwnedFd>,
    /// The offset of the next read by [`Read`].
    at: Cell<u64>,
    /// A read has failed.
    has_failed: Cell<bool>,
}

/// The metadata of a file, as known without a request to a server of its file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMetadata {
    device: u64,
    inode: u64,
    len: u64,
    /// Seconds and nanoseconds.
    changed: (i64, i64),
    uid: u32,
}

impl FileMetadata {
    /// `st_dev`.
    pub const fn dev(&self) -> u64 {
        self.device
    }

    /// The inode.
    pub const fn ino(&self) -> u64 {
        self.inode
    }

    /// Size in bytes.
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Returns true if the file is empty.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its last change, in seconds and nanoseconds since 1970.
    pub const fn changed(&self) -> (i64, i64) {
        self.changed
    }

    /// Its owner.
    pub const fn uid(&self) -> u32 {
        self.uid
    }
}

/// Some bytes of a file.
struct Block {
    file: Weak<OwnedFd>,
    start: u64,
    bytes: Vec<u8>,
}

impl ForeignFile {
    /// The file of a handle that a process has opened or mapped.
    pub(super) fn new(pid: Pid, handle: OwnedFd) -> Self {
        Self {
            pid,
            handle: Rc::new(handle),
            at: Cell::new(0),
            has_failed: Cell::new(false),
        }
    }

    /// Returns the current metadata.
    pub fn metadata(&self) -> io::Result<FileMetadata> {
        metadata_of(&self.handle)
    }

    /// Returns true if a read has failed since the last call.
    pub(crate) fn take_failure(&self) -> bool {
        self.has_failed.take()
    }

    /// Reads bytes from an offset on. Fewer than the buffer has room for only at the end of the file.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let (mut read, mut at) = (0usize, offset);
        for piece in buffer.chunks_mut(MAX_READ) {
            let here = self.request(piece, at)?;
            read = read.saturating_add(here);
            if here < piece.len() {
                break;
            }
            at = at.saturating_add(here as u64);
        }
        Ok(read)
    }

    /// Fills a buffer with the bytes from an offset on.
    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match self.read_at(buffer, offset)? {
            read if read == buffer.len() => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Fills a buffer with bytes that are current, or as they were when a block around them was read.
    pub(crate) fn read_near(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut reader = self;
        reader.seek(SeekFrom::Start(offset))?;
        reader.read_exact(buffer)
    }

    /// Returns the same file, without anything that was read before.
    pub(crate) fn reread(&self) -> io::Result<Self> {
        Ok(Self::new(self.pid, self.handle.try_clone()?))
    }

    fn request(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let request = Request::Read {
            offset,
            len: buffer.len() as u64,
        };
        fill(self.pid, &request, Some(&self.handle), buffer)
            .inspect_err(|_| self.has_failed.set(true))
    }

    /// Reads from the block around an offset.
    fn read_in_block(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        BLOCKS.with_borrow_mut(|blocks| {
            let start = offset & !(BLOCK as u64).wrapping_sub(1);
            let is_it = |block: &Block| {
                block.start == start && block.file.as_ptr() == Rc::as_ptr(&self.handle)
            };
            // The one that was read last is most likely requested again.
            let known = blocks.iter().rposition(is_it);
            if known.is_none() {
                let mut bytes = vec![0; BLOCK];
                let read = self.read_at(&mut bytes, start)?;
                bytes.truncate(read);
                if blocks.len() >= MAX_BLOCKS {
                    blocks.pop_front();
                }
                let file = Rc::downgrade(&self.handle);
                blocks.push_back(Block { file, start, bytes });
            }
            let block = match known {
                Some(place) => blocks.get(place),
                None => blocks.back(),
            };
            let bytes = block.map_or(&[][..], |block| &block.bytes);
            let within = usize::try_from(offset.saturating_sub(start)).unwrap_or(usize::MAX);
            let from = bytes.get(within..).unwrap_or_default();
            let len = from.len().min(buffer.len());
            let (to, from) = (buffer.get_mut(..len), from.get(..len));
            to.unwrap_or_default()
                .copy_from_slice(from.unwrap_or_default());
            Ok(len)
        })
    }
}

/// Returns the metadata of a handle's file, without a request to a server of its file system.
fn metadata_of(handle: &OwnedFd) -> io::Result<FileMetadata> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    match statx(handle, c"", flags, StatxFlags::BASIC_STATS) {
        Ok(found) => Ok(FileMetadata {
            device: makedev(found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            len: found.stx_size,
            changed: (found.stx_mtime.tv_sec, found.stx_mtime.tv_nsec.into()),
            uid: found.stx_uid,
        }),
        // Before Linux 4.11.
        Err(Errno::NOSYS) => {
            let found = fstat(handle)?;
            #[allow(clippy::useless_conversion, clippy::unnecessary_fallible_conversions)]
            // Other types on ARMv7.
            Ok(FileMetadata {
                device: found.st_dev.into(),
                inode: found.st_ino.into(),
                len: u64::try_from(found.st_size).unwrap_or(0),
                changed: (
                    found.st_mtime.into(),
                    i64::try_from(found.st_mtime_nsec).unwrap_or(0),
                ),
                uid: found.st_uid,
            })
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the `st_dev` of a handle's file.
pub(super) fn device_of(handle: &OwnedFd) -> io::Result<u64> {
    metadata_of(handle).map(|found| found.device)
}

impl Read for &ForeignFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let at = self.at.get();
        let read = match buffer.len() < BLOCK {
            true => self.read_in_block(buffer, at)?,
            false => self.read_at(buffer, at)?,
        };
        self.at.set(at.saturating_add(read as u64));
        Ok(read)
    }
}

impl Seek for &ForeignFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.get().checked_add_signed(by),
            SeekFrom::End(by) => self.metadata()?.len().checked_add_signed(by),
        };
        let at = at.ok_or(io::ErrorKind::InvalidInput)?;
        self.at.set(at);
        Ok(at)
    }
}

/// The handle, of which nothing can be read: for system calls that take a path, by `/proc/self/fd`.
impl AsFd for ForeignFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

impl FileBytes for ForeignFile {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        Self::read_exact_at(self, buffer, offset)
    }
}

#[cfg(test)]
impl ForeignFile {
    /// A file of this process.
    pub(crate) fn own(file: std::fs::File) -> Self {
        Self::new(Pid::new(std::process::id()), file.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_is_read_as_it_is_in_pieces_and_blocks() {
        let bytes: Vec<u8> = (0..3 * MAX_READ + 77)
            .map(|at| (at / 251 + at) as u8)
            .collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let foreign = ForeignFile::own(file.try_clone().unwrap());
        let mut all = vec![0; bytes.len() + 9];
        assert_eq!(foreign.read_at(&mut all, 0).unwrap(), bytes.len());
        assert_eq!(all[..bytes.len()], bytes);
        let mut reader = &foreign;
        for (offset, len) in [
            (0, 4),
            (BLOCK - 3, 7),
            (BLOCK, 2),
            (2 * BLOCK + 5, BLOCK + 1),
            (bytes.len() - 5, 5),
        ] {
            let mut found = vec![0; len];
            reader.seek(SeekFrom::Start(offset as u64)).unwrap();
            reader.read_exact(&mut found).unwrap();
            assert_eq!(found, bytes[offset..offset + len], "{offset}");
        }
        assert_eq!(reader.read(&mut [0; 4]).unwrap(), 0);
        assert!(
            foreign
                .read_exact_at(&mut [0; 6], bytes.len() as u64 - 5)
                .is_err()
        );
        // Names that lie anywhere in a table of 40 blocks take no more requests than it has blocks.
        let before = super::super::requests();
        for at in 0..4_000 {
            let offset = (at * 7_919 % (40 * BLOCK)) as u64;
            foreign.read_near(&mut [0; 2], offset).unwrap();
        }
        assert!(super::super::requests() - before <= 42);
        // What was changed meanwhile is read anew where that is asked for.
        file.rewind().unwrap();
        file.write_all(b"changed").unwrap();
        let mut found = [0; 7];
        foreign.reread().unwrap().read_near(&mut found, 0).unwrap();
        assert_eq!(&found, b"changed");
        // Another file's block is none of this one's.
        let other = ForeignFile::own(tempfile::tempfile().unwrap());
        assert!(other.read_near(&mut [0; 4], 0).is_err());
        let expected = std::os::unix::fs::MetadataExt::ino(&file.metadata().unwrap());
        let found = foreign.metadata().unwrap();
        assert_eq!((found.ino(), found.len()), (expected, bytes.len() as u64));
    }
}
