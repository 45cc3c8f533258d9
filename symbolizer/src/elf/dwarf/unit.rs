//! Which functions and lines does a unit have?

use std::borrow::Cow;

use gimli::{Dwarf, Unit};

use super::Slice;
use super::budget::Budget;
use super::lines::Lines;
use super::names::Namer;
use super::tree::{Function, Tree};
use crate::Frame;
use crate::elf::name::Name;
use crate::elf::ranges::Ranges;

/// What is known of a unit, as plain tables.
#[derive(Debug, Default)]
pub(super) struct Tables {
    functions: Vec<Function>,
    /// The innermost function at an address.
    innermost: Ranges<u32>,
    names: Vec<Name>,
    lines: Lines,
    /// Whether functions are missing.
    cut: bool,
}

/// Debug information, a unit of it, and the work that reading it may cause.
pub(super) type Source<'a, 'd> = (&'a Dwarf<Slice<'d>>, &'a Unit<Slice<'d>>, &'a Budget);

impl Tables {
    /// Reads a unit. Its lines are in `skeleton` if it is one whose functions are in a file
    /// of their own.
    pub(super) fn read<'d>(
        own: Source<'_, 'd>,
        skeleton: Option<Source<'_, 'd>>,
        namer: &mut Namer<'_, 'd>,
    ) -> Self {
        let (dwarf, unit, budget) = own;
        let tree = Tree::read(dwarf, unit, namer, budget);
        let calls = tree.functions.iter().filter_map(Function::call_file);
        let (dwarf, unit, budget) = skeleton.unwrap_or(own);
        let lines = Lines::read(dwarf, unit, budget, calls);
        Self {
            innermost: Ranges::nested(tree.ranges),
            functions: tree.functions,
            names: namer.take(),
            lines,
            cut: tree.cut,
        }
    }

    /// The addresses that the unit has functions or lines for.
    pub(super) fn ranges(&self) -> Vec<(u64, u64)> {
        let mut ranges = self.lines.ranges();
        ranges.extend(self.innermost.stretches());
        ranges
    }

    /// The functions at `address`, innermost first; one without a name, for its line, if
    /// the unit knows no function there.
    pub(super) fn frames(&self, address: u64) -> Vec<Frame<'_>> {
        let mut frames = Vec::new();
        let mut next = self.innermost.get(address);
        let innermost = next.and_then(|at| self.functions.get(at as usize));
        // The line is the innermost function's: nothing is said of it where that is not known.
        let cut = innermost.map_or(self.cut, |function| function.cut);
        let mut location = self.lines.find(address).filter(|_| !cut);
        while let Some(function) = next.and_then(|at| self.functions.get(at as usize)) {
            frames.push(Frame {
                function: self
                    .names
                    .get(function.name as usize)
                    .map_or(Cow::Borrowed(""), |name| Cow::Borrowed(name.shown())),
                location,
            });
            let call = function.call;
            location = call.and_then(|call| self.lines.location(call.file, call.line));
            next = call.map(|call| call.into);
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
