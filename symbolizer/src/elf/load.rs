//! Loads what names addresses from an ELF file and the files that belong to it.

use std::cmp::Reverse;
use std::fs::File;
use std::path::Path;

use object::elf;

use super::functions;
use super::go::{self, GoFunction, GoFunctions};
use super::minidebug;
use super::parts::{Segment, c_string};
use super::ranges::Ranges;
use super::reader::ElfReader;
use super::symbols::{ElfSymbols, Named};
use super::tables::{CodeSymbol, Extents, SymbolTable};
use crate::{Error, Result};

impl ElfSymbols {
    /// Reads a file. Only headers, symbols and unwind tables are read, and at most 1 GB.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be opened, [`Error::Elf`] if it is not a usable ELF file.
    pub fn open(path: &Path) -> Result<Self> {
        load(&ElfReader::open(path)?, None)
    }

    /// Like [`ElfSymbols::open`], for a file that is already open (a mapped file that has been deleted, or is in another mount namespace).
    /// `name` is used in messages.
    ///
    /// # Errors
    /// [`Error::Elf`] if it is not a usable ELF file.
    pub fn from_file(file: &File, name: &str) -> Result<Self> {
        let file = file
            .try_clone()
            .map_err(Error::io("duplicate", Path::new(name)))?;
        load(&ElfReader::from_file(file, name)?, None)
    }

    /// Reads a file from its bytes. `name` is used in messages.
    ///
    /// # Errors
    /// [`Error::Elf`] if it is not a usable ELF file.
    pub fn from_bytes(bytes: &[u8], name: &str) -> Result<Self> {
        load(&ElfReader::from_bytes(bytes, name)?, None)
    }
}

/// Reads the symbols and function bounds of a file, including those of its debug file.
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
    let mut problems = Vec::new();
    problems.extend(
        image
            .unusable_sections
            .as_ref()
            .map(|problem| format!("section headers: {problem}")),
    );
    let mut symbols = Symbols::default();
    for (index, part) in images.iter().enumerate() {
        let broken = symbols.add(part, &image.segments);
        // The other files' tables are optional.
        if index == 0 {
            problems.extend(broken);
        }
    }
    // Go's table has the same names as the symbols, so it is only needed without them.
    if is_stripped(image)
        && let Some(functions) = go::functions(image)
    {
        symbols.add_go(functions);
    }
    let named = symbols.take_named(functions.exact());
    Ok(ElfSymbols {
        module: file_name(&image.name).to_owned(),
        build_id: image.build_id.clone(),
        segments: segments_in_file(image),
        strings: symbols.strings,
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
        problems,
    })
}

fn is_stripped(image: &ElfReader<'_>) -> bool {
    let mut sections = image.sections.iter();
    sections.all(|section| section.kind != elf::SHT_SYMTAB)
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The segments, with offsets in the file that holds the image.
fn segments_in_file(image: &ElfReader<'_>) -> Vec<Segment> {
    let segments = image.segments.iter();
    segments
        .map(|segment| Segment {
            offset: segment.offset.saturating_add(image.start()),
            ..*segment
        })
        .collect()
}

/// The longest prefix of a function's name that is compared with local labels. Assembly has no longer names.
const MAX_FUNCTION_NAME: usize = 1024;

/// A function symbol before it is compared with its neighbours.
#[derive(Debug)]
struct Candidate {
    named: Named,
    kind: CodeSymbol,
    is_local: bool,
    /// Among several symbols at one address, the smallest rank is used: sized before unsized, functions before labels, global before weak
    /// before local, few leading underscores before many, names before those with a version, long names before short ones as in perf.
    rank: (bool, bool, u8, usize, bool, Reverse<usize>, u8),
    /// The end of its section or segment.
    extent_end: u64,
}

/// The function symbols of several files.
#[derive(Debug, Default)]
struct Symbols {
    found: Vec<Candidate>,
    /// The string tables of their names.
    strings: Vec<Box<[u8]>>,
    /// Whether all symbols of the library's code are present. Local ones are the first to be stripped.
    complete: bool,
}

impl Symbols {
    /// Adds a file's `.symtab` and `.dynsym`, and returns the problems of those that cannot be read. `loaded` are the segments of the
    /// library.
    fn add(&mut self, image: &ElfReader<'_>, loaded: &[Segment]) -> Vec<String> {
        let mut problems = Vec::new();
        for kind in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
            match image.symbol_table(kind) {
                Ok(Some(table)) => self.add_table(image, loaded, table, kind),
                Ok(None) => {}
                Err(Error::Elf { part, problem, .. }) => {
                    problems.push(format!("{part}: {problem}"))
                }
                Err(error) => problems.push(error.to_string()),
            }
        }
        problems
    }

    /// Adds the functions of Go's own table. Symbols at the same addresses are preferred.
    fn add_go(&mut self, table: GoFunctions) {
        let Ok(index) = u8::try_from(self.strings.len()) else {
            return;
        };
        let candidate = |function: GoFunction| Candidate {
            named: Named {
                start: function.start,
                end: function.end,
                table: index,
                name: function.name,
                index: 0,
            },
            kind: CodeSymbol::Function,
            rank: (false, true, 3, 0, false, Reverse(0), index),
            is_local: false,
            extent_end: function.end,
        };
        self.found
            .extend(table.functions.into_iter().map(candidate));
        self.strings.push(table.names);
    }

    /// Takes the symbols out, in the order of their addresses: one for each address, and none of labels. `functions` are the exact bounds
    /// of functions.
    fn take_named(&mut self, functions: &[(u64, u64)]) -> Vec<Named> {
        let mut found = std::mem::take(&mut self.found);
        found.sort_by_key(|candidate| (candidate.named.start, candidate.rank));
        found.dedup_by_key(|candidate| candidate.named.start);
        let found = without_local_labels(found, |named| self.name(named));
        let found = without_inner_labels(found, functions);
        bound_unsized(found, functions, self.complete)
    }

    /// The name of a symbol, at most [`MAX_FUNCTION_NAME`] bytes of it.
    fn name(&self, named: &Named) -> &[u8] {
        let names = self
            .strings
            .get(usize::from(named.table))
            .map(|names| &names[..]);
        let name = names.and_then(|names| names.get(named.name as usize..));
        let name = name.unwrap_or_default();
        c_string(name.get(..MAX_FUNCTION_NAME).unwrap_or(name))
    }

    /// Adds the functions among a table's symbols.
    fn add_table(
        &mut self,
        image: &ElfReader<'_>,
        loaded: &[Segment],
        table: SymbolTable<'_>,
        kind: u32,
    ) {
        let Ok(index) = u8::try_from(self.strings.len()) else {
            return;
        };
        // Bit 0 of an ARM function's address means Thumb.
        let thumb = u64::from(image.machine == elf::EM_ARM);
        let extents = Extents::new(image, loaded);
        for symbol in table.symbols() {
            let extent = extents.of(&symbol);
            // In code, also a mark of an instruction set is a symbol that stripping would have removed.
            self.complete |= kind == elf::SHT_SYMTAB
                && symbol.is_own_local()
                && extent.as_ref().is_some_and(|extent| extent.executable);
            let code_symbol = table.code_symbol(&symbol, extent.as_ref());
            let (Some(code_symbol), Some(extent)) = (code_symbol, extent) else {
                continue;
            };
            let start = symbol.value & !thumb;
            // Only the beginning of the name matters here.
            let text = table.name(&symbol, 8);
            self.found.push(Candidate {
                named: Named {
                    start,
                    end: start.saturating_add(symbol.size).min(extent.end),
                    table: index,
                    name: symbol.name,
                    index: 0,
                },
                kind: code_symbol,
                is_local: symbol.binding == elf::STB_LOCAL,
                rank: (
                    symbol.size == 0,
                    code_symbol == CodeSymbol::Label,
                    match symbol.binding {
                        elf::STB_GLOBAL => 0,
                        elf::STB_WEAK => 1,
                        _ => 2,
                    },
                    text.iter().take_while(|&&byte| byte == b'_').count(),
                    text.contains(&b'@'),
                    Reverse(text.len()),
                    index,
                ),
                extent_end: extent.end,
            });
        }
        self.strings.push(table.names.into());
    }
}

/// Drops local labels that assemblers name after their function, such as NASM's `main.loop`. `name` returns the name of a symbol.
fn without_local_labels<'s>(
    found: Vec<Candidate>,
    name: impl Fn(&Named) -> &'s [u8],
) -> Vec<Candidate> {
    let mut function: &[u8] = &[];
    let mut is_label = |candidate: &Candidate| {
        let own = name(&candidate.named);
        let behind = own.strip_prefix(function).filter(|_| !function.is_empty());
        let is_named_so = behind.is_some_and(|behind| behind.first() == Some(&b'.'));
        let is_label = is_named_so && candidate.is_local && candidate.kind == CodeSymbol::Label;
        if !is_label {
            function = own;
        }
        is_label
    };
    found
        .into_iter()
        .filter(|candidate| !is_label(candidate))
        .collect()
}

/// Drops labels inside functions: `.eh_frame` has a function around the label, and another symbol is at its start.
fn without_inner_labels(found: Vec<Candidate>, functions: &[(u64, u64)]) -> Vec<Candidate> {
    let starts: Vec<u64> = found
        .iter()
        .map(|candidate| candidate.named.start)
        .collect();
    let is_inner = |at: u64| {
        let after = functions.partition_point(|&(start, _)| start < at);
        let before = after.checked_sub(1).and_then(|index| functions.get(index));
        before.is_some_and(|&(start, end)| at < end && starts.binary_search(&start).is_ok())
    };
    found
        .into_iter()
        .filter(|candidate| {
            candidate.kind == CodeSymbol::Function || !is_inner(candidate.named.start)
        })
        .collect()
}

/// Gives symbols without a size, as assembly leaves them, a size where it is certain, and drops the others.
///
/// It is certain if `.eh_frame` has a function that starts at the symbol. If the file lists all its symbols (`complete`), it is also
/// certain up to the next function. A symbol within a sized one is a label.
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
            symbol.end = next.min(function_end).min(candidate.extent_end);
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
            kind: CodeSymbol::Function,
            is_local: false,
            rank: (start == end, false, 0, 0, false, Reverse(0), 0),
            extent_end: 1000,
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
    fn a_label_in_a_function_does_not_divide_it() {
        let label = |start| Candidate {
            kind: CodeSymbol::Label,
            ..candidate(start, start)
        };
        // The first function has a symbol, the second has none.
        let functions = [(100, 200), (300, 400)];
        let found = vec![candidate(100, 100), label(150), label(200), label(350)];
        let starts: Vec<u64> = without_inner_labels(found, &functions)
            .iter()
            .map(|candidate| candidate.named.start)
            .collect();
        assert_eq!(starts, [100, 200, 350]);
    }

    #[test]
    fn labels_with_their_function_s_name_do_not_divide_it() {
        let names: [&[u8]; 6] = [b"f", b"f.loop", b"f2", b"f.out", b"f2.loop", b"g.part"];
        let found = (0u8..).zip(names).map(|(number, name)| Candidate {
            named: Named {
                table: number,
                ..candidate(u64::from(number) * 10, 0).named
            },
            kind: CodeSymbol::Label,
            is_local: name.contains(&b'.'),
            ..candidate(0, 0)
        });
        let kept = without_local_labels(found.collect(), |named| names[usize::from(named.table)]);
        let kept: Vec<_> = kept
            .iter()
            .map(|candidate| names[usize::from(candidate.named.table)])
            .collect();
        // A label that follows a function which it is not named after has code of its own.
        let expected: [&[u8]; 5] = [b"f", b"f2", b"f.out", b"f2.loop", b"g.part"];
        assert_eq!(kept, expected);
    }

    #[test]
    fn a_symbol_without_a_size_ends_where_it_is_certain() {
        let functions = [(100, 200), (200, 260), (320, 350)];
        // Without a full table, there may be unnamed functions in between.
        assert_eq!(bounds(&functions, false), [(100, 200), (200, 260)]);
        assert_eq!(
            bounds(&functions, true),
            [(100, 200), (200, 260), (300, 320), (400, 1000)]
        );
        assert_eq!(bounds(&[], false), [(100, 200)]);
    }
}
