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

    /// Returns true if the instruction at file offset `next` may be executed right after this one, without an exception.
    #[must_use]
    pub fn may_lead_to(&self, next: u32) -> bool {
        let behind = self.units.saturating_mul(2).saturating_add(self.offset);
        // Execution never continues after return*, throw and goto*. Tables are not executed.
        let is_table = self.code() == 0 && self.unit(0) != 0;
        let ends = is_table || matches!(self.code(), 0x0e..=0x11 | 0x27..=0x2a);
        if !ends && next == behind {
            return true;
        }
        let signed = |unit: usize| i32::from(self.unit(unit).cast_signed());
        let distance = match self.opcode.format {
            Format::F10t => self.aa().cast_signed().into(),
            Format::F20t | Format::F21t | Format::F22t => signed(1),
            Format::F30t => self.wide(1).cast_signed(),
            // packed-switch and sparse-switch. fill-array-data has a table, too, but does not branch.
            Format::F31t if self.code() != 0x26 => return self.switches_to(next),
            _ => return false,
        };
        self.at(distance) == next
    }

    /// The file offset that is `distance` code units from here.
    fn at(&self, distance: i32) -> u32 {
        self.offset.wrapping_add_signed(distance.wrapping_mul(2))
    }

    /// Returns true if a case of the switch leads to `next`.
    fn switches_to(&self, next: u32) -> bool {
        let data = self.dex.bytes();
        let table = self.at(self.wide(1).cast_signed()) as usize;
        let unit = |at: usize| u16_at(data, table.saturating_add(at), "switch").ok();
        let (Some(kind), Some(count)) = (unit(0), unit(2)) else {
            return false;
        };
        let count = usize::from(count);
        // packed: the first key, then targets; sparse: all keys, then targets.
        let targets = match kind {
            PACKED_SWITCH => TABLE_HEAD.saturating_add(4),
            SPARSE_SWITCH => TABLE_HEAD.saturating_add(count.saturating_mul(4)),
            _ => return false,
        };
        (0..count).any(|index| {
            let at = table
                .saturating_add(targets)
                .saturating_add(index.saturating_mul(4));
            u32_at(data, at, "switch").is_ok_and(|target| self.at(target.cast_signed()) == next)
        })
    }
}
