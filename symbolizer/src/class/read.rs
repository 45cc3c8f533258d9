//! Reads the big-endian numbers of class files.

use crate::{Error, Result};

/// The rest of a class file that has not been read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'d> {
    rest: &'d [u8],
    /// Offset of the rest in the file.
    offset: u64,
}

impl<'d> Reader<'d> {
    pub(super) const fn new(bytes: &'d [u8]) -> Self {
        Self {
            rest: bytes,
            offset: 0,
        }
    }

    /// Returns an error of the field that was being read.
    pub(super) const fn error(&self, field: &'static str, problem: &'static str) -> Error {
        Error::Class {
            field,
            offset: self.offset,
            problem,
        }
    }

    /// Reads so many bytes.
    pub(super) fn bytes(&mut self, len: usize, field: &'static str) -> Result<&'d [u8]> {
        let ends = || self.error(field, "the file ends in it");
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or_else(ends)?;
        self.rest = rest;
        self.offset = self.offset.saturating_add(len as u64);
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N]> {
        let ends = || self.error(field, "the file ends in it");
        let (bytes, rest) = self.rest.split_first_chunk().ok_or_else(ends)?;
        self.rest = rest;
        self.offset = self.offset.saturating_add(N as u64);
        Ok(*bytes)
    }

    pub(super) fn u8(&mut self, field: &'static str) -> Result<u8> {
        self.array(field).map(u8::from_be_bytes)
    }

    pub(super) fn u16(&mut self, field: &'static str) -> Result<u16> {
        self.array(field).map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self, field: &'static str) -> Result<u32> {
        self.array(field).map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self, field: &'static str) -> Result<u64> {
        self.array(field).map(u64::from_be_bytes)
    }

    /// Reads a part that starts with its length in four bytes.
    pub(super) fn part(&mut self, field: &'static str) -> Result<Self> {
        let len = self.u32(field)?;
        let offset = self.offset;
        let rest = self.bytes(usize::try_from(len).unwrap_or(usize::MAX), field)?;
        Ok(Self { rest, offset })
    }
}
