//! Finds the functions and the line at an address of a unit.

use std::borrow::Cow;

use super::functions::{Function, FunctionId, FunctionTree};
use super::lines::Lines;
use super::names::NameTable;
use super::unit_input::UnitInput;
use crate::Frame;
use crate::elf::name::Name;
use crate::elf::ranges::Ranges;

/// The functions, names and lines of a unit.
#[derive(Debug, Default)]
pub(super) struct UnitTables {
    functions: Vec<Function>,
    /// The innermost function at an address.
    innermost: Ranges<FunctionId>,
    names: Vec<Name>,
    lines: Lines,
    /// Whether functions are missing.
    incomplete: bool,
}

impl UnitTables {
    /// Reads a unit. The lines of a split unit are in its `skeleton`.
    pub(super) fn read<'d>(
        input: UnitInput<'_, 'd>,
        skeleton: Option<UnitInput<'_, '_>>,
        names: &mut NameTable<'_, 'd>,
    ) -> Self {
        let tree = FunctionTree::read(input, names);
        let call_files = tree.functions.iter().filter_map(Function::call_file);
        let lines = match skeleton {
            Some(skeleton) => Lines::read(skeleton, call_files),
            None => Lines::read(input, call_files),
        };
        Self {
            innermost: Ranges::nested(tree.ranges),
            functions: tree.functions,
            names: names.take(),
            lines,
            incomplete: tree.incomplete,
        }
    }

    /// The address ranges that have functions or lines.
    pub(super) fn ranges(&self) -> Vec<(u64, u64)> {
        let mut ranges = self.lines.ranges();
        ranges.extend(self.innermost.stretches());
        ranges
    }

    /// The functions at `address`, innermost first. A line without a function is one frame without a name.
    pub(super) fn frames(&self, address: u64) -> Vec<Frame<'_>> {
        let mut frames = Vec::new();
        let mut next = self.innermost.get(address);
        let by_id = |id: FunctionId| self.functions.get(id.index());
        let innermost = next.and_then(by_id);
        // The line belongs to the innermost function. It is not shown if that function may be missing.
        let incomplete = innermost.map_or(self.incomplete, |function| function.incomplete);
        let mut location = self.lines.find(address).filter(|_| !incomplete);
        while let Some(function) = next.and_then(by_id) {
            frames.push(Frame {
                function: self
                    .names
                    .get(function.name.index())
                    .map_or(Cow::Borrowed(""), |name| Cow::Borrowed(name.shown())),
                location,
            });
            let call = function.call;
            location = call.and_then(|call| self.lines.location(call.file, call.line));
            next = call.map(|call| call.caller);
        }
        if frames.is_empty() && location.is_some() {
            frames.push(Frame {
                function: Cow::Borrowed(""),
                location,
            });
        }
        frames
    }
}
