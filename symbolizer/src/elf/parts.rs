//! The parts of an ELF file: sections, segments, numbers, strings.

use object::{Endianness, U32, U64, elf};

/// A section header.
#[derive(Debug, Clone, Default)]
pub(super) struct Section {
    /// For a packed `.zdebug_info`, it is `.debug_info`.
    pub(super) name: String,
    pub(super) kind: u32,
    pub(super) flags: u64,
    pub(super) packing: Packing,
    pub(super) address: u64,
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) link: u32,
}

/// How the bytes of a section are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Packing {
    #[default]
    Plain,
    /// After a compression header (`SHF_COMPRESSED`).
    Header,
    /// A `.zdebug_*` section of GNU's older tools and of Go before 1.19: after `ZLIB` and the size.
    Zlib,
}

impl Section {
    /// Returns true if it is part of the program in memory.
    pub(super) fn is_loaded(&self) -> bool {
        self.flags & u64::from(elf::SHF_ALLOC) != 0
    }

    /// Returns true if it holds instructions.
    pub(super) fn is_executable(&self) -> bool {
        self.flags & u64::from(elf::SHF_EXECINSTR) != 0
    }
}

/// A loaded part of the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    pub(super) offset: u64,
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) executable: bool,
}

/// The encoding of numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Encoding {
    pub(super) endian: Endianness,
    pub(super) is_64: bool,
}

impl Encoding {
    /// The number in the four bytes at `at`.
    pub(super) fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let field = bytes.get(at..)?.first_chunk()?;
        Some(U32::from_bytes(*field).get(self.endian))
    }

    /// The address, of 4 or 8 bytes, at `at`.
    pub(super) fn address(self, bytes: &[u8], at: usize) -> Option<u64> {
        if !self.is_64 {
            return self.u32(bytes, at).map(u64::from);
        }
        let field = bytes.get(at..)?.first_chunk()?;
        Some(U64::from_bytes(*field).get(self.endian))
    }

    pub(super) fn address_size(self) -> u8 {
        if self.is_64 { 8 } else { 4 }
    }

    pub(super) fn endian(self) -> gimli::RunTimeEndian {
        match self.endian {
            Endianness::Big => gimli::RunTimeEndian::Big,
            Endianness::Little => gimli::RunTimeEndian::Little,
        }
    }
}

/// The bytes before the first NUL.
pub(super) fn c_string(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}
