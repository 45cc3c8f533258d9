//! What does an ELF file hold that names addresses?

use std::cell::Cell;
use std::fs::File;
use std::ops::Range;

use object::elf;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, SectionTable, Sym};
use object::{Endian, Endianness, ReadCache, ReadRef};

use super::functions;
use super::ranges::Ranges;
use super::symbols::{ElfSymbols, Named, Segment};
use crate::{Error, Result};

/// The longest symbol name that is shown, in bytes.
const MAX_SYMBOL: usize = 65_536;

/// The most that is read of a file, in bytes: a sparse file can claim tables of any size.
const MAX_READ: u64 = 1 << 30;

/// A file of which at most [`MAX_READ`] bytes are read.
pub(super) struct Limited<'f> {
    cache: ReadCache<&'f File>,
    left: Cell<u64>,
}

impl<'f> Limited<'f> {
    pub(super) fn new(file: &'f File) -> Self {
        Self {
            cache: ReadCache::new(file),
            left: Cell::new(MAX_READ),
        }
    }

    fn take(&self, bytes: u64) -> Result<(), ()> {
        self.left.set(self.left.get().checked_sub(bytes).ok_or(())?);
        Ok(())
    }
}

impl<'d> ReadRef<'d> for &'d Limited<'_> {
    fn len(self) -> Result<u64, ()> {
        (&self.cache).len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'d [u8], ()> {
        self.take(size)?;
        self.cache.read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'d [u8], ()> {
        let bytes = self.cache.read_bytes_at_until(range, delimiter)?;
        self.take(bytes.len() as u64)?;
        Ok(bytes)
    }
}

/// The bytes before the first NUL.
pub(super) fn c_string(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.get(..MAX_SYMBOL).unwrap_or(bytes);
    let end = bytes
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(bytes.len());
    bytes.get(..end).unwrap_or_default()
}

/// Reads the file.
pub(super) fn load<'d, R: ReadRef<'d>>(data: R, name: &str) -> Result<ElfSymbols> {
    let wrong = |part: &'static str, problem: &str| Error::Elf {
        file: name.to_owned(),
        part,
        problem: problem.to_owned(),
    };
    let ident = data
        .read_bytes_at(0, 16)
        .map_err(|()| wrong("header", "shorter than an ELF header"))?;
    match *ident {
        [0x7f, b'E', b'L', b'F', 1, ..] => {
            load_class::<elf::FileHeader32<Endianness>, R>(data, name)
        }
        [0x7f, b'E', b'L', b'F', 2, ..] => {
            load_class::<elf::FileHeader64<Endianness>, R>(data, name)
        }
        [0x7f, b'E', b'L', b'F', ..] => Err(wrong("header", "neither 32-bit nor 64-bit")),
        _ => Err(wrong("header", "no ELF magic number")),
    }
}

fn load_class<'d, Elf, R>(data: R, name: &str) -> Result<ElfSymbols>
where
    Elf: FileHeader<Endian = Endianness>,
    R: ReadRef<'d>,
{
    let wrong = |part: &'static str| {
        move |error: object::Error| Error::Elf {
            file: name.to_owned(),
            part,
            problem: error.to_string(),
        }
    };
    let header = Elf::parse(data).map_err(wrong("header"))?;
    let endian = header.endian().map_err(wrong("header"))?;
    let sections = header
        .sections(endian, data)
        .map_err(wrong("section headers"))?;
    let programs = header
        .program_headers(endian, data)
        .map_err(wrong("program headers"))?;
    let module = name.rsplit('/').next().unwrap_or(name).to_owned();

    let mut found = ElfSymbols {
        module,
        ..ElfSymbols::default()
    };
    for program in programs {
        if program.p_type(endian) == elf::PT_LOAD {
            found.segments.push(Segment {
                offset: program.p_offset(endian).into(),
                address: program.p_vaddr(endian).into(),
                size: program.p_filesz(endian).into(),
                executable: program.p_flags(endian) & elf::PF_X != 0,
            });
        }
        if let Ok(Some(mut notes)) = program.notes(endian, data) {
            while let (None, Ok(Some(note))) = (&found.build_id, notes.next()) {
                if note.name() == elf::ELF_NOTE_GNU && note.n_type(endian) == elf::NT_GNU_BUILD_ID {
                    found.build_id = Some(note.desc().to_owned());
                }
            }
        }
    }
    let functions = unwind_bounds::<Elf, R>(header, endian, data, &sections);
    let named = symbols::<Elf, R>(
        header,
        endian,
        data,
        &sections,
        &functions,
        &mut found.strings,
    )
    .map_err(wrong("symbols"))?;
    found.symbol_count = named.len();
    found.symbols = Ranges::new(
        named
            .into_iter()
            .map(|named| (named.start, named.end, named)),
    );
    found.function_count = functions.len();
    found.functions = Ranges::new(
        functions
            .into_iter()
            .map(|(start, end)| (start, end, (start, end))),
    );
    Ok(found)
}

/// Function bounds from `.eh_frame`; none if there is no such section or it cannot be read.
fn unwind_bounds<'d, Elf, R>(
    header: &Elf,
    endian: Endianness,
    data: R,
    sections: &SectionTable<'d, Elf, R>,
) -> Vec<(u64, u64)>
where
    Elf: FileHeader<Endian = Endianness>,
    R: ReadRef<'d>,
{
    let address = |name: &[u8]| {
        sections
            .section_by_name(endian, name)
            .map_or(0, |(_, section)| section.sh_addr(endian).into())
    };
    let Some((_, section)) = sections.section_by_name(endian, b".eh_frame") else {
        return Vec::new();
    };
    let Ok(bytes) = section.data(endian, data) else {
        return Vec::new();
    };
    functions::bounds(
        bytes,
        section.sh_addr(endian).into(),
        address(b".text"),
        endian.is_big_endian(),
        if header.is_class_64() { 8 } else { 4 },
    )
}

/// A function symbol before its neighbours have been looked at.
#[derive(Debug)]
struct Candidate {
    named: Named,
    /// Of several symbols at one address the smallest rank counts: sized before
    /// unsized, global before weak before local, few leading underscores before many.
    rank: (bool, u8, usize, u8),
    section_end: u64,
}

/// The function symbols of `.symtab` and `.dynsym`, sorted by start.
fn symbols<'d, Elf, R>(
    header: &Elf,
    endian: Endianness,
    data: R,
    sections: &SectionTable<'d, Elf, R>,
    functions: &[(u64, u64)],
    strings: &mut Vec<Box<[u8]>>,
) -> object::read::Result<Vec<Named>>
where
    Elf: FileHeader<Endian = Endianness>,
    R: ReadRef<'d>,
{
    // Bit 0 of an ARM function's address says Thumb.
    let thumb = u64::from(header.e_machine(endian) == elf::EM_ARM);
    let mut found: Vec<Candidate> = Vec::new();
    let mut complete = false;
    for kind in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
        let Some(section) = sections
            .iter()
            .find(|section| section.sh_type(endian) == kind)
        else {
            continue;
        };
        let table = section.data_as_array::<Elf::Sym, _>(endian, data)?;
        let names = sections.section(section.link(endian))?.data(endian, data)?;
        let Ok(table_index) = u8::try_from(strings.len()) else {
            break;
        };
        strings.push(names.into());
        complete |= kind == elf::SHT_SYMTAB && !table.is_empty();
        for symbol in table {
            let is_function = matches!(symbol.st_type(), elf::STT_FUNC | elf::STT_GNU_IFUNC);
            let name = symbol.st_name(endian);
            let text = names.get(name as usize..).unwrap_or_default();
            if !is_function || symbol.is_undefined(endian) || matches!(text, [] | [0, ..]) {
                continue;
            }
            let start = symbol.st_value(endian).into() & !thumb;
            let size: u64 = symbol.st_size(endian).into();
            let section_end = sections
                .section(object::SectionIndex(symbol.st_shndx(endian).into()))
                .map_or(0, |section| {
                    let address: u64 = section.sh_addr(endian).into();
                    address.saturating_add(section.sh_size(endian).into())
                });
            found.push(Candidate {
                named: Named {
                    start,
                    end: start.saturating_add(size),
                    table: table_index,
                    name,
                },
                rank: (
                    size == 0,
                    match symbol.st_bind() {
                        elf::STB_GLOBAL => 0,
                        elf::STB_WEAK => 1,
                        _ => 2,
                    },
                    text.iter()
                        .take(8)
                        .take_while(|&&byte| byte == b'_')
                        .count(),
                    table_index,
                ),
                section_end,
            });
        }
    }
    found.sort_by_key(|candidate| (candidate.named.start, candidate.rank));
    found.dedup_by_key(|candidate| candidate.named.start);
    Ok(bound_unsized(found, functions, complete))
}

/// Gives symbols without a size, as assembly leaves them, one where it is certain, and
/// drops the others.
///
/// Certain is: the function that `.eh_frame` has at its start; and, where the file lists
/// all its symbols (`complete`), everything up to the next one. A symbol in the
/// midst of a sized one is a label.
fn bound_unsized(found: Vec<Candidate>, functions: &[(u64, u64)], complete: bool) -> Vec<Named> {
    let next_starts: Vec<u64> = found
        .iter()
        .skip(1)
        .map(|candidate| candidate.named.start)
        .chain([u64::MAX])
        .collect();
    let mut covered = 0u64;
    let mut named = Vec::with_capacity(found.len());
    for (mut candidate, next) in found.into_iter().zip(next_starts) {
        let symbol = &mut candidate.named;
        if symbol.end == symbol.start {
            if symbol.start < covered {
                continue;
            }
            let function = functions
                .get(functions.partition_point(|&(start, _)| start < symbol.start))
                .copied();
            let function_end = match function {
                Some((start, end)) if start == symbol.start => end,
                Some((start, _)) if complete => start,
                None if complete => u64::MAX,
                _ => continue,
            };
            symbol.end = next.min(function_end).min(candidate.section_end);
            if symbol.end <= symbol.start {
                continue;
            }
        }
        covered = covered.max(symbol.end);
        named.push(*symbol);
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(start: u64, end: u64) -> Candidate {
        Candidate {
            named: Named {
                start,
                end,
                ..Named::default()
            },
            rank: (start == end, 0, 0, 0),
            section_end: 1000,
        }
    }

    fn bounds(functions: &[(u64, u64)], complete: bool) -> Vec<(u64, u64)> {
        let found = vec![
            candidate(100, 200),
            candidate(150, 150),
            candidate(200, 200),
            candidate(300, 300),
            candidate(400, 400),
        ];
        bound_unsized(found, functions, complete)
            .iter()
            .map(|named| (named.start, named.end))
            .collect()
    }

    #[test]
    fn a_symbol_without_a_size_ends_where_it_is_certain() {
        let functions = [(100, 200), (200, 260), (320, 350)];
        // Without a full table there may be functions between that have no name.
        assert_eq!(bounds(&functions, false), [(100, 200), (200, 260)]);
        assert_eq!(
            bounds(&functions, true),
            [(100, 200), (200, 260), (300, 320), (400, 1000)]
        );
        assert_eq!(bounds(&[], false), [(100, 200)]);
    }
}
