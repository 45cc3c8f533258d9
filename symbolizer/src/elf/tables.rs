//! Reads the symbol tables of an ELF file.

use std::borrow::Cow;

use object::read::elf::Sym;
use object::{Endianness, elf, pod};

use super::parts::{Encoding, Section, Segment, c_string};
use super::reader::ElfReader;
use crate::{Error, Result};

/// `.symtab` or `.dynsym`, and the names of its symbols.
#[derive(Debug)]
pub(super) struct SymbolTable<'i> {
    encoding: Encoding,
    machine: u16,
    entries: Cow<'i, [u8]>,
    /// The string table with the names.
    pub(super) names: Cow<'i, [u8]>,
}

/// A symbol in a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// Offset of its name in the string table.
    pub(super) name: u32,
    /// Its address. Bit 0 of an ARM function's address means Thumb.
    pub(super) value: u64,
    pub(super) size: u64,
    /// For example `STT_FUNC`.
    pub(super) kind: u8,
    /// For example `STB_GLOBAL`.
    pub(super) binding: u8,
    /// For example `STV_HIDDEN`: a linker makes such a symbol local.
    pub(super) visibility: u8,
    pub(super) section: u16,
}

/// The kind of a symbol in code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CodeSymbol {
    /// A function by its type.
    Function,
    /// An address in code with a name but no type, as assembly without `.type` leaves it.
    Label,
}

/// The section or segment of a symbol.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    /// The address after its last byte.
    pub(super) end: u64,
    pub(super) executable: bool,
}

impl<'d> ElfReader<'d> {
    /// Returns the table of that kind (`SHT_SYMTAB`, `SHT_DYNSYM`). None if the file has none.
    pub(super) fn symbol_table(&self, kind: u32) -> Result<Option<SymbolTable<'_>>> {
        let Some(section) = self.sections.iter().find(|section| section.kind == kind) else {
            return Ok(None);
        };
        let part = match kind {
            elf::SHT_SYMTAB => ".symtab",
            _ => ".dynsym",
        };
        let of_table = |error| match error {
            Error::Elf { file, problem, .. } => Error::Elf {
                file,
                part,
                problem,
            },
            other => other,
        };
        let entries = self.bytes(section).map_err(of_table)?;
        let names = self
            .sections
            .get(section.link as usize)
            .ok_or_else(|| self.wrong(part, "has no string table"))?;
        Ok(Some(SymbolTable {
            encoding: self.encoding(),
            machine: self.machine,
            entries,
            names: self.bytes(names).map_err(of_table)?,
        }))
    }
}

/// The sections and segments that symbols may be in.
#[derive(Debug)]
pub(super) struct Extents<'i> {
    sections: &'i [Section],
    /// The segments of the file itself and of the program, by address. A debug file may have no segments.
    segments: [Vec<Segment>; 2],
}

impl<'i> Extents<'i> {
    /// Collects those of a file. `loaded` are the segments of the program.
    pub(super) fn new(image: &'i ElfReader<'_>, loaded: &[Segment]) -> Self {
        let by_address = |segments: &[Segment]| {
            let mut segments = segments.to_vec();
            segments.sort_by_key(|segment| segment.address);
            segments
        };
        Self {
            sections: &image.sections,
            segments: [&image.segments[..], loaded].map(by_address),
        }
    }

    /// Returns the section of a symbol, or the segment if the section is not known. None if the symbol is outside of both.
    pub(super) fn of(&self, symbol: &Entry) -> Option<Extent> {
        let holds = |start: u64, size: u64| {
            let within = symbol.value.checked_sub(start);
            within.is_some_and(|within| within < size)
        };
        let section = self.sections.get(usize::from(symbol.section));
        if let Some(section) = section.filter(|section| section.is_loaded()) {
            let end = section.address.saturating_add(section.size);
            if holds(section.address, section.size) {
                return Some(Extent {
                    end,
                    executable: section.is_executable(),
                });
            }
            // The symbol marks the end of its section.
            if symbol.value == end {
                return None;
            }
        }
        let segment = self.segments.iter().find_map(|segments| {
            let behind = segments.partition_point(|segment| segment.address <= symbol.value);
            let segment = segments.get(behind.checked_sub(1)?)?;
            holds(segment.address, segment.size).then_some(segment)
        })?;
        Some(Extent {
            end: segment.address.saturating_add(segment.size),
            executable: segment.executable,
        })
    }
}

impl SymbolTable<'_> {
    /// The symbols, without the null symbol at the beginning.
    pub(super) fn symbols(&self) -> Box<dyn Iterator<Item = Entry> + '_> {
        match self.encoding.is_64 {
            true => Box::new(self.entries::<elf::Sym64<Endianness>>()),
            false => Box::new(self.entries::<elf::Sym32<Endianness>>()),
        }
    }

    /// A symbol's name, cut to `most` bytes: many symbols can share one long name.
    pub(super) fn name(&self, symbol: &Entry, most: usize) -> &[u8] {
        let name = self.names.get(symbol.name as usize..).unwrap_or_default();
        c_string(name.get(..most).unwrap_or(name))
    }

    /// Returns the kind of a symbol in code. None if it is undefined, or not in code. `extent` is its section or segment.
    pub(super) fn code_symbol(
        &self,
        symbol: &Entry,
        extent: Option<&Extent>,
    ) -> Option<CodeSymbol> {
        let name = self.name(symbol, 4);
        if symbol.section == elf::SHN_UNDEF
            || name.is_empty()
            || is_mapping_symbol(self.machine, name)
        {
            return None;
        }
        match symbol.kind {
            elf::STT_FUNC | elf::STT_GNU_IFUNC => Some(CodeSymbol::Function),
            // Names that start with a dot are those of compilers and their plugins: `.L12`, `.annobin_start`.
            elf::STT_NOTYPE
                if symbol.section != elf::SHN_ABS
                    && name.first() != Some(&b'.')
                    && extent.is_some_and(|extent| extent.executable) =>
            {
                Some(CodeSymbol::Label)
            }
            _ => None,
        }
    }

    fn entries<S: Sym<Endian = Endianness> + 'static>(&self) -> impl Iterator<Item = Entry> + '_ {
        let endian = self.encoding.endian;
        let count = self.entries.len().checked_div(size_of::<S>());
        let entries = pod::slice_from_bytes::<S>(&self.entries, count.unwrap_or_default());
        let entries = entries.map_or(&[][..], |(entries, _)| entries);
        entries.iter().skip(1).map(move |symbol| Entry {
            name: symbol.st_name(endian),
            value: symbol.st_value(endian).into(),
            size: symbol.st_size(endian).into(),
            kind: symbol.st_type(),
            binding: symbol.st_bind(),
            visibility: symbol.st_visibility(),
            section: symbol.st_shndx(endian),
        })
    }
}

impl Entry {
    /// Returns true if it is something local in its source file. Stripping local symbols removes these, while linkers keep others that they
    /// make local themselves, and those of sections.
    pub(super) const fn is_own_local(&self) -> bool {
        self.binding == elf::STB_LOCAL
            && self.visibility == elf::STV_DEFAULT
            && self.kind != elf::STT_SECTION
    }
}

/// Returns true if a name marks the kind of what follows (an instruction set, or data) and not a function. ARM's tools write `$a`, `$t`,
/// `$d` and `$x`. armcc also writes `$b`, `$f`, `$p` and `$m`, also as functions. RISC-V's are like `$xrv64i2p1`.
fn is_mapping_symbol(machine: u16, name: &[u8]) -> bool {
    match (machine, name) {
        (elf::EM_ARM | elf::EM_AARCH64, [b'$', b'a'..=b'z', rest @ ..]) => {
            matches!(rest, [] | [b'.', ..])
        }
        (elf::EM_RISCV, [b'$', b'd' | b'x', ..]) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dollar_begins_a_mapping_symbol_on_some_machines_only() {
        for (machine, name, expected) in [
            (elf::EM_ARM, "$t", true),
            (elf::EM_ARM, "$b.7", true),
            (elf::EM_AARCH64, "$x.0", true),
            (elf::EM_ARM, "$total", false),
            (elf::EM_RISCV, "$xrv64i2p1", true),
            (elf::EM_RISCV, "$t", false),
            (elf::EM_X86_64, "$d", false),
        ] {
            let name = name.as_bytes();
            assert_eq!(is_mapping_symbol(machine, name), expected, "{name:?}");
        }
    }
}
