//! Control flow: the instructions that may follow an instruction.

use super::super::opcodes::Format;
use super::super::read::{u16_at, u32_at};
use super::{Instruction, PACKED_SWITCH, SPARSE_SWITCH};

/// Size of a switch table before its keys, in bytes: its kind and the number of targets.
const TABLE_HEAD: usize = 4;

impl Instruction<'_> {
    /// The opcode: the low byte of the first code unit.
    #[must_use]
    pub fn code(&self) -> u8 {
        let [low, _] = self.unit(0).to_le_bytes();
        low
    }

    /// Returns true if it is a table between instructions, which is not executed.
    #[must_use]
    pub fn is_table(&self) -> bool {
        self.code() == 0 && self.unit(0) != 0
    }

    /// Returns true if the instruction behind it may be executed right after it: it is no return, throw or goto.
    #[must_use]
    pub fn falls_through(&self) -> bool {
        !self.is_table() && !matches!(self.code(), 0x0e..=0x11 | 0x27..=0x2a)
    }

    /// Returns the file offsets that a branch or the cases of a switch lead to.
    pub fn targets(&self) -> impl Iterator<Item = u32> {
        let signed = |unit: usize| i32::from(self.unit(unit).cast_signed());
        let distance = match self.opcode.format {
            Format::F10t => Some(self.aa().cast_signed().into()),
            Format::F20t | Format::F21t | Format::F22t => Some(signed(1)),
            Format::F30t => Some(self.wide(1).cast_signed()),
            _ => None,
        };
        // packed-switch and sparse-switch. fill-array-data has a table, too, but does not branch.
        let is_switch = self.opcode.format == Format::F31t && self.code() != 0x26;
        let branch = distance.map(|distance| self.at(distance));
        let cases = is_switch.then(|| self.cases()).into_iter().flatten();
        branch.into_iter().chain(cases)
    }

    /// Returns true if the instruction at file offset `next` may be executed right after this one, without an exception.
    #[must_use]
    pub fn may_lead_to(&self, next: u32) -> bool {
        let behind = self.units.saturating_mul(2).saturating_add(self.offset);
        (self.falls_through() && next == behind) || self.targets().any(|target| target == next)
    }

    /// The file offset that is `distance` code units from here.
    fn at(&self, distance: i32) -> u32 {
        self.offset.wrapping_add_signed(distance.wrapping_mul(2))
    }

    /// Returns the file offsets of the cases of a switch.
    fn cases(&self) -> impl Iterator<Item = u32> {
        let data = self.dex.bytes();
        let table = self.at(self.wide(1).cast_signed()) as usize;
        let unit = |at: usize| u16_at(data, table.saturating_add(at), "switch").ok();
        let count = unit(2).map_or(0, usize::from);
        // packed: the first key, then targets; sparse: all keys, then targets.
        let targets = match unit(0) {
            Some(PACKED_SWITCH) => Some(TABLE_HEAD.saturating_add(4)),
            Some(SPARSE_SWITCH) => Some(TABLE_HEAD.saturating_add(count.saturating_mul(4))),
            _ => None,
        };
        let case = move |index: usize| {
            let at = table
                .saturating_add(targets?)
                .saturating_add(index.saturating_mul(4));
            let target = u32_at(data, at, "switch").ok()?;
            Some(self.at(target.cast_signed()))
        };
        (0..count).map_while(case)
    }
}
