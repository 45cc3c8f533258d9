//! Which functions does Go's own table list?
//!
//! Each program of Go has a table of its functions, for its own stack traces, which stays when symbols are stripped. Its layout is
//! that of `runtime/symtab.go` and `debug/gosym/pclntab.go`: it changed with Go 1.16, 1.18 and 1.20; since Go 1.26 the table does
//! not say where the code begins, which the program's module data does.

use std::borrow::Cow;

use object::elf;

use super::parts::{Encoding, Section};
use super::reader::ElfReader;

/// Names of the table's section: the second one in programs that can be loaded anywhere, before Go 1.26.
const SECTIONS: [&str; 2] = [".gopclntab", ".data.rel.ro.gopclntab"];
/// What other linkers than Go's own make of the second one, with other data.
const MERGED: &str = ".data.rel.ro";
/// A section of every program of Go since 1.13.
const BUILD_INFO: &str = ".go.buildinfo";
/// Where in other data a table may begin, and so large that data is searched.
const ALIGNMENT: usize = 8;
const MAX_MERGED: u64 = 256 << 20;
/// The section of the module data, since Go 1.26.
const MODULE_DATA: &str = ".go.module";
/// The word of it that says where the code begins: behind a pointer, six slices and three addresses.
const MODULE_TEXT: u64 = 22;
/// The longest section of relocations that is searched.
const MAX_RELOCATIONS: u64 = 64 << 20;
/// More functions are not read.
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
    /// By ascending address.
    pub(super) functions: Vec<GoFunction>,
    /// What their names are in, each with a NUL behind it.
    pub(super) names: Box<[u8]>,
}

/// The functions that a file's table lists; None: it has no table, or none of a known version.
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

/// The section that holds a file's table as the table alone.
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

/// Whether a table of a known version begins there.
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

/// How a table is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    /// From Go 1.2 on: all offsets are from the table's start.
    Go12,
    /// From Go 1.16 on: parts have offsets of their own.
    Go116,
    /// From Go 1.18 on, and from 1.20 on with another number: addresses are distances from the start of the code.
    Go118,
}

impl Version {
    /// That of a table's first number.
    const fn of(magic: u32) -> Option<Self> {
        match magic {
            0xffff_fffb => Some(Self::Go12),
            0xffff_fffa => Some(Self::Go116),
            0xffff_fff0 | 0xffff_fff1 => Some(Self::Go118),
            _ => None,
        }
    }
}

/// A table, and where its parts are.
struct Table<'t> {
    bytes: &'t [u8],
    encoding: Encoding,
    version: Version,
    count: usize,
    /// Where the names are, the pairs of an address and the place of a function's description, and what these places count from.
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

    /// Where a word of the header is.
    fn header_at(&self, index: usize) -> Option<usize> {
        let size = usize::from(self.encoding.address_size());
        index.checked_mul(size)?.checked_add(8)
    }

    /// A word of the header, as an offset.
    fn header(&self, index: usize) -> Option<usize> {
        let word = self.encoding.address(self.bytes, self.header_at(index)?)?;
        usize::try_from(word).ok()
    }

    /// Bytes of a number in the pairs.
    fn number_size(&self) -> usize {
        match self.version {
            Version::Go12 | Version::Go116 => self.encoding.address_size().into(),
            Version::Go118 => 4,
        }
    }

    /// A number in the pairs, or in front of a description.
    fn number(&self, at: usize) -> Option<u64> {
        match self.number_size() {
            4 => self.encoding.u32(self.bytes, at).map(u64::from),
            _ => self.encoding.address(self.bytes, at),
        }
    }

    /// A function, its addresses as the table has them. It ends where the next one begins; the last pair is the end alone.
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

/// Where the code of a program begins whose table has distances from there: in the table's header, or in the program's module data.
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

/// A word of a section as it is once the program is loaded where it is linked; None: it is zero.
fn word_of(image: &ElfReader<'_>, section: &Section, offset: u64) -> Option<u64> {
    let bytes = image.bytes(section).ok()?;
    let word = image
        .encoding()
        .address(&bytes, usize::try_from(offset).ok()?)?;
    Some(word)
        .filter(|word| *word != 0)
        .or_else(|| relocated(image, section.address.checked_add(offset)?))
}

/// What a program that can be loaded anywhere has at an address, by its relocation relative to where it is loaded.
fn relocated(image: &ElfReader<'_>, address: u64) -> Option<u64> {
    /// Bytes of a relocation: the address, the kind, the addend.
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
