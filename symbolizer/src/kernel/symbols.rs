//! Finds the kernel symbol at an address.
//!
//! Reads `/proc/kallsyms`, including modules and BPF programs, and the compact text copy of it in a session (`symbols/kernel.sym`). A
//! session needs a copy because the addresses change with every boot.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

use crate::{Error, Result};

/// First line of a `kernel.sym`.
const HEADER: &str = "# varid kernel symbols 1: address, size, name, module";
/// Symbols that mark the start and the end of the kernel.
const MARKS: [&str; 3] = ["_text", "_stext", "_etext"];
/// Determines the end of a symbol without a next one: the end of the page after its start, as in perf.
const PAGE: u64 = 4096;

/// The kernel's functions.
#[derive(Debug, Clone, Default)]
pub struct KernelSymbols {
    symbols: Vec<Entry>,
    names: String,
    text: Option<KernelText>,
    hidden: usize,
}

/// The address range of the kernel itself, without its modules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelText {
    /// The symbol at its start: `_text`, or `_stext` if there is no `_text`.
    pub symbol: &'static str,
    /// From that symbol to `_etext`.
    pub range: Range<u64>,
}

/// A function. Its name and module are in the text that all entries share.
#[derive(Debug, Clone, Copy)]
struct Entry {
    start: u64,
    end: u64,
    /// Empty if the memory has been reused.
    name: (usize, usize),
    module: (usize, usize),
}

/// A function of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelSymbol<'a> {
    /// Its name.
    pub name: &'a str,
    /// The module that it belongs to, `bpf` for a BPF program. None for the kernel itself.
    pub module: Option<&'a str>,
    /// First address.
    pub start: u64,
    /// The address after its last byte. The kernel does not publish sizes, so this is the start of the next symbol.
    pub end: u64,
}

impl KernelSymbols {
    /// Reads the running kernel's symbols, `/proc/kallsyms`.
    ///
    /// # Errors
    /// [`Error::KernelHidden`] if this process may not see addresses, [`Error::Io`].
    pub fn running() -> Result<Self> {
        let path = Path::new("/proc/kallsyms");
        Self::parse_kallsyms(&std::fs::read(path).map_err(Error::io("read", path))?)
    }

    /// Reads a text in the format of `/proc/kallsyms`.
    ///
    /// # Errors
    /// [`Error::Kernel`] with the invalid line. [`Error::KernelHidden`] if every address is zero, as for readers without privileges.
    pub fn parse_kallsyms(bytes: &[u8]) -> Result<Self> {
        let mut table = Self::default();
        // Data symbols bound the functions before them, so they are kept until then.
        let mut bounds = Vec::new();
        let mut marks = [None; 3];
        for (number, line) in lines_of(bytes) {
            let mut words = line.split_ascii_whitespace();
            let (Some(address), Some(kind), Some(name)) =
                (words.next(), words.next(), words.next())
            else {
                return Err(wrong(number, "not `address type name`"));
            };
            let start = hex(address).ok_or_else(|| wrong(number, "not an address"))?;
            let module = words.next();
            if start == 0 {
                // Symbols of other kinds can be zero without being hidden: those of per-CPU variables are offsets.
                let hidden = matches!(kind, "t" | "T" | "w" | "W");
                table.hidden = table.hidden.saturating_add(usize::from(hidden));
                continue;
            }
            if let (Some(mark), None) = (MARKS.iter().position(|mark| *mark == name), module)
                && let Some(place) = marks.get_mut(mark)
            {
                *place = Some(start);
            }
            if !matches!(kind, "t" | "T" | "w" | "W") {
                // Absolute symbols are numbers, not addresses.
                if !matches!(kind, "a" | "A") {
                    bounds.push(start);
                }
                continue;
            }
            let module = module.map(|word| word.trim_start_matches('[').trim_end_matches(']'));
            table.push(start, 0, name, module.unwrap_or_default());
        }
        if table.symbols.is_empty() && table.hidden > 0 {
            return Err(Error::KernelHidden);
        }
        let [text, stext, etext] = marks;
        let [text_name, stext_name, _] = MARKS;
        let starts = [(text, text_name), (stext, stext_name)];
        let start = starts
            .into_iter()
            .find_map(|(start, symbol)| Some((start?, symbol)));
        table.text = start
            .zip(etext)
            .map(|((start, symbol), end)| KernelText {
                symbol,
                range: start..end,
            })
            .filter(|text| !text.range.is_empty());
        bounds.sort_unstable();
        table.bound(&bounds);
        Ok(table)
    }

    /// Reads the output of [`KernelSymbols::write`], with that of [`KernelSymbols::write_more`] appended. An incomplete last line is
    /// ignored: it is still being written.
    ///
    /// # Errors
    /// [`Error::Kernel`] with the invalid line.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut table = Self::default();
        let written = bytes.iter().rposition(|byte| *byte == b'\n');
        for (number, line) in lines_of(bytes.get(..written.unwrap_or(0)).unwrap_or_default()) {
            if line.starts_with('#') {
                continue;
            }
            let mut words = line.split('\t');
            let (Some(start), Some(size), Some(name)) = (
                words.next().and_then(hex),
                words.next().and_then(hex),
                words.next(),
            ) else {
                return Err(wrong(number, "not `address size name module`"));
            };
            let end = start
                .checked_add(size)
                .ok_or_else(|| wrong(number, "the size reaches beyond the last address"))?;
            let module = words.next().unwrap_or_default();
            table.push(start, end, name, module);
        }
        table.symbols.sort_by_key(|symbol| symbol.start);
        Ok(table)
    }

    /// Writes the symbols as tab-separated text: address, size, name, module. With `addresses`, writes only those that contain one of them.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, addresses: Option<&[u64]>, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{HEADER}")?;
        self.write_entries(addresses, out)
    }

    /// Writes the additional lines that [`KernelSymbols::write`] would have written for these addresses.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_more(&self, addresses: &[u64], out: &mut dyn Write) -> io::Result<()> {
        self.write_entries(Some(addresses), out)
    }

    fn write_entries(&self, addresses: Option<&[u64]>, out: &mut dyn Write) -> io::Result<()> {
        let selected = addresses.map(|addresses| {
            let indexes = addresses.iter().filter_map(|&at| self.index(at));
            indexes.collect::<BTreeSet<_>>()
        });
        let entries: &mut dyn Iterator<Item = &Entry> = match &selected {
            Some(selected) => &mut selected.iter().filter_map(|&index| self.symbols.get(index)),
            None => &mut self.symbols.iter(),
        };
        for entry in entries {
            let symbol = self.symbol(entry);
            writeln!(
                out,
                "{:x}\t{:x}\t{}\t{}",
                symbol.start,
                symbol.end.saturating_sub(symbol.start),
                symbol.name,
                symbol.module.unwrap_or_default()
            )?;
        }
        Ok(())
    }

    /// The function at `address`.
    #[must_use]
    pub fn lookup(&self, address: u64) -> Option<KernelSymbol<'_>> {
        self.entry(address).map(|entry| self.symbol(entry))
    }

    /// The address range of the kernel itself. None if it is not known, as in the output of [`KernelSymbols::write`].
    #[must_use]
    pub const fn text(&self) -> Option<&KernelText> {
        self.text.as_ref()
    }

    /// Number of functions that were listed without their addresses.
    #[must_use]
    pub const fn hidden(&self) -> usize {
        self.hidden
    }

    /// Adds the symbols that are only in `newer`, a later snapshot of the same kernel: modules and BPF programs that were loaded meanwhile.
    /// Symbols that are gone are kept, because they may have been sampled. Memory that has changed its owner loses its name, because a
    /// sample may be from either owner.
    pub fn add_new(&mut self, newer: &Self) {
        let known = self.symbols.len();
        let mut reused = Vec::new();
        for entry in &newer.symbols {
            let symbol = newer.symbol(entry);
            let before = self.symbols.get(..known).unwrap_or_default();
            // The symbols that overlap it. The first of them may start before it.
            let from = before.partition_point(|old| old.end <= symbol.start);
            let overlapping = before.get(from..).unwrap_or_default();
            let overlapping = overlapping
                .iter()
                .take_while(|old| old.start < symbol.end)
                .map(|old| self.symbol(old));
            let (mut is_known, mut is_reused) = (false, false);
            for old in overlapping {
                let same_start = old.start == symbol.start;
                let gone = newer
                    .lookup(old.start)
                    .is_none_or(|now| now.name != old.name);
                // The end of a BPF program is not known: a program that starts after another one is a neighbour, not a replacement.
                let is_bounded = old.module != Some("bpf");
                if same_start && (old.name, old.module) == (symbol.name, symbol.module) {
                    is_known = true;
                } else if gone && (same_start || is_bounded) {
                    is_reused = true;
                    reused.push(old.start);
                }
            }
            if !is_known && !is_reused {
                let module = symbol.module.unwrap_or_default();
                self.push(symbol.start, symbol.end, symbol.name, module);
            }
        }
        reused.sort_unstable();
        for old in self.symbols.iter_mut().take(known) {
            if reused.binary_search(&old.start).is_ok() {
                old.name = (0, 0);
            }
        }
        self.symbols.sort_by_key(|symbol| symbol.start);
    }

    /// Number of functions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.symbols.len()
    }

    /// Returns true if there are no functions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    fn entry(&self, address: u64) -> Option<&Entry> {
        self.symbols.get(self.index(address)?)
    }

    /// The index of the function at `address`.
    fn index(&self, address: u64) -> Option<usize> {
        let after = self
            .symbols
            .partition_point(|symbol| symbol.start <= address);
        let index = after.checked_sub(1)?;
        let symbol = self.symbols.get(index)?;
        (address < symbol.end && symbol.name.0 < symbol.name.1).then_some(index)
    }

    fn symbol(&self, entry: &Entry) -> KernelSymbol<'_> {
        let text = |(from, to): (usize, usize)| self.names.get(from..to).unwrap_or_default();
        KernelSymbol {
            name: text(entry.name),
            module: Some(text(entry.module)).filter(|module| !module.is_empty()),
            start: entry.start,
            end: entry.end,
        }
    }

    fn push(&mut self, start: u64, end: u64, name: &str, module: &str) {
        // Modules are listed in runs, so most symbols share the text of the previous one.
        let module = match self.symbols.last() {
            Some(last) if self.names.get(last.module.0..last.module.1) == Some(module) => {
                last.module
            }
            _ => self.intern(module),
        };
        let name = self.intern(name);
        self.symbols.push(Entry {
            start,
            end,
            name,
            module,
        });
    }

    fn intern(&mut self, text: &str) -> (usize, usize) {
        let from = self.names.len();
        self.names.push_str(text);
        (from, self.names.len())
    }

    /// Sorts the symbols. For each address, keeps the name that is listed last, as perf does. Each symbol ends at the start of the next one
    /// of the same module.
    fn bound(&mut self, others: &[u64]) {
        self.symbols.sort_by_key(|symbol| symbol.start);
        self.symbols.dedup_by(|later, kept| {
            let is_same = later.start == kept.start;
            if is_same {
                *kept = *later;
            }
            is_same
        });
        let names = &self.names;
        let module = |entry: &Entry| names.get(entry.module.0..entry.module.1);
        let ends: Vec<u64> = self
            .symbols
            .iter()
            .enumerate()
            .map(|(index, symbol)| {
                let page_end = symbol
                    .start
                    .checked_next_multiple_of(PAGE)
                    .and_then(|page| page.checked_add(PAGE))
                    .unwrap_or(u64::MAX);
                let next = index
                    .checked_add(1)
                    .and_then(|next| self.symbols.get(next))
                    .map(|next| match module(next) == module(symbol) {
                        true => next.start,
                        false => next.start.min(page_end),
                    })
                    .unwrap_or(page_end);
                let other = others
                    .get(others.partition_point(|&other| other <= symbol.start))
                    .copied()
                    .unwrap_or(u64::MAX);
                next.min(other)
            })
            .collect();
        for (symbol, end) in self.symbols.iter_mut().zip(ends) {
            symbol.end = end;
        }
    }
}

/// The lines of a text with their numbers. A line that is not UTF-8 is returned as an empty one, which is then an error.
fn lines_of(bytes: &[u8]) -> impl Iterator<Item = (usize, &str)> {
    bytes
        .split(|&byte| byte == b'\n')
        .zip(1..)
        .filter(|(line, _)| !line.is_empty())
        .map(|(line, number)| (number, std::str::from_utf8(line).unwrap_or_default()))
}

fn hex(word: &str) -> Option<u64> {
    u64::from_str_radix(word, 16).ok()
}

fn wrong(line: usize, problem: &'static str) -> Error {
    Error::Kernel { line, problem }
}

#[cfg(test)]
mod tests;
