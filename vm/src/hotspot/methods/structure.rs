//! How is a structure of the VM read: in bulk, with a limit?

use super::error::{MethodError, Result};
use crate::hotspot::member::{Member, Width};
use std::ops::Range;
use varid_model::Address;
use varid_tunnel::Memory;

/// The copy of a structure, or of an array.
#[derive(Debug, Clone)]
pub(super) struct Structure {
    /// What it is, for errors.
    what: &'static str,
    /// Where it was read.
    pub(super) address: Address,
    /// Its bytes.
    pub(super) bytes: Vec<u8>,
}

impl Structure {
    /// Reads `size` bytes at an address, at most `most`.
    pub(super) fn read(
        what: &'static str,
        address: Address,
        size: u64,
        most: u64,
        memory: &dyn Memory,
    ) -> Result<Self> {
        if size > most {
            return Err(MethodError::TooLarge { what, size, most });
        }
        // A size that is a lie takes no more memory than there is.
        let size = usize::try_from(size).unwrap_or_default();
        let mut bytes = Vec::new();
        while bytes.len() < size {
            let known = bytes.len();
            bytes.resize(known.saturating_add(CHUNK).min(size), 0);
            let start = address.wrapping_add(known as u64);
            let out = bytes.get_mut(known..).unwrap_or_default();
            let read = memory.read(start.get(), out);
            read.map_err(|error| MethodError::Memory { what, error })?;
        }
        Ok(Self {
            what,
            address,
            bytes,
        })
    }

    /// Reads a structure up to the end of the last of these members.
    pub(super) fn with_members(
        what: &'static str,
        address: Address,
        members: &[Member],
        memory: &dyn Memory,
    ) -> Result<Self> {
        let size = members.iter().map(|member| end(*member)).max();
        Self::read(what, address, size.unwrap_or(0), MAX_STRUCTURE, memory)
    }

    /// Returns a member, an unsigned number.
    pub(super) fn number(&self, member: Member) -> Result<u64> {
        self.part(&self.bytes).number(member)
    }

    /// Returns a member, a signed number.
    pub(super) fn signed(&self, member: Member) -> Result<i64> {
        self.part(&self.bytes).signed(member)
    }

    /// Returns a member, a pointer.
    pub(super) fn pointer(&self, member: Member) -> Result<Address> {
        self.number(member).map(Address::new)
    }

    /// A structure in these bytes, which are a part of the copy.
    pub(super) const fn part<'s>(&self, bytes: &'s [u8]) -> Part<'s> {
        let what = self.what;
        Part { what, bytes }
    }

    /// A copy of a part, which is at these addresses.
    pub(super) fn range(&self, range: &Range<Address>) -> Result<Self> {
        let place = |address: Address| {
            let offset = address.offset_from(self.address);
            offset.and_then(|offset| usize::try_from(offset).ok())
        };
        let bytes = place(range.start)
            .zip(place(range.end))
            .and_then(|(start, end)| self.bytes.get(start..end));
        let outside = || {
            let why = "a part is outside of what was read";
            MethodError::implausible(self.what, range.start.get(), why)
        };
        Ok(Self {
            what: self.what,
            address: range.start,
            bytes: bytes.ok_or_else(outside)?.to_owned(),
        })
    }

    /// The pointers that the bytes are.
    pub(super) fn pointers(&self) -> Box<[Address]> {
        let (words, _) = self.bytes.as_chunks();
        words
            .iter()
            .map(|word| Address::new(u64::from_le_bytes(*word)))
            .collect()
    }
}

/// A copy of one of an array's structures.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part<'s> {
    what: &'static str,
    bytes: &'s [u8],
}

impl Part<'_> {
    /// Returns a member, an unsigned number.
    pub(super) fn number(self, member: Member) -> Result<u64> {
        let offset = member.offset.bytes() as usize;
        let len = member.width.bytes() as usize;
        let found = self.bytes.get(offset..).and_then(|rest| rest.get(..len));
        let outside = || {
            let why = "a member is outside of what was read";
            MethodError::implausible(self.what, offset as u64, why)
        };
        let found = found.ok_or_else(outside)?;
        let bytes = found.iter().rev();
        Ok(bytes.fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Returns a member, a signed number.
    pub(super) fn signed(self, member: Member) -> Result<i64> {
        let number = self.number(member)?;
        Ok(match member.width {
            Width::One => i64::from((number as u8).cast_signed()),
            Width::Two => i64::from((number as u16).cast_signed()),
            Width::Four => i64::from((number as u32).cast_signed()),
            Width::Eight => number.cast_signed(),
        })
    }
}

/// Bytes that are read at once.
const CHUNK: usize = 1 << 20;
/// The largest structure of which members are read, in bytes.
const MAX_STRUCTURE: u64 = 1 << 12;

fn end(member: Member) -> u64 {
    u64::from(member.offset.bytes()).saturating_add(member.width.bytes().into())
}
