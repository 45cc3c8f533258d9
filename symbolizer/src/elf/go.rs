//! Reads the function table of Go programs (pclntab).
//!
//! Each Go program has a table of its functions for its own stack traces. It remains when symbols are stripped. Its layout is that of
//! `runtime/symtab.go` and `debug/gosym/pclntab.go`. It changed with Go 1.16, 1.18 and 1.20. Since Go 1.26 the table does not have the
//! start of the code: the program's module data has it.

use std::borrow::Cow;

use object::elf;

use super::parts::{Encoding, Section};
use super::reader::ElfReader;

/// The names of the table's section. The second one is for position-independent programs before Go 1.26.
const SECTIONS: [&str; 2] = [".gopclntab", ".data.rel.ro.gopclntab"];
/// The section into which other linkers than Go's merge the second one, with other data.
const MERGED: &str = ".data.rel.ro";
/// A section of every Go program since 1.13.
const BUILD_INFO: &str = ".go.buildinfo";
/// The alignment of a table within other data, and the largest section of other data that is searched, in bytes.
const ALIGNMENT: usize = 8;
const MAX_MERGED: u64 = 256 << 20;
/// The section of the module data, since Go 1.26.
const MODULE_DATA: &str = ".go.module";
/// The index of the word in it with the start of the code: after a pointer, six slices and three addresses.
const MODULE_TEXT: u64 = 22;
/// The largest relocation section that is searched, in bytes.
const MAX_RELOCATIONS: u64 = 64 << 20;
/// The most functions that are read.
const MAX_FUNCTIONS: usize = 1 << 21;

/// A function of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GoFunction {
    /// First address.
    pub(super) start: u64,
    /// The address after its last byte.
    pub(super) end: u64,
    /// Offset of its name among the table's names.
    pub(super) name: u32,
}

/// The functions of a table.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct GoFunctions {
    /// The functions by ascending address.
    pub(super) functions: Vec<GoFunction>,
    /// The bytes of the names, each terminated by NUL.
    pub(super) names: Box<[u8]>,
}

/// Returns the functions in a file's table. None if it has no table, or none of a known version.
pub(super) fn functions(image: &ElfReader<'_>) -> Option<GoFunctions> {
    let (section, bytes) = table_of(image)?;
    let table = Table::new(image, &bytes)?;
    let base = match table.version {
        Version::Go12 | Version::Go116 => 0,
        Version::Go118 => text_start(image, &section, &table)?,
    };
    let is_code = |address: u64| {
        let within = |section: &Section| {
            let into = address.checked_sub(section.address);
            section.is_executable() && into.is_some_and(|into| into < section.size)
        };
        image.sections.iter().any(within)
    };
    let functions: Vec<_> = (0..table.count)
        .map_while(|index| table.function(index))
        .map(|function| GoFunction {
            start: function.start.wrapping_add(base),
            end: function.end.wrapping_add(base),
            ..function
        })
        .filter(|function| function.start < function.end && is_code(function.start))
        .collect();
    Some(GoFunctions {
        functions,
        names: table.bytes.get(table.names..)?.into(),
    })
}

/// Returns the section with a file's table, cut to start at the table, and its bytes.
fn table_of<'i>(image: &'i ElfReader<'_>) -> Option<(Section, Cow<'i, [u8]>)> {
    if let Some(section) = SECTIONS.iter().find_map(|name| image.section(name)) {
        return Some((section.clone(), image.bytes(section).ok()?));
    }
    let merged = image
        .section(MERGED)
        .filter(|_| image.section(BUILD_INFO).is_some());
    let section = merged.filter(|section| section.size <= MAX_MERGED)?;
    let bytes = image.bytes(section).ok()?;
    let mut places = (0..bytes.len()).step_by(ALIGNMENT);
    let at = places.find(|at| {
        let table = bytes.get(*at..).unwrap_or_default();
        is_header(image.encoding(), table)
    })?;
    let behind = u64::try_from(at).ok()?;
    let table = Section {
        address: section.address.checked_add(behind)?,
        offset: section.offset.checked_add(behind)?,
        size: section.size.checked_sub(behind)?,
        ..section.clone()
    };
    Some((table, bytes.get(at..)?.to_vec().into()))
}

/// Returns true if a table of a known version begins there.
fn is_header(encoding: Encoding, bytes: &[u8]) -> bool {
    let version = encoding.u32(bytes, 0).and_then(Version::of);
    let sizes = [encoding.address_size()];
    version.is_some()
        && bytes.get(4..6) == Some(&[0, 0])
        && bytes
            .get(6)
            .is_some_and(|quantum| [1, 2, 4].contains(quantum))
        && bytes.get(7..8) == Some(&sizes)
}

/// The layout of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    /// From Go 1.2 on: all offsets count from the table's start.
    Go12,
    /// From Go 1.16 on: the parts have separate offsets.
    Go116,
    /// From Go 1.18 on, and from 1.20 on with another magic number: addresses are relative to the start of the code.
    Go118,
}

impl Version {
    /// The version for a table's magic number.
    const fn of(magic: u32) -> Option<Self> {
        match magic {
            0xffff_fffb => Some(Self::Go12),
            0xffff_fffa => Some(Self::Go116),
            0xffff_fff0 | 0xffff_fff1 => Some(Self::Go118),
            _ => None,
        }
    }
}

/// A table, and the offsets of its parts.
struct Table<'t> {
    bytes: &'t [u8],
    encoding: Encoding,
    version: Version,
    count: usize,
    /// The offsets of the names, of the pairs of an address and a function description's offset, and of the base of those offsets.
    names: usize,
    pairs: usize,
    functions: usize,
}

impl<'t> Table<'t> {
    fn new(image: &ElfReader<'_>, bytes: &'t [u8]) -> Option<Self> {
        let encoding = image.encoding();
        let version = Version::of(
            encoding
                .u32(bytes, 0)
                .filter(|_| is_header(encoding, bytes))?,
        )?;
        let mut table = Self {
            bytes,
            encoding,
            version,
            count: 0,
            names: 0,
            pairs: 0,
            functions: 0,
        };
        table.count = table.header(0)?.min(MAX_FUNCTIONS);
        match version {
            Version::Go12 => table.pairs = table.header_at(1)?,
            Version::Go116 => (table.names, table.pairs) = (table.header(2)?, table.header(6)?),
            Version::Go118 => (table.names, table.pairs) = (table.header(3)?, table.header(7)?),
        }
        table.functions = match version {
            Version::Go12 => 0,
            Version::Go116 | Version::Go118 => table.pairs,
        };
        Some(table)
    }

    /// Offset of a word of the header.
    fn header_at(&self, index: usize) -> Option<usize> {
        let size = usize::from(self.encoding.address_size());
        index.checked_mul(size)?.checked_add(8)
    }

    /// A word of the header, read as an offset.
    fn header(&self, index: usize) -> Option<usize> {
        let word = self.encoding.address(self.bytes, self.header_at(index)?)?;
        usize::try_from(word).ok()
    }

    /// Size of a number in the pairs, in bytes.
    fn number_size(&self) -> usize {
        match self.version {
            Version::Go12 | Version::Go116 => self.encoding.address_size().into(),
            Version::Go118 => 4,
        }
    }

    /// Reads a number in the pairs, or the one that precedes a description.
    fn number(&self, at: usize) -> Option<u64> {
        match self.number_size() {
            4 => self.encoding.u32(self.bytes, at).map(u64::from),
            _ => self.encoding.address(self.bytes, at),
        }
    }

    /// Returns a function with the addresses as they are in the table. It ends where the next one begins. The last pair is only an end.
    fn function(&self, index: usize) -> Option<GoFunction> {
        let size = self.number_size();
        let at = |number: usize| {
            let number = index.checked_mul(2)?.checked_add(number)?;
            self.number(self.pairs.checked_add(number.checked_mul(size)?)?)
        };
        let description = self
            .functions
            .checked_add(usize::try_from(at(1)?).ok()?)?
            .checked_add(size)?;
        Some(GoFunction {
            start: at(0)?,
            end: at(2)?,
            name: self.encoding.u32(self.bytes, description)?,
        })
    }
}

/// Finds the start of the code for a table with relative addresses: in the table's header, or in the program's module data.
fn text_start(image: &ElfReader<'_>, section: &Section, table: &Table<'_>) -> Option<u64> {
    let word_size = u64::from(image.encoding().address_size());
    let in_header = table.header_at(2)?;
    let of_module = || {
        let module = image.section(MODULE_DATA)?;
        let at = MODULE_TEXT.checked_mul(word_size)?;
        word_of(image, module, at)
    };
    let offset = u64::try_from(in_header).ok()?;
    word_of(image, section, offset).or_else(of_module)
}

/// Reads a word of a section as it is when the program is loaded at its link address. None if it is zero.
fn word_of(image: &ElfReader<'_>, section: &Section, offset: u64) -> Option<u64> {
    let bytes = image.bytes(section).ok()?;
    let word = image
        .encoding()
        .address(&bytes, usize::try_from(offset).ok()?)?;
    Some(word)
        .filter(|word| *word != 0)
        .or_else(|| relocated(image, section.address.checked_add(offset)?))
}

/// Returns the value at an address of a position-independent program, from its relative relocation.
fn relocated(image: &ElfReader<'_>, address: u64) -> Option<u64> {
    /// Size of a relocation in bytes: the address, the kind, the addend.
    const ENTRY: usize = 24;
    let relative = match image.machine {
        elf::EM_X86_64 => elf::R_X86_64_RELATIVE,
        elf::EM_AARCH64 => elf::R_AARCH64_RELATIVE,
        _ => return None,
    };
    let is_relocations =
        |section: &&Section| section.kind == elf::SHT_RELA && section.size <= MAX_RELOCATIONS;
    let mut sections = image.sections.iter().filter(is_relocations);
    sections.find_map(|section| {
        let bytes = image.bytes(section).ok()?;
        let number = |entry: &[u8], index: usize| image.encoding().address(entry, index);
        let mut entries = bytes.chunks_exact(ENTRY);
        let found = entries.find(|entry| {
            number(entry, 0) == Some(address) && number(entry, 8) == Some(relative.into())
        });
        number(found?, 16)
    })
}
