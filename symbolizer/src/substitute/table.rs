//! The symbols and lines of a substitute.

use std::collections::HashMap;
use std::ops::Range;

use super::machine::TargetMachine;
use super::name;
use crate::bytecode::{BytecodeImage, CodeCopy, CodeLine, MethodCode, NO_CLASS, unqualified};
use crate::dex::{DexBytecode, DexFile};
use crate::{Error, Result};

/// The most bytes of all names in one file: enough for 64 K methods with names of 1,000 characters.
const NAMES: usize = 64 << 20;
/// In a large file, names may take this many times its size, up to [`MAX_NAMES`].
const NAMES_PER_BYTE: usize = 4;
const MAX_NAMES: usize = 1 << 29;
/// The start of the text, unless there is code before it: after a dex file's header, which is longer than an ELF header.
pub(super) const TEXT_START: u64 = 0x70;

/// A named range of a substitute's addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// First address.
    pub offset: u64,
    /// Size in bytes. Not zero.
    pub size: u64,
    /// The name that profiles show.
    pub name: String,
}

impl Slot {
    /// The address after the last one.
    pub(super) fn end(&self) -> u64 {
        self.offset.saturating_add(self.size)
    }
}

/// A named range of addresses with the source lines of the method that it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodSlot {
    /// The range, and the method's name.
    pub slot: Slot,
    /// The types of its parameters and of its result, as in class files. Empty if they are not known.
    pub descriptor: String,
    /// Its lines. None if they are not known.
    pub source: Option<MethodSource>,
}

/// The source lines of a method.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MethodSource {
    /// The name of its class, such as `org.example.App`.
    pub class: String,
    /// The name of its source file, without a folder.
    pub file: String,
    /// Its lines by ascending offset.
    pub lines: Vec<SlotLine>,
}

/// The source line of the addresses of a slot from an offset on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SlotLine {
    /// Bytes from the slot's first address.
    pub offset: u32,
    /// Line, from 1.
    pub line: u32,
}

impl From<Slot> for MethodSlot {
    fn from(slot: Slot) -> Self {
        Self {
            slot,
            descriptor: String::new(),
            source: None,
        }
    }
}

/// Consecutive methods of one class: a compile unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unit {
    /// Their range in the slots.
    pub(super) methods: Range<usize>,
    /// The folder of the class's package, which contains the source files. Empty if there is none.
    pub(super) folder: String,
    /// Source files, indexed by [`Row::file`]. The class's own file is the first.
    pub(super) files: Vec<String>,
    /// Lines by ascending address, at most one for each address.
    pub(super) rows: Vec<Row>,
}

impl Unit {
    /// The unit of one method, the `at`th of the slots.
    fn of_method(at: usize, slot: &Slot, source: MethodSource) -> Self {
        let within = source
            .lines
            .iter()
            .filter(|line| u64::from(line.offset) < slot.size);
        let row = |line: &SlotLine| {
            let address = slot.offset.saturating_add(line.offset.into());
            Some(Row {
                address: u32::try_from(address).ok()?,
                file: 0,
                line: line.line,
            })
        };
        Self {
            methods: at..at.saturating_add(1),
            folder: name::source_folder(&name::printable(source.class)),
            files: vec![name::printable(source.file)],
            rows: within.filter_map(row).collect(),
        }
    }
}

/// The source line of the addresses from this one on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) address: u32,
    /// Index of the file in the unit's list.
    pub(super) file: u32,
    /// Line, from 1. Zero if there is none.
    pub(super) line: u32,
}

/// The content of a substitute ELF file before it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Substitute {
    pub(super) machine: TargetMachine,
    pub(super) text: Range<u64>,
    /// The smallest step between instructions in bytes. Not zero.
    pub(super) code_unit: u8,
    pub(super) build_id: Vec<u8>,
    pub(super) slots: Vec<Slot>,
    pub(super) units: Vec<Unit>,
}

impl Substitute {
    /// The most bytes of all names of [`Substitute::remap`].
    pub const MAX_NAMES: usize = NAMES;

    /// Makes the substitute of a dex file: [`Substitute::of_bytecode`] for all dex files in its container that can be read.
    ///
    /// # Errors
    /// [`Error::Dex`] if no class can be read.
    pub fn of_dex(dex: &DexFile<'_>) -> Result<Self> {
        Ok(Self::of_bytecode(&DexBytecode::new(dex.borrowed())?))
    }

    /// Makes the substitute of a bytecode file: a symbol for each method's instructions, with [`BytecodeImage::code_name`] as its name, and
    /// their source lines. The build-id is [`BytecodeImage::content_id`].
    ///
    /// A method whose name is broken is called `method@17`. So are the methods that follow once names take 64 MB, or four times the size of
    /// a large file. A method whose debug information is broken has the lines before the fault.
    #[must_use]
    pub fn of_bytecode(image: &dyn BytecodeImage) -> Self {
        let mut builder = Builder::new(image);
        for method in image.methods() {
            builder.method(method);
        }
        // A unit is one address range, so it must not contain both methods of the image and copies.
        builder.end_unit();
        for copy in image.copies().iter() {
            builder.copy(copy);
        }
        Self {
            machine: TargetMachine::host(),
            text: text_of(image),
            code_unit: builder.code_unit,
            build_id: image.content_id().to_vec(),
            slots: builder.slots,
            units: builder.units,
        }
    }

    /// Makes the substitute of a range of `length` addresses with `methods`, which do not overlap: the remap range.
    ///
    /// `build_id` must change whenever the methods change. How is up to the caller.
    ///
    /// # Errors
    /// [`Error::Substitute`] if a slot is empty or outside of the range, the names take more than 64 MB, or the build-id is not 1 to 64
    /// bytes long.
    pub fn remap<M: Into<MethodSlot>>(
        methods: impl IntoIterator<Item = M>,
        length: u64,
        build_id: &[u8],
    ) -> Result<Self> {
        let mut methods: Vec<MethodSlot> = methods.into_iter().map(Into::into).collect();
        methods.sort_by_key(|method| method.slot.offset);
        let (slots, sources): (Vec<_>, Vec<_>) = methods
            .into_iter()
            .map(|method| (method.slot, method.source))
            .unzip();
        let mut made = Self::of_slots(slots, length, build_id, name::symbol)?;
        let numbered = sources.into_iter().enumerate();
        made.units = numbered
            .filter_map(|(at, source)| Some(Unit::of_method(at, made.slots.get(at)?, source?)))
            .collect();
        Ok(made)
    }

    /// Makes the substitute of an ELF file of which only `slots` are known, the functions by their file offsets. Mangled names stay
    /// mangled: readers demangle them.
    ///
    /// # Errors
    /// As for [`Substitute::remap`].
    pub fn of_functions(
        slots: impl IntoIterator<Item = Slot>,
        length: u64,
        build_id: &[u8],
    ) -> Result<Self> {
        Self::of_slots(slots, length, build_id, name::printable)
    }

    fn of_slots(
        slots: impl IntoIterator<Item = Slot>,
        length: u64,
        build_id: &[u8],
        symbol: fn(String) -> String,
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
            slot.name = symbol(std::mem::take(&mut slot.name));
        }
        Ok(Self {
            machine: TargetMachine::host(),
            // The headers overlap the first addresses, as they overlap a dex file's header.
            text: 0..length.max(TEXT_START),
            code_unit: 1,
            build_id: build_id.to_vec(),
            slots,
            units: Vec::new(),
        })
    }

    /// Returns the same substitute for another machine. Readers expect the recorded machine, not the one that this program runs on.
    #[must_use]
    pub fn for_machine(mut self, machine: TargetMachine) -> Self {
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

/// The addresses of a file's text: all from its first method on, and those after its header.
pub(super) fn text_of(image: &dyn BytecodeImage) -> Range<u64> {
    let end = image.bytes().len() as u64;
    let end = end.max(image.copies().range().end.into()).max(TEXT_START);
    let first = image.methods().first();
    let start = first.map_or(TEXT_START, |method| method.code.start.into());
    start.min(TEXT_START)..end
}

/// Collects symbols and lines method by method, by ascending address.
#[derive(Debug)]
struct Builder<'i> {
    image: &'i dyn BytecodeImage,
    code_unit: u8,
    slots: Vec<Slot>,
    units: Vec<Unit>,
    /// The class of the last unit, or None if the next method begins a unit. `files` has the indices of the unit's files by name.
    class: Option<String>,
    files: HashMap<String, u32>,
    budget: Budget,
}

impl<'i> Builder<'i> {
    fn new(image: &'i dyn BytecodeImage) -> Self {
        Self {
            image,
            code_unit: image.code_unit().max(1),
            slots: Vec::new(),
            units: Vec::new(),
            class: None,
            files: HashMap::new(),
            budget: Budget::of(image),
        }
    }

    /// Makes the next method begin a unit.
    fn end_unit(&mut self) {
        self.class = None;
    }

    /// Adds `method`.
    fn method(&mut self, method: &MethodCode) {
        let own = CodeCopy {
            code: method.code.clone(),
            method: method.clone(),
        };
        self.copy(&own);
    }

    /// Adds a method at the addresses of its copy.
    fn copy(&mut self, copy: &CodeCopy) {
        let method = &copy.method;
        let image = self.image;
        let name = self.budget.take(|| image.code_name(method));
        let class = || image.class_name(method.index);
        // If the method has a name, it contains the class, which therefore costs nothing more.
        let class = match name {
            Some(_) => class().map(name::printable),
            None => self.budget.take(class),
        };
        let class = class.unwrap_or_else(|| NO_CLASS.to_owned());
        let first = self.slots.len();
        self.slots.push(Slot {
            offset: copy.code.start.into(),
            size: copy.code.len() as u64,
            name: name.map_or_else(|| format!("method@{}", method.index), name::symbol),
        });
        if self.class.as_ref() != Some(&class) {
            self.files.clear();
            self.units.push(Unit {
                methods: first..first,
                folder: name::source_folder(&class),
                files: Vec::new(),
                rows: Vec::new(),
            });
            self.class = Some(class);
            self.file(|| image.source_file(method));
        }
        if let Some(lines) = self.budget.lines(image, method) {
            self.rows(copy, &lines);
        }
        if let Some(unit) = self.units.last_mut() {
            unit.methods.end = self.slots.len();
        }
    }

    /// Adds the rows within a method, at the addresses of its copy.
    ///
    /// Among several rows for an instruction, the first is for it, and the last for the instructions after it: see
    /// [`BytecodeImage::lines`].
    fn rows(&mut self, copy: &CodeCopy, lines: &[CodeLine]) {
        let (image, method) = (self.image, &copy.method);
        let end = method.code.end;
        let mut source = None;
        let mut file = 0;
        let mut behind: Option<Row> = None;
        for rows in lines.chunk_by(|one, other| one.offset == other.offset) {
            for (number, row) in rows.iter().enumerate() {
                if source != Some(row.source) {
                    source = Some(row.source);
                    file = self.file(|| image.line_source(method, row.source?));
                }
                let address = row.offset;
                let row = Row {
                    address,
                    file,
                    line: row.line,
                };
                if number == 0 {
                    self.row(
                        copy,
                        behind.take().filter(|behind| behind.address < address),
                    );
                    self.row(copy, Some(row).filter(|_| address < end));
                } else {
                    let address = address.saturating_add(self.code_unit.into());
                    behind = Some(Row { address, ..row }).filter(|_| address < end);
                }
            }
        }
        self.row(copy, behind);
    }

    fn row(&mut self, copy: &CodeCopy, row: Option<Row>) {
        let row = row.map(|row| Row {
            address: copy.copied(row.address),
            ..row
        });
        if let Some(unit) = self.units.last_mut() {
            unit.rows.extend(row);
        }
    }

    /// Returns the unit's index of a source file. If it has no name, the class's name is used, so that equal lines of different unknown
    /// files stay distinct.
    fn file(&mut self, name: impl FnOnce() -> Option<String>) -> u32 {
        let name = self
            .budget
            .take(name)
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| unqualified(self.class.as_deref().unwrap_or_default()).to_owned());
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

/// The remaining budget of a file. A small file can claim that a million methods share the longest name, or the longest range of
/// instructions.
#[derive(Debug)]
pub(super) struct Budget {
    names: usize,
    code: usize,
}

impl Budget {
    /// The budget of a file, including the other files of its container.
    pub(super) fn of(image: &dyn BytecodeImage) -> Self {
        let size = image.bytes().len();
        Self {
            names: size.saturating_mul(NAMES_PER_BYTE).clamp(NAMES, MAX_NAMES),
            code: size.saturating_add(image.copies().range().len()),
        }
    }

    /// Takes a name's bytes from the budget. None if the name is broken, or the budget is used up. After the first name that does not fit,
    /// no more names are accepted.
    pub(super) fn take(&mut self, name: impl FnOnce() -> Option<String>) -> Option<String> {
        if self.names == 0 {
            return None;
        }
        let name = name().map(name::printable)?;
        let left = self.names.checked_sub(name.len());
        self.names = left.unwrap_or_default();
        left.map(|_| name)
    }

    /// The lines of a method. None if they cannot be read, or the methods have more instructions than the file and its copies have room
    /// for.
    pub(super) fn lines(
        &mut self,
        image: &dyn BytecodeImage,
        method: &MethodCode,
    ) -> Option<Vec<CodeLine>> {
        let left = self.code.checked_sub(method.code.len());
        self.code = left.unwrap_or_default();
        left.and_then(|_| image.lines(method))
    }
}
