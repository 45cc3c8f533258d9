//! What is known of a module's code: the rules at each of its addresses, and where its functions are.

use super::dex_pc::{self, DexPcRule, MAX_TRAMPOLINE};
use super::expression::{Expression, Section, encoding};
use super::rule::{Cfa, Rule, Saved};
use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, LittleEndian, ParsedEhFrameHdr, RegisterRule,
    UnwindContext, UnwindSection, Vendor,
};
use object::{
    Architecture, Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadRef, SymbolKind,
};
use std::rc::Rc;
use varid_model::ById;
use varid_model::Machine;

/// What unwinding one frame needs of a module; rules are computed once per address.
#[derive(Debug)]
pub struct Module {
    machine: Machine,
    eh_frame: Rc<[u8]>,
    eh_frame_hdr: Rc<[u8]>,
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
        let expression = |named| Expression::of(&self.eh_frame, named);
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
        let rule = Rule {
            machine: self.machine,
            dex_pc: DexPcRule::of_row(row, &section, encoding(self.machine), expression),
            is_short: fde.len() <= MAX_TRAMPOLINE,
            is_signal_frame: fde.is_signal_trampoline(),
            cfa,
            pushed,
            others,
            return_address: saved(return_address)
                .unwrap_or(Saved::In(self.machine.index(return_address))),
        };
        if rule.dex_pc != DexPcRule::None || !self.names_dex_pcs {
            return Some(rule);
        }
        // Another row may tell that this is an interpreter.
        let mut rows = fde.rows(&section, &self.bases, &mut context).ok()?;
        let mut elsewhere = false;
        while let Ok(Some(row)) = rows.next_row() {
            elsewhere |= DexPcRule::of_row(row, &section, encoding(self.machine), expression)
                != DexPcRule::None;
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
