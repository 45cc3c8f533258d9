//! How to get from a frame to its caller: rules of a module's call frame information.

use super::dex_pc::{self, DexPcRule, MAX_TRAMPOLINE};
use crate::by_id::ById;
use crate::unwind::{DexPc, UnwindError};
use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, Encoding, EndianSlice, Evaluation,
    EvaluationResult, LittleEndian, Location, ParsedEhFrameHdr, RegisterRule, UnwindContext,
    UnwindExpression, UnwindSection, Value, Vendor,
};
use object::{
    Architecture, Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadRef, SymbolKind,
};
use std::rc::Rc;
use varid_shim::{Machine, Regs};

type Slice<'a> = EndianSlice<'a, LittleEndian>;
pub(super) type Section<'a> = EhFrame<Slice<'a>>;

/// How a machine's expressions are encoded.
fn encoding(machine: Machine) -> Encoding {
    Encoding {
        format: gimli::Format::Dwarf32,
        version: 4,
        address_size: machine.word(),
    }
}

/// Evaluating one expression takes no more operations than this: none that a compiler
/// writes comes near.
const MAX_OPERATIONS: u32 = 256;

/// Where a register of the caller is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Saved {
    /// Nowhere: it is lost; for the return address: this is the outermost frame.
    Undefined,
    /// In memory at CFA + offset.
    At(i64),
    /// It is CFA + offset.
    Is(i64),
    /// In another register.
    In(u16),
    /// In memory at the address that an expression computes.
    AtExpression(UnwindExpression<usize>),
    /// It is what an expression computes.
    IsExpression(UnwindExpression<usize>),
}

/// Where the canonical frame address is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Cfa {
    Register(u16, i64),
    Expression(UnwindExpression<usize>),
}

/// The rules of one instruction address; a register without one is unchanged.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    cfa: Cfa,
    saved: Vec<(u16, Saved)>,
    return_address: Saved,
    dex_pc: DexPcRule,
    /// Its function is too short to be an interpreter's loop.
    is_short: bool,
    /// The caller was interrupted by a signal: its ip is no return address.
    pub is_signal_frame: bool,
}

impl Rule {
    /// Whether nobody called the function: its return address is nowhere.
    pub fn is_outermost(&self) -> bool {
        self.return_address == Saved::Undefined
    }
}

/// Reads one word of the process, if the sample has it.
pub type ReadWord<'a> = &'a dyn Fn(u64) -> Option<u64>;

/// What unwinding one frame needs of a module; rules are computed once per address.
#[derive(Debug)]
pub struct Module {
    machine: Machine,
    eh_frame: Vec<u8>,
    eh_frame_hdr: Vec<u8>,
    bases: BaseAddresses,
    /// File offset, address, bytes of each loaded segment.
    segments: Vec<(u64, u64, u64)>,
    names_dex_pcs: bool,
    rules: ById<u64, Option<Rc<Rule>>>,
    /// First and last address of each function that has a symbol, in order; on AArch64 only.
    functions: Vec<(u64, u64)>,
}

impl Module {
    /// Reads an ELF file's unwind information; a file without any gives a module without rules.
    pub fn of<'data, R: ReadRef<'data>>(file: &object::File<'data, R>) -> Self {
        let section = |name: &str| {
            /// The largest libraries have a third of this; a file that claims more lies.
            const MAX_SECTION: u64 = 64 << 20;
            let section = file
                .section_by_name(name)
                .filter(|section| section.size() <= MAX_SECTION)?;
            Some((section.address(), section.data().ok()?.to_vec()))
        };
        let (frame_address, eh_frame) = section(".eh_frame").unwrap_or_default();
        let (hdr_address, eh_frame_hdr) = section(".eh_frame_hdr").unwrap_or_default();
        let (text_address, _) = section(".text").unwrap_or_default();
        let machine = match file.architecture() {
            Architecture::Aarch64 => Machine::Aarch64,
            Architecture::Arm => Machine::Arm,
            Architecture::X86_64 => Machine::X86_64,
            Architecture::I386 => Machine::X86,
            _ => Machine::NATIVE,
        };
        Self {
            machine,
            names_dex_pcs: dex_pc::are_in(&eh_frame),
            eh_frame,
            eh_frame_hdr,
            bases: BaseAddresses::default()
                .set_eh_frame(frame_address)
                .set_eh_frame_hdr(hdr_address)
                .set_text(text_address),
            segments: file
                .segments()
                .map(|segment| {
                    (
                        segment.file_range().0,
                        segment.address(),
                        segment.file_range().1,
                    )
                })
                .collect(),
            rules: ById::default(),
            functions: functions_of(file, machine),
        }
    }

    /// The machine that its code is for.
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// Whether it holds an interpreter whose frames say which bytecode they execute.
    pub fn names_dex_pcs(&self) -> bool {
        self.names_dex_pcs
    }

    /// The address, in the module's own terms, of a byte of its file.
    pub fn address_of_offset(&self, offset: u64) -> Option<u64> {
        self.segments.iter().find_map(|(start, address, len)| {
            let into = offset.checked_sub(*start)?;
            (into < *len).then(|| address.wrapping_add(into))
        })
    }

    /// The first address of the function that an address of the module is in, if a symbol tells.
    pub fn function_at(&self, address: u64) -> Option<u64> {
        let behind = self
            .functions
            .partition_point(|(start, _)| *start <= address);
        let (start, last) = self.functions.get(behind.checked_sub(1)?)?;
        (address <= *last).then_some(*start)
    }

    /// The rules at an address of the module, if it has any there.
    pub fn rule(&mut self, address: u64) -> Option<Rc<Rule>> {
        if let Some(known) = self.rules.get(&address) {
            return known.clone();
        }
        let rule = self.compute(address).map(Rc::new);
        self.rules.insert(address, rule.clone());
        rule
    }

    fn section(&self) -> Section<'_> {
        let mut section = EhFrame::new(&self.eh_frame, LittleEndian);
        section.set_address_size(self.machine.word());
        if self.machine == Machine::Aarch64 {
            // Of signed return addresses the rules tell in an operation that no other machine has.
            section.set_vendor(Vendor::AArch64);
        }
        section
    }

    fn compute(&self, address: u64) -> Option<Rule> {
        let section = self.section();
        let mut context = UnwindContext::new();
        let table = EhFrameHdr::new(&self.eh_frame_hdr, LittleEndian)
            .parse(&self.bases, self.machine.word());
        let table = table
            .ok()
            .as_ref()
            .and_then(ParsedEhFrameHdr::table)
            .map(|table| {
                table.fde_for_address(&section, &self.bases, address, EhFrame::cie_from_offset)
            });
        let fde = match table {
            Some(fde) => fde,
            None => section.fde_for_address(&self.bases, address, EhFrame::cie_from_offset),
        };
        let fde = fde.ok()?;
        let row = fde
            .unwind_info_for_address(&section, &self.bases, &mut context, address)
            .ok()?;
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => Cfa::Register(register.0, *offset),
            CfaRule::Expression(expression) => Cfa::Expression(*expression),
        };
        let saved = |register: u16| -> Option<Saved> {
            Some(match row.register(gimli::Register(register))? {
                RegisterRule::Undefined => Saved::Undefined,
                RegisterRule::SameValue => return None,
                RegisterRule::Offset(offset) => Saved::At(offset),
                RegisterRule::ValOffset(offset) => Saved::Is(offset),
                RegisterRule::Register(register) => Saved::In(register.0),
                RegisterRule::Expression(expression) => Saved::AtExpression(expression),
                RegisterRule::ValExpression(expression) => Saved::IsExpression(expression),
                _ => Saved::Undefined,
            })
        };
        let (sp, ip) = (self.machine.sp(), self.machine.ip());
        let return_address = self.machine.return_address();
        let rule = Rule {
            dex_pc: DexPcRule::of_row(row, &section, encoding(self.machine)),
            is_short: fde.len() <= MAX_TRAMPOLINE,
            is_signal_frame: fde.is_signal_trampoline(),
            cfa,
            saved: self
                .machine
                .regs()
                .iter()
                .map(|reg| reg.dwarf)
                .filter(|register| ![sp, ip, return_address].contains(register))
                .filter_map(|register| Some((register, saved(register)?)))
                .collect(),
            return_address: saved(return_address).unwrap_or(Saved::In(return_address)),
        };
        if rule.dex_pc != DexPcRule::None || !self.names_dex_pcs {
            return Some(rule);
        }
        // Another row may tell that this is an interpreter.
        let mut rows = fde.rows(&section, &self.bases, &mut context).ok()?;
        let mut elsewhere = false;
        while let Ok(Some(row)) = rows.next_row() {
            elsewhere |=
                DexPcRule::of_row(row, &section, encoding(self.machine)) != DexPcRule::None;
        }
        Some(Rule {
            dex_pc: if elsewhere {
                DexPcRule::NotHere
            } else {
                DexPcRule::None
            },
            ..rule
        })
    }

    /// The bytecode that a frame executes.
    pub fn dex_pc(&self, rule: &Rule, regs: &Regs, read: ReadWord<'_>) -> DexPc {
        match &rule.dex_pc {
            DexPcRule::None => DexPc::NoInterpreter,
            DexPcRule::NotHere => DexPc::Unknown,
            DexPcRule::Is(expression) => match self.evaluate(expression, regs, read, None) {
                None => DexPc::Unknown,
                Some(pc) if rule.is_short => DexPc::MethodAt(pc),
                Some(pc) => DexPc::At(pc),
            },
        }
    }

    /// The CFA of a frame, as far as its registers and the sample's stack tell.
    pub fn cfa(&self, rule: &Rule, regs: &Regs, read: ReadWord<'_>) -> Option<u64> {
        match &rule.cfa {
            Cfa::Register(register, offset) => {
                Some(regs.get(*register)?.wrapping_add_signed(*offset))
            }
            Cfa::Expression(expression) => self.evaluate(expression, regs, read, None),
        }
    }

    /// The CFA of a frame that keeps a frame pointer, if the rule has the caller's and the return address side by side: that is
    /// where it points.
    pub fn cfa_by_frame_pointer(&self, rule: &Rule, fp: u64) -> Option<u64> {
        let (_, callers) = rule
            .saved
            .iter()
            .find(|(reg, _)| *reg == self.machine.fp())?;
        let (Saved::At(callers), Saved::At(return_address)) = (callers, &rule.return_address)
        else {
            return None;
        };
        let word = i64::from(self.machine.word());
        (callers.checked_add(word) == Some(*return_address))
            .then(|| fp.wrapping_sub(callers.cast_unsigned()))
    }

    /// The caller's registers. None in the place of its ip: this is the outermost frame.
    pub fn caller(
        &self,
        rule: &Rule,
        cfa: u64,
        regs: &Regs,
        read: ReadWord<'_>,
    ) -> Result<Regs, UnwindError> {
        let mut caller = *regs;
        let value = |saved: &Saved| -> Option<u64> {
            match saved {
                Saved::Undefined => None,
                Saved::At(offset) => read(cfa.wrapping_add_signed(*offset)),
                Saved::Is(offset) => Some(cfa.wrapping_add_signed(*offset)),
                Saved::In(register) => regs.get(*register),
                Saved::AtExpression(expression) => {
                    read(self.evaluate(expression, regs, read, Some(cfa))?)
                }
                Saved::IsExpression(expression) => self.evaluate(expression, regs, read, Some(cfa)),
            }
        };
        for (register, saved) in &rule.saved {
            caller.set(*register, value(saved));
        }
        caller.set(self.machine.sp(), Some(cfa));
        let ip = self.machine.ip();
        caller.set(
            ip,
            match &rule.return_address {
                Saved::Undefined => None,
                saved => Some(value(saved).ok_or(UnwindError::NoStack)?),
            },
        );
        if let Some(link) = self.machine.link() {
            caller.set(link, caller.get(ip));
        }
        Ok(caller)
    }

    fn evaluate(
        &self,
        expression: &UnwindExpression<usize>,
        regs: &Regs,
        read: ReadWord<'_>,
        initial: Option<u64>,
    ) -> Option<u64> {
        let section = self.section();
        let expression = expression.get(&section).ok()?;
        let mut evaluation: Evaluation<Slice<'_>> = expression.evaluation(encoding(self.machine));
        evaluation.set_max_iterations(MAX_OPERATIONS);
        if let Some(initial) = initial {
            evaluation.set_initial_value(initial);
        }
        let mut result = evaluation.evaluate().ok()?;
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => evaluation
                    .resume_with_register(Value::Generic(regs.get(register.0)?))
                    .ok()?,
                EvaluationResult::RequiresMemory { address, .. } => evaluation
                    .resume_with_memory(Value::Generic(read(address)?))
                    .ok()?,
                _ => return None,
            };
        }
        match evaluation.as_result().first()?.location {
            Location::Address { address } => Some(address),
            Location::Register { register } => regs.get(register.0),
            _ => None,
        }
    }
}

/// First and last address of each function that has a symbol, on AArch64.
fn functions_of<'data, R: ReadRef<'data>>(
    file: &object::File<'data, R>,
    machine: Machine,
) -> Vec<(u64, u64)> {
    /// More are not kept: 16 MB.
    const MAX_FUNCTIONS: usize = 1 << 20;
    if machine != Machine::Aarch64 {
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
