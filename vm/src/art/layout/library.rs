//! Reads the file of a library: its symbols, its code, its constants.

use super::error::LayoutError;
use super::trace::{Code, Trace};
use object::{
    Object, ObjectSegment, ObjectSymbol, RelocationFlags, RelocationTarget, SegmentFlags, elf,
};
use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;
use varid_instructions::Decoder;
use varid_model::{Address, Machine};
use varid_symbolizer::elf::{ElfSymbol, ElfSymbols, SymbolOrigin};
use varid_unwind::{Module, UnwindRow};

/// The most bytes in all segments of a library. ART's has nine megabytes.
const MAX_BYTES: u64 = 1 << 26;
/// The most functions and symbols that are read. ART's library has eleven thousand.
const MAX_FUNCTIONS: usize = 1 << 16;
/// The most decoded instructions and rows of unwind information. Debian's libraries take half a million.
const MAX_WORK: u32 = 1 << 22;
/// The most relocations that are read.
const MAX_RELOCATIONS: usize = 1 << 18;
/// ART's `Thread` for the thread itself, if it is a thread-local variable of C++.
const SELF_TLS: &str = "_ZN3art6Thread9self_tls_E";
/// Pointer to the VM's `Runtime`.
const RUNTIME: &str = "_ZN3art7Runtime9instance_E";

/// A loaded part of the file.
#[derive(Debug)]
struct Segment {
    address: u64,
    bytes: Vec<u8>,
    is_code: bool,
}

/// A function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) code: Range<u64>,
    /// Its mangled name, or empty.
    pub(super) name: String,
}

/// A library of ART.
#[derive(Debug)]
pub(super) struct Library {
    pub(super) machine: Machine,
    /// ELF `e_machine`.
    pub(super) elf_machine: u16,
    pub(super) decoder: Decoder,
    /// All functions, by address.
    pub(super) functions: Vec<Function>,
    /// The code, from the first instruction to the end of the last one.
    pub(super) text: Range<u64>,
    /// The word in which the dynamic linker stores the offset of [`SELF_TLS`] from the thread pointer.
    pub(super) tls_word: Option<u64>,
    /// Address of the pointer to the VM's `Runtime`.
    pub(super) runtime: u64,
    /// The version of its oat files.
    pub(super) oat_version: Option<[u8; 3]>,
    segments: Vec<Segment>,
    /// Addresses that the dynamic linker writes into words.
    relocated: HashMap<u64, u64>,
    /// Memory that only the dynamic linker writes.
    constants: Range<u64>,
    module: Module,
    work: Cell<u32>,
}

impl Library {
    /// Reads a file.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, LayoutError> {
        let unreadable = |error: &dyn std::fmt::Display| LayoutError::File(error.to_string());
        let file = varid_symbolizer::parse_elf(bytes).map_err(|error| unreadable(&error))?;
        let symbols =
            ElfSymbols::from_bytes(bytes, "libart").map_err(|error| unreadable(&error))?;
        let elf_machine = match file.architecture() {
            object::Architecture::X86_64 => elf::EM_X86_64,
            object::Architecture::Aarch64 => elf::EM_AARCH64,
            object::Architecture::Arm => elf::EM_ARM,
            _ => return Err(LayoutError::Machine),
        };
        let machine = Machine::of_elf(elf_machine).ok_or(LayoutError::Machine)?;
        let decoder = Decoder::of(machine).ok_or(LayoutError::Machine)?;
        let segments = segments(&file)?;
        let runtime = file
            .dynamic_symbols()
            .find(|symbol| symbol.name() == Ok(RUNTIME) && symbol.address() != 0)
            .map(|symbol| symbol.address())
            .ok_or(LayoutError::NoSymbol("art::Runtime::instance_"))?;
        let (relocated, tls_word) = relocations(&file);
        let code = segments.iter().filter(|segment| segment.is_code);
        let end = |segment: &Segment| segment.address.saturating_add(segment.bytes.len() as u64);
        let text = code
            .clone()
            .map(|segment| segment.address)
            .min()
            .unwrap_or_default()..code.map(end).max().unwrap_or_default();
        Ok(Self {
            machine,
            elf_machine,
            decoder,
            functions: functions(&symbols),
            text,
            tls_word,
            runtime,
            oat_version: oat_version(&segments),
            constants: constants(&file),
            segments,
            relocated,
            module: Module::new(&file),
            work: Cell::new(0),
        })
    }

    /// Size of a pointer in bytes.
    pub(super) fn word(&self) -> u8 {
        self.machine.word()
    }

    /// Returns the function that starts at an address.
    pub(super) fn function_at(&self, address: u64) -> Option<&Function> {
        let at = self
            .functions
            .binary_search_by_key(&address, |function| function.code.start);
        self.functions.get(at.ok()?)
    }

    /// Returns the only function whose mangled name has this start and end. None if there are several.
    pub(super) fn named(&self, start: &str, end: &str) -> Option<&Function> {
        let is_it =
            |function: &&Function| function.name.starts_with(start) && function.name.ends_with(end);
        let mut found = self.functions.iter().filter(is_it);
        found.next().filter(|_| found.next().is_none())
    }

    /// Follows the code of a function.
    pub(super) fn trace(&self, function: &Function) -> Trace {
        Trace::of(self, self.decoder, function.code.clone())
    }

    /// Returns the rows of the unwind information of some code.
    pub(super) fn rows(&self, code: Range<u64>) -> Vec<UnwindRow> {
        if !self.has_worked(1) {
            return Vec::new();
        }
        let rows = self
            .module
            .rows(Address::new(code.start)..Address::new(code.end));
        self.has_worked(u32::try_from(rows.len()).unwrap_or(u32::MAX));
        rows
    }

    /// Counts work. Returns false if the limit is reached.
    fn has_worked(&self, work: u32) -> bool {
        self.work.set(self.work.get().saturating_add(work));
        self.work.get() < MAX_WORK
    }

    /// Returns an error if the limit of work was reached.
    pub(super) fn is_read(&self) -> Result<(), LayoutError> {
        match self.has_worked(0) {
            true => Ok(()),
            false => Err(LayoutError::OutOfBounds("the work that its code takes")),
        }
    }

    /// Returns true if its unwind information marks any interpreter.
    pub(super) fn has_marks(&self) -> bool {
        self.module.has_bytecode_marks()
    }
}

impl Code for Library {
    fn count(&self) -> bool {
        self.has_worked(1)
    }

    fn code(&self, address: u64) -> &[u8] {
        let found = self.segments.iter().find_map(|segment| {
            let into = usize::try_from(address.checked_sub(segment.address)?).ok()?;
            segment.bytes.get(into..).filter(|_| segment.is_code)
        });
        found.unwrap_or_default()
    }

    fn constant(&self, address: u64, size: u8) -> Option<u64> {
        if let Some(value) = self.relocated.get(&address) {
            return (size == self.word()).then_some(*value);
        }
        let segment = self.segments.iter().find(|segment| {
            (segment.address..segment.address.saturating_add(segment.bytes.len() as u64))
                .contains(&address)
        })?;
        let is_relative = self.constants.contains(&address);
        if size != self.word() || !(segment.is_code || is_relative) {
            return None;
        }
        let into = usize::try_from(address.checked_sub(segment.address)?).ok()?;
        let bytes = segment.bytes.get(into..into.checked_add(size.into())?)?;
        let value = match *bytes {
            [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => return None,
        };
        // A relocation without a symbol adds the load base to the word's value.
        let last = self.segments.iter().map(|segment| segment.address).max()?;
        let is_address = value != 0 && value < last.saturating_add(MAX_BYTES);
        (segment.is_code || is_address).then_some(value)
    }
}

fn segments(file: &object::File<'_>) -> Result<Vec<Segment>, LayoutError> {
    let mut left = MAX_BYTES;
    let mut segments = Vec::new();
    for segment in file.segments() {
        let bytes = segment
            .data()
            .map_err(|error| LayoutError::File(error.to_string()))?;
        left = left
            .checked_sub(bytes.len() as u64)
            .ok_or(LayoutError::OutOfBounds("the size of its segments"))?;
        let flags = match segment.flags() {
            SegmentFlags::Elf { p_flags } => p_flags,
            _ => 0,
        };
        segments.push(Segment {
            address: segment.address(),
            bytes: bytes.to_vec(),
            is_code: flags & elf::PF_X != 0,
        });
    }
    Ok(segments)
}

/// Returns the functions with a symbol, and those without one that the unwind information lists.
fn functions(symbols: &ElfSymbols) -> Vec<Function> {
    let mut functions: Vec<Function> = symbols
        .functions()
        .take(MAX_FUNCTIONS)
        .filter_map(|symbol| {
            Some(Function {
                code: code(symbols, &symbol)?,
                name: match symbol.origin {
                    SymbolOrigin::Unnamed => String::new(),
                    SymbolOrigin::Symbol | SymbolOrigin::Extra => symbol.raw.into_owned(),
                },
            })
        })
        .collect();
    // Of two at the same address, keeps the one with a name.
    functions.sort_by(|one, other| {
        let key = |function: &Function| (function.code.start, function.name.is_empty());
        key(one).cmp(&key(other))
    });
    functions.dedup_by_key(|function| function.code.start);
    functions
}

/// Returns the code of the function that a symbol names. None if the symbol names only a part of a function: an interpreter in assembly has
/// a symbol for each handler, which `.gnu_debugdata` keeps, and its own symbol may end where the first handler begins. The unwind
/// information has it as one function.
fn code(symbols: &ElfSymbols, symbol: &ElfSymbol<'_>) -> Option<Range<u64>> {
    match symbols.function_bounds(symbol.start) {
        Some(bounds) if bounds.start == symbol.start => Some(bounds),
        Some(_) => None,
        None => Some(symbol.start..symbol.end),
    }
}

/// Returns what the dynamic linker writes: addresses by the word that contains them, and the word of [`SELF_TLS`].
fn relocations(file: &object::File<'_>) -> (HashMap<u64, u64>, Option<u64>) {
    let mut addresses = HashMap::new();
    let mut tls_word = None;
    let table = file.dynamic_symbol_table();
    let in_tls = file
        .dynamic_symbols()
        .find(|symbol| symbol.name() == Ok(SELF_TLS))
        .map(|symbol| symbol.address());
    let all = file.dynamic_relocations().into_iter().flatten();
    for (at, relocation) in all.take(MAX_RELOCATIONS) {
        let RelocationFlags::Elf { r_type } = relocation.flags() else {
            continue;
        };
        let symbol = match relocation.target() {
            RelocationTarget::Symbol(index) => {
                use object::ObjectSymbolTable;
                table
                    .as_ref()
                    .and_then(|table| table.symbol_by_index(index).ok())
            }
            _ => None,
        };
        let addend = relocation.addend().cast_unsigned();
        match (file.architecture(), r_type, symbol) {
            (object::Architecture::X86_64, elf::R_X86_64_TPOFF64, symbol)
            | (object::Architecture::Aarch64, elf::R_AARCH64_TLS_TPREL, symbol)
            | (object::Architecture::Arm, elf::R_ARM_TLS_TPOFF32, symbol) => {
                // By its name or, without a symbol, by its offset in the library's thread-local variables.
                let is_it = match symbol {
                    Some(symbol) => symbol.name() == Ok(SELF_TLS),
                    None => in_tls == Some(addend),
                };
                if is_it {
                    tls_word.get_or_insert(at);
                }
            }
            (object::Architecture::X86_64, elf::R_X86_64_GLOB_DAT, Some(symbol))
            | (object::Architecture::Aarch64, elf::R_AARCH64_GLOB_DAT, Some(symbol))
            | (object::Architecture::Arm, elf::R_ARM_GLOB_DAT, Some(symbol))
                if symbol.address() != 0 =>
            {
                addresses.insert(at, symbol.address());
            }
            (object::Architecture::X86_64, elf::R_X86_64_RELATIVE, _)
            | (object::Architecture::Aarch64, elf::R_AARCH64_RELATIVE, _) => {
                addresses.insert(at, addend);
            }
            _ => {}
        }
    }
    (addresses, tls_word)
}

/// Returns the memory that is read-only after relocation: `.got`. A section of this name is small and contains words.
fn constants(file: &object::File<'_>) -> Range<u64> {
    use object::ObjectSection;
    let got = file.section_by_name(".got");
    got.map_or(0..0, |got| {
        got.address()..got.address().saturating_add(got.size())
    })
}

/// Returns the version that follows the magic of oat files in the library, if there is only one.
fn oat_version(segments: &[Segment]) -> Option<[u8; 3]> {
    const MAGIC: &[u8; 4] = b"oat\n";
    let mut found = None;
    for segment in segments {
        for bytes in segment.bytes.windows(8) {
            let version = match bytes.split_first_chunk() {
                Some((MAGIC, [a, b, c, 0])) => [*a, *b, *c],
                _ => continue,
            };
            if !version.iter().all(u8::is_ascii_digit) {
                continue;
            }
            if *found.get_or_insert(version) != version {
                return None;
            }
        }
    }
    found
}
