//! The functions of a unit, and which of them are inlined into which.

use gimli::AttributeValue;

use super::Slice;
use super::code_ranges::CodeRanges;
use super::names::{NameAttributes, NameId, NameTable};
use super::unit_input::UnitInput;

/// The index of a function in [`FunctionTree::functions`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FunctionId(u32);

impl FunctionId {
    /// Returns the id with this index. None if it does not fit.
    pub(super) fn of(index: usize) -> Option<Self> {
        u32::try_from(index).ok().map(Self)
    }

    /// Returns the index.
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A function, or an inlined copy of one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Function {
    /// Its name.
    pub(super) name: NameId,
    /// Where it was inlined. `None` if it is not an inlined copy.
    pub(super) call: Option<InlinedCall>,
    /// Whether functions that were inlined into it may be missing.
    pub(super) incomplete: bool,
}

/// The place where a function was inlined.
#[derive(Debug, Clone, Copy)]
pub(super) struct InlinedCall {
    /// The function that it was inlined into, which precedes it.
    pub(super) caller: FunctionId,
    pub(super) file: u32,
    pub(super) line: u32,
}

impl Function {
    pub(super) fn call_file(&self) -> Option<u32> {
        self.call.map(|call| call.file)
    }
}

/// The functions of a unit. Each follows the function that it was inlined into.
#[derive(Debug, Default)]
pub(super) struct FunctionTree {
    pub(super) functions: Vec<Function>,
    /// Start, exclusive end and function. Sorted by start, callers first.
    pub(super) ranges: Vec<(u64, u64, FunctionId)>,
    /// Whether functions are missing because the unit is broken or the budget is used up.
    pub(super) incomplete: bool,
}

/// The attributes of a function's entry.
#[derive(Default)]
struct Attributes<'d> {
    code: CodeRanges<'d>,
    call_file: u32,
    call_line: u32,
    name: NameAttributes<'d>,
}

impl FunctionTree {
    /// Walks the unit's entries. If the unit is broken, the functions before the error are kept.
    pub(super) fn read<'d>(input: UnitInput<'_, 'd>, names: &mut NameTable<'_, 'd>) -> Self {
        let mut tree = Self::default();
        // The functions around the current entry, each with its depth.
        let mut open = Vec::new();
        if tree.walk(input, names, &mut open).is_none() {
            tree.incomplete = true;
            for (_, id) in open {
                if let Some(function) = tree.functions.get_mut(id.index()) {
                    function.incomplete = true;
                }
            }
        }
        // The sort is stable: callers stay before the functions that were inlined into them.
        tree.ranges.sort_by_key(|&(start, ..)| start);
        tree
    }

    fn walk<'d>(
        &mut self,
        input: UnitInput<'_, 'd>,
        names: &mut NameTable<'_, 'd>,
        open: &mut Vec<(isize, FunctionId)>,
    ) -> Option<()> {
        let mut entries = input.unit.entries_raw(None).ok()?;
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
            let mut attributes = Attributes::default();
            for &specification in abbreviation.attributes() {
                let attribute = entries.read_attribute(specification).ok()?;
                match attribute.name() {
                    _ if attributes.code.add(&attribute) => {}
                    gimli::DW_AT_call_file => attributes.call_file = number(&attribute),
                    gimli::DW_AT_call_line => attributes.call_line = number(&attribute),
                    _ => attributes.name.add(&attribute),
                }
            }
            let caller = open.last().map(|&(_, function)| function);
            if inlined && caller.is_none() {
                continue;
            }
            let id = FunctionId::of(self.functions.len())?;
            let before = self.ranges.len();
            let add = |start, end| self.ranges.push((start, end, id));
            attributes.code.for_each(input, add)?;
            if self.ranges.len() == before && !inlined {
                // A declaration, or the abstract function that inlined copies refer to.
                continue;
            }
            self.functions.push(Function {
                name: names.intern(&attributes.name)?,
                call: caller.filter(|_| inlined).map(|caller| InlinedCall {
                    caller,
                    file: attributes.call_file,
                    line: attributes.call_line,
                }),
                incomplete: false,
            });
            open.push((depth, id));
        }
        Some(())
    }
}

/// A line number or a file index. 0 if the attribute is not a number.
fn number(attribute: &gimli::Attribute<Slice<'_>>) -> u32 {
    match attribute.value() {
        AttributeValue::FileIndex(file) => u32::try_from(file).ok(),
        _ => attribute
            .udata_value()
            .and_then(|number| u32::try_from(number).ok()),
    }
    .unwrap_or_default()
}
