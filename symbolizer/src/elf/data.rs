//! The bytes of an ELF file, with a limit on how many are read.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most bytes that are read of a file or unpacked from its compressed sections, in total. A sparse file can claim sections of any size.
const MAX_READ: u64 = 1 << 30;

/// How many bytes are read at once, so that memory grows only with the bytes that exist.
const PIECE: usize = 1 << 20;

/// The bytes of an ELF file. Reads beyond its end fail, and so do reads beyond [`MAX_READ`] in total.
#[derive(Debug)]
pub(super) struct Data<'d> {
    place: Place<'d>,
    /// Bytes that may still be read or unpacked.
    left: AtomicU64,
}

/// In memory, or in a part of a file.
#[derive(Debug)]
enum Place<'d> {
    Memory(Cow<'d, [u8]>),
    File {
        file: Box<dyn FileBytes + 'd>,
        start: u64,
        size: u64,
    },
}

/// A file that can be read at any offset.
pub trait FileBytes: fmt::Debug {
    /// Fills a buffer with the bytes at an offset.
    ///
    /// # Errors
    /// The file ends too early, or cannot be read.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
}

impl<F: FileBytes + ?Sized> FileBytes for &F {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        (**self).read_exact_at(buffer, offset)
    }
}

impl FileBytes for File {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        FileExt::read_exact_at(self, buffer, offset)
    }
}

/// Why a part of an ELF file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Problem {
    #[error("reaches beyond the end of the file")]
    BeyondEnd,
    #[error("more than is read of one file")]
    TooMuch,
    /// It violates its format. The text says how.
    #[error("{0}")]
    Format(String),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<object::Error> for Problem {
    fn from(error: object::Error) -> Self {
        Self::Format(error.to_string())
    }
}

impl<'d> Data<'d> {
    /// Reads a file from `start` on, `size` bytes.
    pub(super) fn in_file(file: Box<dyn FileBytes + 'd>, start: u64, size: u64) -> Self {
        Self::new(Place::File { file, start, size })
    }

    pub(super) fn in_memory(bytes: impl Into<Cow<'d, [u8]>>) -> Self {
        Self::new(Place::Memory(bytes.into()))
    }

    fn new(place: Place<'d>) -> Self {
        Self {
            place,
            left: AtomicU64::new(MAX_READ),
        }
    }

    /// The offset of the ELF file in the file that is mapped. It is not 0 in an archive.
    pub(super) fn start(&self) -> u64 {
        match self.place {
            Place::Memory(_) => 0,
            Place::File { start, .. } => start,
        }
    }

    /// The size in bytes.
    pub(super) fn size(&self) -> u64 {
        match &self.place {
            Place::Memory(bytes) => bytes.len() as u64,
            Place::File { size, .. } => *size,
        }
    }

    /// The `size` bytes at `offset`.
    pub(super) fn read(&self, offset: u64, size: u64) -> Result<Cow<'_, [u8]>, Problem> {
        let end = offset
            .checked_add(size)
            .filter(|&end| end <= self.size())
            .ok_or(Problem::BeyondEnd)?;
        match &self.place {
            Place::Memory(bytes) => Ok(Cow::Borrowed(
                bytes.get(offset as usize..end as usize).unwrap_or_default(),
            )),
            Place::File { file, start, .. } => {
                self.take(size)?;
                let at = start.checked_add(offset).ok_or(Problem::BeyondEnd)?;
                Ok(Cow::Owned(read_pieces(file.as_ref(), at, size as usize)?))
            }
        }
    }

    /// Subtracts `bytes` from what may still be read.
    pub(super) fn take(&self, bytes: u64) -> Result<(), Problem> {
        self.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(bytes)
            })
            .map(drop)
            .map_err(|_| Problem::TooMuch)
    }
}

/// Reads `size` bytes at `at` of a file.
fn read_pieces(file: &dyn FileBytes, mut at: u64, size: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size)?;
    while bytes.len() < size {
        let before = bytes.len();
        bytes.resize(size.min(before.saturating_add(PIECE)), 0);
        let piece = bytes.get_mut(before..).unwrap_or_default();
        file.read_exact_at(piece, at)?;
        at = at.saturating_add(piece.len() as u64);
    }
    Ok(bytes)
}
