//! Encodes a substitute's symbols and lines as DWARF.
//!
//! The choices, and their reasons:
//! - Version 4: perf 6.1 and binutils 2.40 show the wrong file for version 5.
//! - One compile unit per class: with a single one, addr2line reads every line of a big dex file before its first result.
//! - `.debug_aranges`: elfutils finds no unit without it.
//! - A line sequence per method, which ends at the end of the method's instructions.
//! - Files are in the folder of their package, below a compilation directory of `.`: elfutils prints `(null)` if there is no directory, and
//!   prints a longer one twice.
//! - The whole name of a method as its name, and no language: gdb treats Java like C++ and shows `of(int)(void)`. It leaves names of
//!   unknown languages unchanged.

use gimli::constants::{
    DW_AT_comp_dir, DW_AT_external, DW_AT_high_pc, DW_AT_low_pc, DW_AT_name, DW_AT_stmt_list,
    DW_CHILDREN_no, DW_CHILDREN_yes, DW_FORM_addr, DW_FORM_data4, DW_FORM_flag_present,
    DW_FORM_sec_offset, DW_FORM_string, DW_LNE_end_sequence, DW_LNE_set_address,
    DW_LNS_advance_line, DW_LNS_advance_pc, DW_LNS_set_file, DW_TAG_compile_unit,
    DW_TAG_subprogram, DwAt, DwForm,
};

use super::bytes::Bytes;
use super::machine::TargetMachine;
use super::table::{Row, Slot, Substitute, Unit};
use crate::Result;

/// The smallest line advance of a special opcode, and the number of line advances.
const LINE_BASE: i8 = -4;
const LINE_RANGE: u8 = 12;
/// The first special opcode. The standard opcodes precede it. `OPERANDS` has their numbers of operands.
const OPCODE_BASE: u8 = 10;
const OPERANDS: [u8; 9] = [0, 1, 1, 1, 1, 0, 0, 0, 1];

/// The names of the sections.
const ABBREV: &str = ".debug_abbrev";
pub(super) const INFO: &str = ".debug_info";
pub(super) const LINE: &str = ".debug_line";
const ARANGES: &str = ".debug_aranges";

/// The sizes of sections that others are appended to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Before {
    pub(super) info: usize,
    pub(super) line: usize,
}

/// The sections.
#[derive(Debug, Default)]
pub(super) struct Dwarf {
    before: Before,
    abbrev: Bytes,
    info: Bytes,
    line: Bytes,
    aranges: Bytes,
}

impl Dwarf {
    /// Encodes the sections for the units of a substitute.
    pub(super) fn encode(substitute: &Substitute) -> Result<Self> {
        Self::encode_behind(substitute, Before::default())
    }

    /// Encodes the sections so that they can be appended to those of another substitute, but for the abbreviations, which are the same.
    pub(super) fn encode_behind(substitute: &Substitute, before: Before) -> Result<Self> {
        let mut dwarf = Self {
            before,
            ..Self::default()
        };
        dwarf.abbreviations();
        for unit in &substitute.units {
            let methods = substitute
                .slots
                .get(unit.methods.clone())
                .unwrap_or_default();
            dwarf.unit(substitute, unit, methods)?;
        }
        Ok(dwarf)
    }

    /// The names and contents of the sections, without empty ones.
    pub(super) fn sections(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        [
            (ABBREV, &self.abbrev),
            (INFO, &self.info),
            (LINE, &self.line),
            (ARANGES, &self.aranges),
        ]
        .into_iter()
        .filter(|_| !self.info.0.is_empty())
        .map(|(name, bytes)| (name, bytes.0.as_slice()))
    }

    /// The sections that grow if they are appended to others.
    pub(super) fn appended(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        self.sections().filter(|(name, _)| *name != ABBREV)
    }

    fn abbreviations(&mut self) {
        const UNIT: &[(DwAt, DwForm)] = &[
            (DW_AT_name, DW_FORM_string),
            (DW_AT_comp_dir, DW_FORM_string),
            (DW_AT_stmt_list, DW_FORM_sec_offset),
            (DW_AT_low_pc, DW_FORM_addr),
            (DW_AT_high_pc, DW_FORM_data4),
        ];
        const METHOD: &[(DwAt, DwForm)] = &[
            (DW_AT_external, DW_FORM_flag_present),
            (DW_AT_name, DW_FORM_string),
            (DW_AT_low_pc, DW_FORM_addr),
            (DW_AT_high_pc, DW_FORM_data4),
        ];
        for (code, tag, children, attributes) in [
            (1, DW_TAG_compile_unit, DW_CHILDREN_yes, UNIT),
            (2, DW_TAG_subprogram, DW_CHILDREN_no, METHOD),
        ] {
            self.abbrev.uleb(code);
            self.abbrev.uleb(tag.0.into());
            self.abbrev.u8(children.0);
            for (attribute, form) in attributes {
                self.abbrev.uleb(attribute.0.into());
                self.abbrev.uleb(form.0.into());
            }
            self.abbrev.u16(0);
        }
        self.abbrev.u8(0);
    }

    fn unit(&mut self, substitute: &Substitute, unit: &Unit, methods: &[Slot]) -> Result<()> {
        let machine = substitute.machine;
        let (Some(first), Some(last)) = (methods.first(), methods.last()) else {
            return Ok(());
        };
        let size = last.end().saturating_sub(first.offset);
        let offset = self.info.offset(self.before.info)?;

        let info = &mut self.info;
        let length = info.begin();
        info.u16(4);
        info.u32(0);
        info.u8(machine.address_size() as u8);
        info.uleb(1);
        let own = unit.files.first().map_or("", String::as_str);
        match unit.folder.as_str() {
            "" => info.text(own),
            folder => info.text(&format!("{folder}/{own}")),
        }
        info.text(".");
        info.u32(self.line.offset(self.before.line)?);
        extent(info, machine, first.offset, size);
        for method in methods {
            info.uleb(2);
            info.text(&method.name);
            extent(info, machine, method.offset, method.size);
        }
        info.u8(0);
        info.end(length)?;

        let aranges = &mut self.aranges;
        let length = aranges.begin();
        aranges.u16(2);
        aranges.u32(offset);
        aranges.u8(machine.address_size() as u8);
        aranges.u8(0);
        // The pairs are aligned to their size.
        if machine.address_size() == 8 {
            aranges.u32(0);
        }
        for value in [first.offset, size, 0, 0] {
            aranges.word(machine, value);
        }
        aranges.end(length)?;

        self.lines(substitute, unit, methods)
    }

    fn lines(&mut self, substitute: &Substitute, unit: &Unit, methods: &[Slot]) -> Result<()> {
        let code_unit = substitute.code_unit;
        let line = &mut self.line;
        let length = line.begin();
        line.u16(4);
        let header = line.begin();
        line.u8(code_unit);
        // maximum_operations_per_instruction and default_is_stmt.
        line.u8(1);
        line.u8(1);
        line.u8(LINE_BASE as u8);
        line.u8(LINE_RANGE);
        line.u8(OPCODE_BASE);
        line.0.extend(OPERANDS);
        // Directory 0 is the compilation directory.
        let folder = u8::from(!unit.folder.is_empty());
        if folder == 1 {
            line.text(&unit.folder);
        }
        line.u8(0);
        for file in &unit.files {
            line.text(file);
            // Modification time and size are unknown.
            line.0.extend([folder, 0, 0]);
        }
        line.u8(0);
        line.end(header)?;
        let mut rows = unit.rows.as_slice();
        for method in methods {
            let within = rows.partition_point(|row| u64::from(row.address) < method.end());
            let (own, rest) = rows.split_at(within);
            let mut program = LineProgram {
                line,
                machine: substitute.machine,
                code_unit: code_unit.into(),
            };
            program.sequence(own, method.end());
            rows = rest;
        }
        line.end(length)
    }
}

/// Writes an address and a size.
fn extent(info: &mut Bytes, machine: TargetMachine, start: u64, size: u64) {
    info.word(machine, start);
    // Dex files are never larger than 4 GB.
    info.u32(u32::try_from(size).unwrap_or(u32::MAX));
}

/// Writes a line number program.
struct LineProgram<'b> {
    line: &'b mut Bytes,
    machine: TargetMachine,
    /// Addresses are multiples of this number of bytes. Not zero.
    code_unit: u64,
}

impl LineProgram<'_> {
    /// Writes the rows of a method, up to its end.
    fn sequence(&mut self, rows: &[Row], end: u64) {
        let Some(first) = rows.first() else {
            return;
        };
        let mut state = Row {
            address: first.address,
            file: 0,
            line: 1,
        };
        self.line.u8(0);
        self.line
            .uleb(self.machine.address_size().saturating_add(1) as u64);
        self.line.u8(DW_LNE_set_address.0);
        self.line.word(self.machine, first.address.into());
        for row in rows {
            if row.file != state.file {
                self.line.u8(DW_LNS_set_file.0);
                self.line.uleb(u64::from(row.file).saturating_add(1));
            }
            self.step(
                u64::from(row.address.saturating_sub(state.address)),
                i64::from(row.line).saturating_sub(state.line.into()),
            );
            state = *row;
        }
        self.line.u8(DW_LNS_advance_pc.0);
        let steps = self.steps(end.saturating_sub(state.address.into()));
        self.line.uleb(steps);
        self.line.0.extend([0, 1, DW_LNE_end_sequence.0]);
    }

    /// Converts bytes to steps between instructions.
    fn steps(&self, bytes: u64) -> u64 {
        bytes.checked_div(self.code_unit).unwrap_or_default()
    }

    /// Writes a row at this distance from the last one, in bytes and lines.
    fn step(&mut self, bytes: u64, lines: i64) {
        let (mut steps, mut lines) = (self.steps(bytes), lines);
        let last = i64::from(LINE_BASE).saturating_add(i64::from(LINE_RANGE));
        if !(i64::from(LINE_BASE)..last).contains(&lines) {
            self.line.u8(DW_LNS_advance_line.0);
            self.line.sleb(lines);
            lines = 0;
        }
        let change = lines.abs_diff(LINE_BASE.into());
        let opcode = |steps: u64| {
            let opcode = steps
                .saturating_mul(LINE_RANGE.into())
                .saturating_add(change)
                .saturating_add(OPCODE_BASE.into());
            u8::try_from(opcode).ok()
        };
        if opcode(steps).is_none() {
            self.line.u8(DW_LNS_advance_pc.0);
            self.line.uleb(steps);
            steps = 0;
        }
        self.line.u8(opcode(steps).unwrap_or(OPCODE_BASE));
    }
}
