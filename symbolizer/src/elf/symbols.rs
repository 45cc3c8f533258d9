//! Finds the name and the bounds of the function at an address.

use std::borrow::Cow;
use std::ops::Range;

use super::demangle::demangle;
use super::parts::{Segment, c_string};
use super::ranges::Ranges;

/// The longest symbol name that is shown, in bytes.
const MAX_SYMBOL: usize = 65_536;

/// The functions of an ELF file.
///
/// It has its own tables: the file is closed and may change or be deleted afterwards.
#[derive(Debug, Clone, Default)]
pub struct ElfSymbols {
    pub(super) module: String,
    pub(super) build_id: Option<Vec<u8>>,
    pub(super) segments: Vec<Segment>,
    pub(super) strings: Vec<Box<[u8]>>,
    pub(super) symbols: Ranges<Named>,
    pub(super) symbol_count: usize,
    pub(super) functions: Ranges<(u64, u64)>,
    pub(super) function_count: usize,
    pub(super) extra: Vec<(Range<u64>, String)>,
    pub(super) problems: Vec<String>,
}

/// A symbol. Its name is in one of the string tables.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Named {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) table: u8,
    pub(super) name: u32,
    /// Its index among the file's symbols.
    pub(super) index: u32,
}

/// The source of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SymbolOrigin {
    /// The table given to [`ElfSymbols::with_extra`].
    Extra,
    /// The file's `.symtab` or `.dynsym`.
    Symbol,
    /// The file's `.eh_frame`, for a function without a name.
    Unnamed,
}

/// A function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElfSymbol<'a> {
    /// Its mangled name, as in the file.
    pub raw: Cow<'a, str>,
    /// First address.
    pub start: u64,
    /// The address after its last byte.
    pub end: u64,
    /// The source of the name.
    pub origin: SymbolOrigin,
}

impl ElfSymbol<'_> {
    /// Its demangled name.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        match self.origin {
            SymbolOrigin::Symbol => demangle(&self.raw),
            SymbolOrigin::Extra | SymbolOrigin::Unnamed => Cow::Borrowed(&self.raw),
        }
    }
}

impl ElfSymbols {
    /// Adds names that are not in the file: `(start, end, name)` with an exclusive end. They take precedence over the file's own.
    #[must_use]
    pub fn with_extra(mut self, names: impl IntoIterator<Item = (u64, u64, String)>) -> Self {
        self.extra.extend(
            names
                .into_iter()
                .map(|(start, end, name)| (start..end, name)),
        );
        self.extra.sort_by_key(|(range, _)| range.start);
        self
    }

    /// The function at `address`.
    ///
    /// A symbol is found only for the bytes that it covers. If there is no symbol but `.eh_frame` has a function, the name is the module's
    /// name and the function's address: `libart.so+0x7b2d80`.
    #[must_use]
    pub fn lookup(&self, address: u64) -> Option<ElfSymbol<'_>> {
        self.extra(address)
            .or_else(|| {
                self.symbols.get(address).map(|named| ElfSymbol {
                    raw: self.name(&named),
                    start: named.start,
                    end: named.end,
                    origin: SymbolOrigin::Symbol,
                })
            })
            .or_else(|| {
                self.functions.get(address).map(|(start, end)| ElfSymbol {
                    raw: Cow::Owned(format!("{}+{start:#x}", self.module)),
                    start,
                    end,
                    origin: SymbolOrigin::Unnamed,
                })
            })
    }

    /// Returns the index of the symbol at `address`, and its mangled name.
    pub(super) fn numbered(&self, address: u64) -> Option<(u32, Cow<'_, str>)> {
        let named = self.symbols.get(address)?;
        Some((named.index, self.name(&named)))
    }

    /// Returns the function at a file offset, such as that of a mapping: `lookup(vaddr(offset))`.
    #[must_use]
    pub fn lookup_offset(&self, offset: u64) -> Option<ElfSymbol<'_>> {
        self.lookup(self.vaddr(offset)?)
    }

    /// The address at which the program headers load the byte at `offset` of the file.
    #[must_use]
    pub fn vaddr(&self, offset: u64) -> Option<u64> {
        let holds = |segment: &&Segment| {
            offset
                .checked_sub(segment.offset)
                .is_some_and(|within| within < segment.size)
        };
        let segment = self
            .segments
            .iter()
            .filter(|segment| segment.executable)
            .find(holds)
            .or_else(|| self.segments.iter().find(holds))?;
        offset
            .checked_sub(segment.offset)?
            .checked_add(segment.address)
    }

    /// The bounds of the function at `address` according to `.eh_frame`.
    #[must_use]
    pub fn function_bounds(&self, address: u64) -> Option<Range<u64>> {
        self.functions.get(address).map(|(start, end)| start..end)
    }

    /// The GNU build-id.
    #[must_use]
    pub fn build_id(&self) -> Option<&[u8]> {
        self.build_id.as_deref()
    }

    /// Parts of the file that cannot be used, with the reasons. The other parts are used.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// The file's name without its folder.
    #[must_use]
    pub fn module(&self) -> &str {
        &self.module
    }

    /// Number of functions with a symbol.
    #[must_use]
    pub fn symbol_count(&self) -> usize {
        self.symbol_count
    }

    /// Number of functions in `.eh_frame`.
    #[must_use]
    pub fn function_count(&self) -> usize {
        self.function_count
    }

    fn extra(&self, address: u64) -> Option<ElfSymbol<'_>> {
        let after = self
            .extra
            .partition_point(|(range, _)| range.start <= address);
        let (range, name) = self.extra.get(after.checked_sub(1)?)?;
        range.contains(&address).then(|| ElfSymbol {
            raw: Cow::Borrowed(name),
            start: range.start,
            end: range.end,
            origin: SymbolOrigin::Extra,
        })
    }

    fn name(&self, named: &Named) -> Cow<'_, str> {
        let bytes = self
            .strings
            .get(usize::from(named.table))
            .map_or(&[][..], |table| name_at(table, named.name));
        String::from_utf8_lossy(bytes)
    }
}

/// The name at `offset` of a string table.
fn name_at(table: &[u8], offset: u32) -> &[u8] {
    let bytes = table.get(offset as usize..).unwrap_or_default();
    c_string(bytes.get(..MAX_SYMBOL).unwrap_or(bytes))
}
