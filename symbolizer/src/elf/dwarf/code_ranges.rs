//! The addresses of the code of an entry of the debug information.

use gimli::{Attribute, AttributeValue};

use super::Slice;
use super::unit_input::UnitInput;

/// The attributes of an entry that say which addresses its code has.
#[derive(Debug, Default)]
pub(super) struct CodeRanges<'d> {
    low_pc: Option<AttributeValue<Slice<'d>>>,
    high_pc: Option<AttributeValue<Slice<'d>>>,
    ranges: Option<AttributeValue<Slice<'d>>>,
}

impl<'d> CodeRanges<'d> {
    /// Those of the unit's own entry.
    pub(super) fn of_unit(input: UnitInput<'_, 'd>) -> Option<Self> {
        let mut entries = input.unit.entries_raw(None).ok()?;
        let abbreviation = entries.read_abbreviation().ok()??;
        let mut ranges = Self::default();
        for &specification in abbreviation.attributes() {
            ranges.add(&entries.read_attribute(specification).ok()?);
        }
        Some(ranges)
    }

    /// Adds an attribute of the entry. Returns whether it is one about addresses.
    pub(super) fn add(&mut self, attribute: &Attribute<Slice<'d>>) -> bool {
        match attribute.name() {
            gimli::DW_AT_low_pc => self.low_pc = Some(attribute.value()),
            gimli::DW_AT_high_pc => self.high_pc = Some(attribute.value()),
            gimli::DW_AT_ranges => self.ranges = Some(attribute.value()),
            _ => return false,
        }
        true
    }

    /// Calls `visit` with the start and the exclusive end of each range. `None` if the budget is used up.
    pub(super) fn for_each(
        &self,
        input: UnitInput<'_, 'd>,
        mut visit: impl FnMut(u64, u64),
    ) -> Option<()> {
        let UnitInput {
            dwarf,
            unit,
            budget,
        } = input;
        let mut add = |start: u64, end: u64| {
            // Functions that the linker discarded have address 0.
            if start != 0 && start < end {
                visit(start, end);
            }
        };
        if let Some(list) = self.ranges {
            let Ok(Some(mut list)) = dwarf.attr_ranges(unit, list) else {
                return Some(());
            };
            while let Ok(Some(range)) = list.next() {
                budget.take(1)?;
                add(range.begin, range.end);
            }
        } else if let (Some(low), Some(high)) = (self.low_pc, self.high_pc)
            && let Ok(Some(start)) = dwarf.attr_address(unit, low)
        {
            match high.udata_value() {
                Some(size) => add(start, start.saturating_add(size)),
                None => {
                    if let Ok(Some(end)) = dwarf.attr_address(unit, high) {
                        add(start, end);
                    }
                }
            }
        }
        Some(())
    }
}
