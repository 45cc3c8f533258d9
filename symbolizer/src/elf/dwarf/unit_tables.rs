//! Finds the functions at an address of a unit.

use std::borrow::Cow;

use super::functions::{Function, FunctionId, FunctionTree};
use super::lines::Lines;
use super::names::NameTable;
use super::unit_input::UnitInput;
use crate::Frame;
use crate::elf::name::Name;
use crate::elf::ranges::Ranges;

/// The functions of a unit, and their names.
#[derive(Debug, Default)]
pub(super) struct UnitTables {
    functions: Vec<Function>,
    /// The innermost function at an address.
    innermost: Ranges<FunctionId>,
    names: Vec<Name>,
    /// Whether functions are missing.
    incomplete: bool,
}

impl UnitTables {
    /// Reads a unit.
    pub(super) fn read<'d>(input: UnitInput<'_, 'd>, names: &mut NameTable<'_, 'd>) -> Self {
        let tree = FunctionTree::read(input, names);
        Self {
            innermost: Ranges::nested(tree.ranges),
            functions: tree.functions,
            names: names.take(),
            incomplete: tree.incomplete,
        }
    }

    /// The address ranges that have functions.
    pub(super) fn stretches(&self) -> impl Iterator<Item = (u64, u64)> {
        self.innermost.stretches()
    }

    /// The files of the places where functions were inlined, by their indices.
    pub(super) fn call_files(&self) -> impl Iterator<Item = u32> {
        self.functions.iter().filter_map(Function::call_file)
    }

    /// The functions at `address`, innermost first, with their lines if those of the unit are given. A line without a function is one frame
    /// without a name.
    pub(super) fn frames<'t>(&'t self, address: u64, lines: Option<&'t Lines>) -> Vec<Frame<'t>> {
        let mut frames = Vec::new();
        let mut next = self.innermost.get(address);
        let by_id = |id: FunctionId| self.functions.get(id.index());
        let innermost = next.and_then(by_id);
        // The line belongs to the innermost function. It is not shown if that function may be missing.
        let incomplete = innermost.map_or(self.incomplete, |function| function.incomplete);
        let line = lines.and_then(|lines| lines.find(address));
        let mut location = line.filter(|_| !incomplete);
        while let Some(function) = next.and_then(by_id) {
            frames.push(Frame {
                function: self
                    .names
                    .get(function.name.index())
                    .map_or(Cow::Borrowed(""), |name| Cow::Borrowed(name.shown())),
                location,
            });
            let call = function.call;
            location = call
                .zip(lines)
                .and_then(|(call, lines)| lines.location(call.file, call.line));
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
