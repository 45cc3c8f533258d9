//! Which symbols and lines does a substitute hold?

use std::collections::HashMap;
use std::ops::Range;

use super::machine::Machine;
use super::name;
use crate::dex::{self, DexFile, LineRow, LineTable, MethodCode, MethodIndex};
use crate::{Error, Result};

/// The bytes that all names of one file may take; a file of 64 K methods with names of 1,000 characters stays below.
const NAMES: usize = 64 << 20;
/// Those of a large file may take so many times its size, up to a bound: classes are named once there.
const NAMES_PER_BYTE: usize = 4;
const MAX_NAMES: usize = 1 << 29;
/// Where the text of a dex file starts: after its header, which is longer than an ELF header.
pub(super) const TEXT_START: u64 = 0x70;
/// Bytes of the smallest step between instructions.
pub(super) const CODE_UNIT: u64 = 2;

/// A named stretch of a substitute's addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// First address.
    pub offset: u64,
    /// Bytes; not zero.
    pub size: u64,
    /// The name that profiles show.
    pub name: String,
}

impl Slot {
    /// The address behind the last one.
    pub(super) fn end(&self) -> u64 {
        self.offset.saturating_add(self.size)
    }
}

/// Methods of one class that lie one behind the other: a compile unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unit {
    /// Which of the slots.
    pub(super) methods: Range<usize>,
    /// The folder of the class's package, where the source files are; empty: none.
    pub(super) folder: String,
    /// Source files, as [`Row::file`] counts them; the class's own is the first.
    pub(super) files: Vec<String>,
    /// Lines, by ascending address, one for an address.
    pub(super) rows: Vec<Row>,
}

/// From this address on the source is here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) address: u32,
    /// Which of the unit's files.
    pub(super) file: u32,
    /// Line, from 1; zero: none.
    pub(super) line: u32,
}

/// What a substitute ELF file says, before it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Substitute {
    pub(super) machine: Machine,
    pub(super) text: Range<u64>,
    pub(super) build_id: Vec<u8>,
    pub(super) slots: Vec<Slot>,
    pub(super) units: Vec<Unit>,
}

impl Substitute {
    /// The substitute of a dex file: a symbol for each method's instructions, named by
    /// [`crate::dex::MethodId::display_name`], and their source lines; the build-id is [`DexFile::content_sha1`].
    ///
    /// A method whose name is broken is called `method@17`, and so are those behind whose names take 64 MB, in a large
    /// file four times its size. One whose debug information is broken has the lines before the fault. Where the
    /// instructions of two methods overlap, the later one has them. All dex files of a container are in it that can be
    /// read.
    ///
    /// # Errors
    /// [`Error::Dex`] if no class can be read.
    pub fn of_dex(dex: &DexFile<'_>) -> Result<Self> {
        let others = others(dex);
        let mut methods = Vec::new();
        let mut problem = None;
        for dex in std::iter::once(dex).chain(&others) {
            match MethodIndex::new(dex) {
                Ok(index) => {
                    methods.extend(index.methods().iter().map(|method| (dex, method.clone())));
                }
                Err(error) => {
                    problem.get_or_insert(error);
                }
            }
        }
        if let Some(error) = problem.filter(|_| methods.is_empty()) {
            return Err(error);
        }
        methods.sort_by_key(|(_, method)| method.code.start);
        methods.dedup_by(|(_, next), (_, method)| method.absorb(next));
        let mut builder = Builder::new(dex);
        let mut following = methods.iter().skip(1);
        for (dex, method) in &methods {
            let next = following.next().map(|(_, next)| next.code.start);
            let end = next.map_or(method.code.end, |next| next.min(method.code.end));
            builder.method(dex, method, end);
        }
        let end = dex.bytes().len() as u64;
        Ok(Self {
            machine: Machine::host(),
            text: TEXT_START.min(end)..end,
            build_id: dex.content_sha1().to_vec(),
            slots: builder.slots,
            units: builder.units,
        })
    }

    /// The substitute of a range of `length` addresses that holds `slots`: the remap range.
    ///
    /// `build_id` must change whenever the slots do, as the caller sees fit.
    ///
    /// # Errors
    /// [`Error::Substitute`] if a slot is empty or not within the range, the names take more than 64 MB, or the
    /// build-id is not 1 to 64 bytes long.
    pub fn remap(
        slots: impl IntoIterator<Item = Slot>,
        length: u64,
        build_id: &[u8],
    ) -> Result<Self> {
        let refuse = |problem: String| Err(Error::Substitute { problem });
        if !(1..=64).contains(&build_id.len()) {
            return refuse(format!("a build-id of {} bytes", build_id.len()));
        }
        let mut names = 0usize;
        let mut slots: Vec<Slot> = slots.into_iter().collect();
        slots.sort_by_key(|slot| slot.offset);
        for slot in &mut slots {
            let end = slot.offset.checked_add(slot.size);
            if slot.size == 0 || end.is_none_or(|end| end > length) {
                return refuse(format!(
                    "slot `{}` at {:#x} of {} bytes does not lie within {length:#x} bytes",
                    slot.name, slot.offset, slot.size
                ));
            }
            names = names.saturating_add(slot.name.len());
            if names > NAMES {
                return refuse(format!("the names take more than {} MB", NAMES >> 20));
            }
            slot.name = name::symbol(std::mem::take(&mut slot.name));
        }
        Ok(Self {
            machine: Machine::host(),
            // The headers lie over the first addresses, as they do over a dex file's.
            text: 0..length.max(TEXT_START),
            build_id: build_id.to_vec(),
            slots,
            units: Vec::new(),
        })
    }

    /// The same for another machine than the one this program runs on: readers expect the recorded one's.
    #[must_use]
    pub fn for_machine(mut self, machine: Machine) -> Self {
        self.machine = machine;
        self
    }

    /// The build-id.
    #[must_use]
    pub fn build_id(&self) -> &[u8] {
        &self.build_id
    }

    /// The symbols, by ascending address.
    #[must_use]
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }
}

/// The dex files that follow the first of a container, up to one that is broken.
///
/// Each has tables of its own: those that would take more than the container share them to be read without end.
pub(super) fn others<'d>(dex: &'d DexFile<'_>) -> Vec<DexFile<'d>> {
    let container = dex.bytes();
    let next = |dex: &DexFile<'_>| DexFile::parse_at(container, dex.next_header()?).ok();
    let mut left = container.len().saturating_sub(dex.tables_size());
    std::iter::successors(next(dex), next)
        .take_while(|dex| {
            let rest = left.checked_sub(dex.tables_size());
            left = rest.unwrap_or_default();
            rest.is_some()
        })
        .collect()
}

/// Symbols and lines as far as they are known, method by method by ascending address.
#[derive(Debug)]
struct Builder {
    slots: Vec<Slot>,
    units: Vec<Unit>,
    /// The last unit's class, and its files by their names.
    class: String,
    files: HashMap<String, u32>,
    budget: Budget,
}

impl Builder {
    fn new(dex: &DexFile<'_>) -> Self {
        Self {
            slots: Vec::new(),
            units: Vec::new(),
            class: String::new(),
            files: HashMap::new(),
            budget: Budget::of(dex),
        }
    }

    /// Adds `method`, whose instructions are its own up to `end`.
    fn method(&mut self, dex: &DexFile<'_>, method: &MethodCode, end: u32) {
        let name = self.budget.take(|| dex.code_name(method));
        let class = || dex.method_id(method.index)?.class_name();
        // It is a part of the method's name.
        let class = match name {
            Some(_) => class().ok().map(name::printable),
            None => self.budget.take(class),
        };
        let class = class.unwrap_or_else(|| dex::NO_CLASS.to_owned());
        let first = self.slots.len();
        self.slots.push(Slot {
            offset: method.code.start.into(),
            size: end.saturating_sub(method.code.start).into(),
            name: name.map_or_else(|| format!("method@{}", method.index), name::symbol),
        });
        if self.units.is_empty() || self.class != class {
            self.files.clear();
            self.units.push(Unit {
                methods: first..first,
                folder: name::source_folder(&class),
                files: Vec::new(),
                rows: Vec::new(),
            });
            self.class = class;
            self.file(|| dex.source_file(method));
        }
        if let Some(lines) = self.budget.lines(dex, method) {
            self.rows(dex, lines.rows(), end);
        }
        if let Some(unit) = self.units.last_mut() {
            unit.methods.end = self.slots.len();
        }
    }

    /// Adds the rows of a method that are before `end`.
    ///
    /// Of several rows for an instruction the first is for it, the last for what follows: as
    /// [`crate::dex::LineTable::lookup`] has it.
    fn rows(&mut self, dex: &DexFile<'_>, rows: &[LineRow], end: u32) {
        let mut source = None;
        let mut file = 0;
        let mut behind: Option<Row> = None;
        for rows in rows.chunk_by(|one, other| one.offset == other.offset) {
            for (number, row) in rows.iter().enumerate() {
                if source != Some(row.source) {
                    source = Some(row.source);
                    file = self.file(|| row.source.map(|index| dex.string(index)).transpose());
                }
                let address = row.offset;
                let row = Row {
                    address,
                    file,
                    line: row.line,
                };
                if number == 0 {
                    self.row(behind.take().filter(|behind| behind.address < address));
                    self.row(Some(row).filter(|_| address < end));
                } else {
                    let address = address.saturating_add(CODE_UNIT as u32);
                    behind = Some(Row { address, ..row }).filter(|_| address < end);
                }
            }
        }
        self.row(behind);
    }

    fn row(&mut self, row: Option<Row>) {
        if let Some(unit) = self.units.last_mut() {
            unit.rows.extend(row);
        }
    }

    /// The unit's number for a source file. One without a name is called as the class: a line of an unknown file
    /// still tells two lines apart.
    fn file(&mut self, name: impl FnOnce() -> Result<Option<String>>) -> u32 {
        let name = self
            .budget
            .take(|| Ok(name()?.unwrap_or_default()))
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| dex::simple_name(&self.class).to_owned());
        if let Some(known) = self.files.get(&name) {
            return *known;
        }
        let Some(unit) = self.units.last_mut() else {
            return 0;
        };
        let number = u32::try_from(unit.files.len()).unwrap_or(u32::MAX);
        unit.files.push(name.clone());
        self.files.insert(name, number);
        number
    }
}

/// What is left for a file: a small one can claim that a million methods share the longest name, or the
/// longest stretch of instructions.
#[derive(Debug)]
pub(super) struct Budget {
    names: usize,
    code: usize,
}

impl Budget {
    /// What a file has, with the others of its container.
    pub(super) fn of(dex: &DexFile<'_>) -> Self {
        let size = dex.bytes().len();
        Self {
            names: size.saturating_mul(NAMES_PER_BYTE).clamp(NAMES, MAX_NAMES),
            code: size,
        }
    }

    /// A name; none if it is broken. The first one that there is no room for ends them all.
    pub(super) fn take(&mut self, name: impl FnOnce() -> Result<String>) -> Option<String> {
        if self.names == 0 {
            return None;
        }
        let name = name().ok().map(name::printable)?;
        let left = self.names.checked_sub(name.len());
        self.names = left.unwrap_or_default();
        left.map(|_| name)
    }

    /// The lines of a method; none if they cannot be read, or the methods have more instructions than the file has room for.
    pub(super) fn lines(&mut self, dex: &DexFile<'_>, method: &MethodCode) -> Option<LineTable> {
        let left = self.code.checked_sub(method.code.len());
        self.code = left.unwrap_or_default();
        left.and_then(|_| dex.lines(method).ok())
    }
}
