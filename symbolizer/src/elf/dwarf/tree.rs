//! Which functions does a unit have, and which are inlined into which?

use gimli::{AttributeValue, Dwarf, Unit};

use super::Slice;
use super::budget::Budget;
use super::covers::Covers;
use super::names::{Called, Namer};

/// A function, or an inlined copy of one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Function {
    /// Its name's index.
    pub(super) name: u32,
    /// Where it was inlined; none if it is a function of its own.
    pub(super) call: Option<Call>,
    /// Whether some that are inlined into it may be missing.
    pub(super) cut: bool,
}

/// Where a function was inlined.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    /// The function that it was inlined into: an index smaller than its own.
    pub(super) into: u32,
    pub(super) file: u32,
    pub(super) line: u32,
}

impl Function {
    pub(super) fn call_file(&self) -> Option<u32> {
        self.call.map(|call| call.file)
    }
}

/// The functions of a unit, each after the one that it is inlined into.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) functions: Vec<Function>,
    /// Start, end, function; sorted by start, outer ones first.
    pub(super) ranges: Vec<(u64, u64, u32)>,
    /// Whether functions are missing: the unit is broken, or the budget used up.
    pub(super) cut: bool,
}

/// What an entry says of a function's addresses, caller and name.
#[derive(Default)]
struct Attributes<'d> {
    covers: Covers<'d>,
    file: u32,
    line: u32,
    called: Called<'d>,
}

impl Tree {
    /// Walks the unit's entries; of a broken unit, what came before the fault counts.
    pub(super) fn read<'d>(
        dwarf: &Dwarf<Slice<'d>>,
        unit: &Unit<Slice<'d>>,
        namer: &mut Namer<'_, 'd>,
        budget: &Budget,
    ) -> Self {
        let mut tree = Self::default();
        // The functions that are open at the place reached: depth, index.
        let mut open = Vec::new();
        if tree.walk(dwarf, unit, namer, budget, &mut open).is_none() {
            tree.cut = true;
            for (_, index) in open {
                if let Some(function) = tree.functions.get_mut(index as usize) {
                    function.cut = true;
                }
            }
        }
        // Functions come after those around them, and stay so.
        tree.ranges.sort_by_key(|&(start, ..)| start);
        tree
    }

    fn walk<'d>(
        &mut self,
        dwarf: &Dwarf<Slice<'d>>,
        unit: &Unit<Slice<'d>>,
        namer: &mut Namer<'_, 'd>,
        budget: &Budget,
        open: &mut Vec<(isize, u32)>,
    ) -> Option<()> {
        let mut entries = unit.entries_raw(None).ok()?;
        while !entries.is_empty() {
            let depth = entries.next_depth();
            let Some(abbreviation) = entries.read_abbreviation().ok()? else {
                continue;
            };
            open.truncate(open.partition_point(|&(outer, _)| outer < depth));
            let inlined = abbreviation.tag() == gimli::DW_TAG_inlined_subroutine;
            if !inlined && abbreviation.tag() != gimli::DW_TAG_subprogram {
                entries.skip_attributes(abbreviation.attributes()).ok()?;
                continue;
            }
            let mut has = Attributes::default();
            for &specification in abbreviation.attributes() {
                let attribute = entries.read_attribute(specification).ok()?;
                match attribute.name() {
                    _ if has.covers.see(&attribute) => {}
                    gimli::DW_AT_call_file => has.file = small(&attribute),
                    gimli::DW_AT_call_line => has.line = small(&attribute),
                    _ => has.called.see(&attribute),
                }
            }
            let into = open.last().map(|&(_, function)| function);
            if inlined && into.is_none() {
                continue;
            }
            let index = u32::try_from(self.functions.len()).ok()?;
            let before = self.ranges.len();
            let add = |start, end| self.ranges.push((start, end, index));
            has.covers.each(dwarf, unit, budget, add)?;
            if self.ranges.len() == before && !inlined {
                // A declaration, or the abstract function that copies refer to.
                continue;
            }
            self.functions.push(Function {
                name: namer.index(&has.called)?,
                call: into.filter(|_| inlined).map(|into| Call {
                    into,
                    file: has.file,
                    line: has.line,
                }),
                cut: false,
            });
            open.push((depth, index));
        }
        Some(())
    }
}

/// A number that a source file has: of a line, or of the file itself.
fn small(attribute: &gimli::Attribute<Slice<'_>>) -> u32 {
    match attribute.value() {
        AttributeValue::FileIndex(file) => u32::try_from(file).ok(),
        _ => attribute
            .udata_value()
            .and_then(|number| u32::try_from(number).ok()),
    }
    .unwrap_or_default()
}
