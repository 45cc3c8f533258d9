//! Reads fixed-size fields from bytes, without `unsafe` and without panics.

use crate::abi::{Part, VmFile};

/// Reads one field after the other. Bytes beyond the end are zero, but callers pass as many bytes as the structure has.
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub fn take<const N: usize>(&mut self) -> [u8; N] {
        match self.rest.split_first_chunk::<N>() {
            Some((field, rest)) => {
                self.rest = rest;
                *field
            }
            None => {
                self.rest = &[];
                [0; N]
            }
        }
    }

    pub fn u8(&mut self) -> u8 {
        u8::from_le_bytes(self.take())
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }

    pub fn i16(&mut self) -> i16 {
        i16::from_le_bytes(self.take())
    }

    pub fn i64(&mut self) -> i64 {
        i64::from_le_bytes(self.take())
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    pub fn file(&mut self) -> VmFile {
        VmFile {
            address: self.u64(),
            size: self.u64(),
            fd: self.u32(),
            reserved: self.u32(),
        }
    }

    pub fn part(&mut self) -> Part {
        Part {
            offset: self.u32(),
            entry_size: self.u32(),
            capacity: self.u32(),
            count: self.u32(),
        }
    }
}

/// Returns the offset of a table's entry in the tunnel, in bytes.
pub fn part_at(part: &Part, index: usize) -> u64 {
    u64::from(part.entry_size)
        .saturating_mul(index as u64)
        .saturating_add(u64::from(part.offset))
}
