//! How are the big-endian numbers of a class file read?

use crate::NotRewritten;
use crate::error::Result;

/// The part of a class file that has not been read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'c> {
    rest: &'c [u8],
    /// File offset of the rest.
    offset: usize,
}

impl<'c> Reader<'c> {
    /// Reads `bytes`, which are at `offset` of the file.
    pub(crate) const fn new(bytes: &'c [u8], offset: usize) -> Self {
        Self {
            rest: bytes,
            offset,
        }
    }

    /// Returns an error at this place.
    pub(crate) const fn error(&self, field: &'static str, problem: &'static str) -> NotRewritten {
        NotRewritten::Invalid {
            field,
            offset: self.offset,
            problem,
        }
    }

    /// File offset of the next byte.
    pub(crate) const fn offset(&self) -> usize {
        self.offset
    }

    /// Returns true if nothing is left.
    pub(crate) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads `length` bytes.
    pub(crate) fn bytes(&mut self, length: usize, field: &'static str) -> Result<&'c [u8]> {
        let Some((bytes, rest)) = self.rest.split_at_checked(length) else {
            return Err(self.error(field, "it is longer than the file"));
        };
        self.rest = rest;
        self.offset = self.offset.saturating_add(length);
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N]> {
        let Some((bytes, rest)) = self.rest.split_first_chunk() else {
            return Err(self.error(field, "it is longer than the file"));
        };
        self.rest = rest;
        self.offset = self.offset.saturating_add(N);
        Ok(*bytes)
    }

    /// Reads one byte.
    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8> {
        self.array(field).map(u8::from_be_bytes)
    }

    /// Reads two bytes.
    pub(crate) fn u16(&mut self, field: &'static str) -> Result<u16> {
        self.array(field).map(u16::from_be_bytes)
    }

    /// Reads two bytes.
    pub(crate) fn i16(&mut self, field: &'static str) -> Result<i16> {
        self.array(field).map(i16::from_be_bytes)
    }

    /// Reads four bytes.
    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32> {
        self.array(field).map(u32::from_be_bytes)
    }

    /// Reads four bytes.
    pub(crate) fn i32(&mut self, field: &'static str) -> Result<i32> {
        self.array(field).map(i32::from_be_bytes)
    }

    /// Reads a part that follows its length in four bytes.
    pub(crate) fn part(&mut self, field: &'static str) -> Result<Self> {
        let length = self.u32(field)?;
        let offset = self.offset;
        let rest = self.bytes(usize::try_from(length).unwrap_or(usize::MAX), field)?;
        Ok(Self { rest, offset })
    }

    /// Returns what is left.
    pub(crate) const fn rest(&self) -> &'c [u8] {
        self.rest
    }
}
