//! Which addresses does an entry of the debug information cover?

use gimli::{Attribute, AttributeValue, Dwarf, Unit};

use super::Slice;
use super::budget::Budget;

/// What an entry says of its addresses.
#[derive(Debug, Default)]
pub(super) struct Covers<'d> {
    low: Option<AttributeValue<Slice<'d>>>,
    high: Option<AttributeValue<Slice<'d>>>,
    ranges: Option<AttributeValue<Slice<'d>>>,
}

impl<'d> Covers<'d> {
    /// What the unit's own entry says.
    pub(super) fn of_unit(unit: &Unit<Slice<'d>>) -> Option<Self> {
        let mut entries = unit.entries_raw(None).ok()?;
        let abbreviation = entries.read_abbreviation().ok()??;
        let mut covers = Self::default();
        for &specification in abbreviation.attributes() {
            covers.see(&entries.read_attribute(specification).ok()?);
        }
        Some(covers)
    }

    /// Takes an attribute of the entry in; false: it says nothing of addresses.
    pub(super) fn see(&mut self, attribute: &Attribute<Slice<'d>>) -> bool {
        match attribute.name() {
            gimli::DW_AT_low_pc => self.low = Some(attribute.value()),
            gimli::DW_AT_high_pc => self.high = Some(attribute.value()),
            gimli::DW_AT_ranges => self.ranges = Some(attribute.value()),
            _ => return false,
        }
        true
    }

    /// Tells of each range, from its first address to the one behind; None: the budget is used up.
    pub(super) fn each(
        &self,
        dwarf: &Dwarf<Slice<'d>>,
        unit: &Unit<Slice<'d>>,
        budget: &Budget,
        mut tell: impl FnMut(u64, u64),
    ) -> Option<()> {
        let mut add = |start: u64, end: u64| {
            // A linker that dropped a function leaves it at zero.
            if start != 0 && start < end {
                tell(start, end);
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
        } else if let (Some(low), Some(high)) = (self.low, self.high)
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
