//! The unwind rules and functions of an ELF file, by address.

use crate::architecture;
use crate::beginnings::Beginnings;
use crate::dex_marker::{self, BytecodeRule, MAX_TRAMPOLINE};
use crate::expression::{Expression, Section, encoding};
use crate::native_stack::NativeFrame;
use crate::row::UnwindRow;
use crate::rule::{Cfa, Rule, Saved};
use crate::unwind_info::{CodeRule, UnwindInfo};
use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, FrameDescriptionEntry, LittleEndian,
    ParsedEhFrameHdr, RegisterRule, UnwindContext, UnwindSection, UnwindTableRow,
};
use object::{
    Architecture, Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadRef, SymbolKind,
};
use std::ops::Range;
use std::rc::Rc;
use varid_model::{Address, ById, Machine};

/// Sections that Go programs have: the first one if they are loaded at their link address, the second one since Go 1.13.
const GO: [&str; 2] = [".gopclntab", ".go.buildinfo"];

/// The unwind information of an ELF file, from its `.eh_frame`. Addresses are the file's own, as in its symbols.
///
/// The rule of an address is computed once.
#[derive(Debug)]
pub struct Module {
    machine: Machine,
    eh_frame: Rc<[u8]>,
    eh_frame_hdr: Rc<[u8]>,
    bases: BaseAddresses,
    segments: Vec<Segment>,
    has_bytecode_marks: bool,
    beginnings: Beginnings,
    /// Every Go function keeps a frame pointer, which leads from one stack to another where the code changes stacks. A goroutine begins
    /// with a frame pointer of zero.
    keeps_frame_pointers: bool,
    rules: ById<u64, Option<Rc<Rule>>>,
    /// First and last address of each function that has a symbol, sorted. Filled only where the machine's conventions need them.
    functions: Vec<(u64, u64)>,
}

/// A loaded part of the file.
#[derive(Debug)]
struct Segment {
    /// Offset in the file.
    offset: u64,
    address: u64,
    /// Bytes of the file.
    size: u64,
    executable: bool,
}

impl Segment {
    /// Returns how many of its bytes lie between two offsets of the file.
    fn bytes_in(&self, offset: u64, end: u64) -> u64 {
        let last = self.offset.saturating_add(self.size).min(end);
        last.saturating_sub(offset.max(self.offset))
    }

    /// Returns the load address of a file offset, which may lie before the segment.
    fn address_of(&self, offset: u64) -> Address {
        let into = offset.wrapping_sub(self.offset);
        Address::new(self.address.wrapping_add(into))
    }
}

impl Module {
    /// Reads an ELF file's unwind information. A file without any gives a module without rules.
    pub fn new<'data, R: ReadRef<'data>>(file: &object::File<'data, R>) -> Self {
        let section = |name: &str| {
            /// The largest libraries have a third of this. A file with more is not credible.
            const MAX_SECTION: u64 = 64 << 20;
            let section = file
                .section_by_name(name)
                .filter(|section| section.size() <= MAX_SECTION)?;
            Some((section.address(), Rc::<[u8]>::from(section.data().ok()?)))
        };
        let (frame_address, eh_frame) = section(".eh_frame").unwrap_or_default();
        let (hdr_address, eh_frame_hdr) = section(".eh_frame_hdr").unwrap_or_default();
        let text_address = file
            .section_by_name(".text")
            .map_or(0, |text| text.address());
        let machine = match file.architecture() {
            Architecture::Aarch64 => Machine::Aarch64,
            Architecture::Arm => Machine::Arm,
            Architecture::X86_64 => Machine::X86_64,
            Architecture::I386 => Machine::X86,
            _ => Machine::NATIVE,
        };
        let mut module = Self {
            machine,
            has_bytecode_marks: dex_marker::is_in(&eh_frame),
            beginnings: Beginnings::default(),
            keeps_frame_pointers: GO.iter().any(|name| file.section_by_name(name).is_some()),
            eh_frame,
            eh_frame_hdr,
            bases: BaseAddresses::default()
                .set_eh_frame(frame_address)
                .set_eh_frame_hdr(hdr_address)
                .set_text(text_address),
            segments: file
                .segments()
                .map(|segment| Segment {
                    offset: segment.file_range().0,
                    address: segment.address(),
                    size: segment.file_range().1,
                    executable: segment.permissions().executable(),
                })
                .collect(),
            rules: ById::default(),
            functions: functions_of(file, machine),
        };
        if !module.eh_frame.is_empty() {
            let described = module.eh_frame.len();
            let section = module.section();
            let has_rule = |address| module.function(&section, address).is_some();
            module.beginnings = Beginnings::of(file, machine, described, has_rule);
        }
        module
    }

    /// Makes the module of generated code whose producer describes it by an `.eh_frame` section. The section addresses the code as if it
    /// were loaded at `eh_frame_at`. Without an `.eh_frame_hdr`, a section of many functions would be searched slowly, so it should
    /// describe one function.
    pub fn of_generated_code(machine: Machine, eh_frame: Rc<[u8]>, eh_frame_at: Address) -> Self {
        Self {
            machine,
            eh_frame,
            eh_frame_hdr: Rc::default(),
            bases: BaseAddresses::default().set_eh_frame(eh_frame_at.get()),
            segments: Vec::new(),
            has_bytecode_marks: false,
            beginnings: Beginnings::default(),
            keeps_frame_pointers: false,
            rules: ById::default(),
            functions: Vec::new(),
        }
    }

    /// The machine that the code is for.
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// Returns true if the file contains an interpreter whose unwind information marks the bytecode that a frame executes.
    pub fn has_bytecode_marks(&self) -> bool {
        self.has_bytecode_marks
    }

    /// Returns the address at which a byte of the file is loaded.
    pub fn address_of_offset(&self, offset: u64) -> Option<Address> {
        self.segments.iter().find_map(|segment| {
            let into = offset.checked_sub(segment.offset)?;
            (into < segment.size).then(|| Address::new(segment.address.wrapping_add(into)))
        })
    }

    /// Returns the file offset of the code that is loaded at a range of addresses with page-aligned ends. None if the range is not within
    /// one executable segment.
    pub fn offset_of_code(&self, addresses: &Range<Address>) -> Option<u64> {
        /// The largest page of all machines. A segment has the same offset in its page in memory and in the file.
        const PAGE: u64 = 1 << 16;
        let (start, end) = (addresses.start.get(), addresses.end.get());
        let mut code = self.segments.iter().filter(|segment| segment.executable);
        code.find_map(|segment| {
            let loaded = segment.address..segment.address.checked_add(segment.size)?;
            let first = loaded.start & !PAGE.wrapping_sub(1);
            let last = loaded.end.checked_next_multiple_of(PAGE)?;
            let shares = start < loaded.end && loaded.start < end;
            (shares && first <= start && end <= last).then(|| {
                start
                    .wrapping_sub(segment.address)
                    .wrapping_add(segment.offset)
            })
        })
    }

    fn section(&self) -> Section<'_> {
        let mut section = EhFrame::new(&self.eh_frame, LittleEndian);
        section.set_address_size(self.machine.word());
        section.set_vendor(architecture::of(self.machine).vendor());
        section
    }

    /// Returns the address of the first byte of a mapping of `len` bytes of the file, from `offset` on. A mapping begins at a page
    /// boundary, and the end of another segment may lie in its first page: the mapping belongs to the segment that it shares most bytes
    /// with.
    pub fn address_of_mapping(&self, offset: u64, len: u64) -> Option<Address> {
        let end = offset.saturating_add(len);
        let shared = |segment: &&Segment| segment.bytes_in(offset, end);
        let segment = self.segments.iter().max_by_key(shared)?;
        (shared(&segment) > 0).then(|| segment.address_of(offset))
    }

    /// Returns the possible addresses of the first byte of such a mapping: one for each segment that it shares bytes with.
    pub fn addresses_of_mapping(&self, offset: u64, len: u64) -> impl Iterator<Item = Address> {
        let end = offset.saturating_add(len);
        let has_some = move |segment: &&Segment| segment.bytes_in(offset, end) > 0;
        let segments = self.segments.iter().filter(has_some);
        segments.map(move |segment| segment.address_of(offset))
    }

    /// Returns the FDE of the function at an address.
    fn function<'a>(&'a self, section: &Section<'a>, address: u64) -> Option<Fde<'a>> {
        let table = EhFrameHdr::new(&self.eh_frame_hdr, LittleEndian)
            .parse(&self.bases, self.machine.word());
        let table = table
            .ok()
            .as_ref()
            .and_then(ParsedEhFrameHdr::table)
            .map(|table| {
                table.fde_for_address(section, &self.bases, address, EhFrame::cie_from_offset)
            });
        let fde = match table {
            Some(fde) => fde,
            None => section.fde_for_address(&self.bases, address, EhFrame::cie_from_offset),
        };
        fde.ok()
    }

    fn compute(&self, address: u64) -> Option<Rule> {
        let section = self.section();
        let Some(fde) = self.function(&section, address) else {
            let begins = self.beginnings.contain(address);
            return begins.then(|| Rule::of_outermost(self.machine));
        };
        let mut context = UnwindContext::new();
        let row = fde
            .unwind_info_for_address(&section, &self.bases, &mut context, address)
            .ok()?;
        let mut rule = self.rule_of(&fde, row, &section);
        if rule.bytecode != BytecodeRule::None || !self.has_bytecode_marks {
            return Some(rule);
        }
        // Another row may mark this function as an interpreter.
        let mut rows = fde.rows(&section, &self.bases, &mut context).ok()?;
        let mut elsewhere = false;
        let mut last = [None, None];
        while let Ok(Some(row)) = rows.next_row() {
            elsewhere |= self.bytecode_rule(row, &section) != BytecodeRule::None;
            last = [last[1], ReturnAddressRow::of(row, self.machine)];
        }
        if elsewhere {
            rule.bytecode = BytecodeRule::NotHere;
        }
        if let [Some(before), Some(last)] = last
            && address > before.start
            && let Some(missing) = last.missing_in_cfa(&before)
            && let Cfa::Register(_, offset) = &mut rule.cfa
        {
            *offset = offset.wrapping_add(missing);
        }
        Some(rule)
    }

    fn bytecode_rule(&self, row: &UnwindTableRow<usize>, section: &Section<'_>) -> BytecodeRule {
        let expression = |named| Expression::new(&self.eh_frame, named);
        BytecodeRule::of_row(row, section, encoding(self.machine), expression)
    }

    /// Makes the rule of one row of an FDE.
    fn rule_of(&self, fde: &Fde<'_>, row: &UnwindTableRow<usize>, section: &Section<'_>) -> Rule {
        let expression = |named| Expression::new(&self.eh_frame, named);
        let place = |register: gimli::Register| self.machine.index(register.0);
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                Cfa::Register(place(*register), *offset)
            }
            CfaRule::Expression(named) => Cfa::Expression(expression(*named)),
        };
        let saved = |register: u16| -> Option<Saved> {
            Some(match row.register(gimli::Register(register))? {
                RegisterRule::Undefined => Saved::Undefined,
                RegisterRule::SameValue => return None,
                RegisterRule::Offset(offset) => Saved::At(offset),
                RegisterRule::ValOffset(offset) => Saved::Is(offset),
                RegisterRule::Register(register) => Saved::In(place(register)),
                RegisterRule::Expression(named) => Saved::AtExpression(expression(named)),
                RegisterRule::ValExpression(named) => Saved::IsExpression(expression(named)),
                _ => Saved::Undefined,
            })
        };
        let (sp, ip) = (self.machine.sp(), self.machine.ip());
        let return_address = self.machine.return_address();
        let (mut pushed, mut others) = (Vec::new(), Vec::new());
        for (place, reg) in self.machine.regs().iter().enumerate() {
            if [sp, ip, return_address].contains(&reg.dwarf) {
                continue;
            }
            match saved(reg.dwarf) {
                Some(Saved::At(offset)) => pushed.push((place, offset)),
                Some(elsewhere) => others.push((place, elsewhere)),
                None => {}
            }
        }
        Rule {
            machine: self.machine,
            bytecode: self.bytecode_rule(row, section),
            is_short: fde.len() <= MAX_TRAMPOLINE,
            is_signal_frame: fde.is_signal_trampoline(),
            cfa,
            pushed,
            others,
            return_address: saved(return_address)
                .unwrap_or(Saved::In(self.machine.index(return_address))),
        }
    }

    /// Returns the first address of the code that the FDE at `pc` describes.
    pub fn described_start(&self, pc: Address) -> Option<Address> {
        let described = self.function(&self.section(), pc.get())?;
        Some(Address::new(described.initial_address()))
    }

    /// Returns the rows of the functions in a range of addresses, in the order of the functions. Addresses without a function have no rows.
    /// The range is an interpreter's code: no more functions are read than an interpreter has.
    pub fn rows(&self, range: Range<Address>) -> Vec<UnwindRow> {
        /// An interpreter has a few hundred. A file with more than this is not credible.
        const MAX_ROWS: usize = 4096;
        /// nterp has seven.
        const MAX_FUNCTIONS: usize = 64;
        /// The largest gap between two functions, in bytes.
        const MAX_GAP: u64 = 64;
        let section = self.section();
        let mut context = UnwindContext::new();
        let mut found = Vec::new();
        let (mut at, end) = (range.start.get(), range.end.get());
        for _ in 0..MAX_FUNCTIONS {
            let first = at;
            let candidates = first..end.min(first.saturating_add(MAX_GAP));
            let Some(fde) = candidates
                .into_iter()
                .find_map(|at| self.function(&section, at))
            else {
                break;
            };
            let Ok(mut rows) = fde.rows(&section, &self.bases, &mut context) else {
                break;
            };
            while let Ok(Some(row)) = rows.next_row() {
                if row.start_address() < end && found.len() < MAX_ROWS {
                    let rule = self.rule_of(&fde, row, &section);
                    found.push(UnwindRow::new(row.start_address()..row.end_address(), rule));
                }
            }
            at = fde.end_address();
            if at <= first {
                break;
            }
        }
        found
    }
}

/// A row whose return address is at an offset from the stack pointer, where a call pushes it.
///
/// ART's assembly for x86-64 (`READ_BARRIER_MARK_REG` in quick_entrypoints_x86_64.S) returns in two places. Behind the first return its rows
/// still say that the frame has been popped. The code there pops it once more, and by its last row the return address lies below the stack
/// pointer.
#[derive(Debug, Clone, Copy)]
struct ReturnAddressRow {
    start: u64,
    /// From the stack pointer, in bytes.
    offset: i64,
}

impl ReturnAddressRow {
    fn of(row: &UnwindTableRow<usize>, machine: Machine) -> Option<Self> {
        let return_address = gimli::Register(machine.return_address());
        let saved = match row.register(return_address)? {
            RegisterRule::Offset(saved) if machine.link().is_none() => saved,
            _ => return None,
        };
        let offset = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } if register.0 == machine.sp() => {
                *offset
            }
            _ => return None,
        };
        Some(Self {
            start: row.start_address(),
            offset: offset.checked_add(saved)?,
        })
    }

    /// Returns how many bytes the CFA of this row, the last one, is too low, and that of `before`, the one before, behind its first
    /// instruction: that returns, and what lies behind it is reached by a jump. None if the rows are right.
    fn missing_in_cfa(&self, before: &Self) -> Option<i64> {
        (self.offset < 0 && before.offset == 0).then(|| self.offset.wrapping_neg())
    }
}

/// The FDE of a function in `.eh_frame`.
type Fde<'a> = FrameDescriptionEntry<EndianSlice<'a, LittleEndian>>;

impl Module {
    /// Returns the rule of a frame whose address in the file is `own`.
    pub fn rule_of_frame(&mut self, own: Address, frame: &NativeFrame) -> CodeRule {
        let is_bottom = self.keeps_frame_pointers
            && !frame.address.is_instruction()
            && frame.regs.fp() == Some(0);
        match self.rule(own) {
            CodeRule::Unknown if is_bottom => {
                CodeRule::Rule(Rc::new(Rule::of_outermost(self.machine)))
            }
            rule => rule,
        }
    }
}

impl UnwindInfo for Module {
    fn rule(&mut self, pc: Address) -> CodeRule {
        let rule = match self.rules.get(&pc.get()) {
            Some(known) => known.clone(),
            None => {
                let rule = self.compute(pc.get()).map(Rc::new);
                self.rules.insert(pc.get(), rule.clone());
                rule
            }
        };
        rule.map_or(CodeRule::Unknown, CodeRule::Rule)
    }

    fn is_code(&mut self, _: Address) -> bool {
        true
    }

    fn begins_threads(&mut self, _: Address) -> bool {
        self.beginnings.begin_threads()
    }

    fn keeps_frame_pointers(&mut self, _: Address) -> bool {
        self.keeps_frame_pointers
    }

    fn function_start(&mut self, pc: Address) -> Option<Address> {
        let address = pc.get();
        let behind = self
            .functions
            .partition_point(|(start, _)| *start <= address);
        let (start, last) = self.functions.get(behind.checked_sub(1)?)?;
        (address <= *last).then(|| Address::new(*start))
    }
}

/// Returns the first and last address of each function that has a symbol, where the machine's conventions need them.
fn functions_of<'data, R: ReadRef<'data>>(
    file: &object::File<'data, R>,
    machine: Machine,
) -> Vec<(u64, u64)> {
    /// No more are kept: 16 MB.
    const MAX_FUNCTIONS: usize = 1 << 20;
    if !architecture::of(machine).links_every_frame() {
        return Vec::new();
    }
    let mut functions: Vec<_> = file
        .symbols()
        .chain(file.dynamic_symbols())
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0)
        .take(MAX_FUNCTIONS)
        .map(|symbol| {
            let (start, more) = (symbol.address(), symbol.size().saturating_sub(1));
            (start, start.saturating_add(more))
        })
        .collect();
    functions.sort_unstable();
    functions.dedup();
    functions.shrink_to_fit();
    functions
}
