//! What do an ELF file and the files that belong to it hold that names addresses?

use std::cmp::Reverse;
use std::fs::File;
use std::path::Path;

use object::read::elf::Sym;
use object::{Endianness, elf, pod};

use super::functions;
use super::minidebug;
use super::ranges::Ranges;
use super::reader::{ElfReader, Segment, c_string};
use super::symbols::{ElfSymbols, Named};
use crate::{Error, Result};

impl ElfSymbols {
    /// Reads a file. Only headers, symbols and unwind tables are read, not the whole
    /// file, and at most 1 GB of it.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be opened, [`Error::Elf`] if it is not a usable ELF file.
    pub fn open(path: &Path) -> Result<Self> {
        load(&ElfReader::open(path)?, None)
    }

    /// As [`ElfSymbols::open`], for a file that is already open (a mapped file that has been
    /// deleted, or is in another mount namespace). `name` is what it is called.
    ///
    /// # Errors
    /// [`Error::Elf`] if it is not a usable ELF file.
    pub fn from_file(file: &File, name: &str) -> Result<Self> {
        let file = file
            .try_clone()
            .map_err(Error::io("duplicate", Path::new(name)))?;
        load(&ElfReader::from_file(file, name)?, None)
    }

    /// Reads a file's bytes. `name` is what it is called.
    ///
    /// # Errors
    /// [`Error::Elf`] if it is not a usable ELF file.
    pub fn from_bytes(bytes: &[u8], name: &str) -> Result<Self> {
        load(&ElfReader::from_bytes(bytes, name)?, None)
    }
}

/// Reads the symbols and function bounds of a file, and those that its debug file adds.
pub(super) fn load(image: &ElfReader<'_>, debug: Option<&ElfReader<'_>>) -> Result<ElfSymbols> {
    if image.kind == elf::ET_REL {
        let problem =
            "a relocatable file: its functions get their addresses when it is linked or loaded";
        return Err(image.wrong("header", problem));
    }
    let mini = minidebug::unpack(image);
    let images: Vec<&ElfReader<'_>> = [Some(image), debug, mini.as_ref()]
        .into_iter()
        .flatten()
        .collect();
    let functions = functions::of(&images);
    let mut symbols = Symbols::default();
    for (index, image) in images.iter().enumerate() {
        let added = symbols.add(image);
        // Errors in the file's own tables are reported; the other files' tables are optional.
        if index == 0 {
            added?;
        }
    }
    let Symbols {
        mut found,
        strings,
        complete,
    } = symbols;
    found.sort_by_key(|candidate| (candidate.named.start, candidate.rank));
    found.dedup_by_key(|candidate| candidate.named.start);
    let named = bound_unsized(found, functions.exact(), complete);
    Ok(ElfSymbols {
        module: image
            .name
            .rsplit('/')
            .next()
            .unwrap_or(&image.name)
            .to_owned(),
        build_id: image.build_id.clone(),
        segments: image
            .segments
            .iter()
            .map(|segment| Segment {
                offset: segment.offset.saturating_add(image.start()),
                ..*segment
            })
            .collect(),
        strings,
        symbol_count: named.len(),
        symbols: Ranges::new(
            (0..)
                .zip(named)
                .map(|(index, named)| (named.start, named.end, Named { index, ..named })),
        ),
        function_count: functions.all().len(),
        functions: Ranges::new(
            functions
                .all()
                .iter()
                .map(|&(start, end)| (start, end, (start, end))),
        ),
        extra: Vec::new(),
    })
}

/// A function symbol before its neighbours have been looked at.
#[derive(Debug)]
struct Candidate {
    named: Named,
    /// Of several symbols at one address the smallest rank counts: sized before
    /// unsized, global before weak before local, few leading underscores before many, names before those with a version, long names before short
    /// ones as in perf.
    rank: (bool, u8, usize, bool, Reverse<usize>, u8),
    section_end: u64,
}

/// The function symbols of some files.
#[derive(Debug, Default)]
struct Symbols {
    found: Vec<Candidate>,
    /// The string tables that their names lie in.
    strings: Vec<Box<[u8]>>,
    /// Whether all symbols of the library are among them: local ones are the first to be stripped.
    complete: bool,
}

impl Symbols {
    /// Adds a file's `.symtab` and `.dynsym`.
    fn add(&mut self, image: &ElfReader<'_>) -> Result<()> {
        for kind in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
            self.add_table(image, kind)?;
        }
        Ok(())
    }

    fn add_table(&mut self, image: &ElfReader<'_>, kind: u32) -> Result<()> {
        let Some(section) = image.sections.iter().find(|section| section.kind == kind) else {
            return Ok(());
        };
        let in_symbols = |error| match error {
            Error::Elf { file, problem, .. } => Error::Elf {
                file,
                part: "symbols",
                problem,
            },
            other => other,
        };
        let table = image.bytes(section).map_err(in_symbols)?;
        let names = image
            .sections
            .get(section.link as usize)
            .ok_or_else(|| image.wrong("symbols", "have no string table"))?;
        let names = image.bytes(names).map_err(in_symbols)?;
        let Ok(index) = u8::try_from(self.strings.len()) else {
            return Ok(());
        };
        let table = Table {
            image,
            index,
            names: &names,
            entries: &table,
        };
        match image.encoding().is_64 {
            true => self.add_entries::<elf::Sym64<Endianness>>(&table, kind),
            false => self.add_entries::<elf::Sym32<Endianness>>(&table, kind),
        }
        self.strings.push(names.into());
        Ok(())
    }

    /// Adds the functions among a table's symbols.
    fn add_entries<S: Sym<Endian = Endianness>>(&mut self, table: &Table<'_>, kind: u32) {
        let endian = table.image.encoding().endian;
        // Bit 0 of an ARM function's address says Thumb.
        let thumb = u64::from(table.image.machine == elf::EM_ARM);
        let count = table.entries.len().checked_div(size_of::<S>());
        let entries = pod::slice_from_bytes::<S>(table.entries, count.unwrap_or_default());
        let entries = entries.map_or(&[][..], |(entries, _)| entries);
        for symbol in entries.iter().skip(1) {
            let is_function = matches!(symbol.st_type(), elf::STT_FUNC | elf::STT_GNU_IFUNC);
            let section = symbol.st_shndx(endian);
            if !is_function || section == elf::SHN_UNDEF {
                continue;
            }
            // Only the start of a name matters here. Many symbols can share one long name.
            let name = symbol.st_name(endian);
            let text = table.names.get(name as usize..).unwrap_or_default();
            let text = c_string(text.get(..8).unwrap_or(text));
            if text.is_empty() {
                continue;
            }
            let start = symbol.st_value(endian).into() & !thumb;
            let size: u64 = symbol.st_size(endian).into();
            let section_end = table
                .image
                .sections
                .get(usize::from(section))
                .map_or(0, |section| section.address.saturating_add(section.size));
            self.found.push(Candidate {
                named: Named {
                    start,
                    end: start.saturating_add(size),
                    table: table.index,
                    name,
                    index: 0,
                },
                rank: (
                    size == 0,
                    match symbol.st_bind() {
                        elf::STB_GLOBAL => 0,
                        elf::STB_WEAK => 1,
                        _ => 2,
                    },
                    text.iter().take_while(|&&byte| byte == b'_').count(),
                    text.contains(&b'@'),
                    Reverse(text.len()),
                    table.index,
                ),
                section_end,
            });
            self.complete |= kind == elf::SHT_SYMTAB && symbol.is_local();
        }
    }
}

/// A symbol table, and what its names are read from.
struct Table<'t> {
    image: &'t ElfReader<'t>,
    /// Which of the string tables its names lie in.
    index: u8,
    names: &'t [u8],
    entries: &'t [u8],
}

/// Gives symbols without a size, as assembly leaves them, one where it is certain, and
/// drops the others.
///
/// It is certain for the function that `.eh_frame` has at its start; and, where the file lists
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
            rank: (start == end, 0, 0, false, Reverse(0), 0),
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
