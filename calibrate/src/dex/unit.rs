//! What is a unit of dex code?

use super::instruction::Instruction;
use crate::program::{Shape, UnitKind};
use crate::tally::{CostKey, Tally};

/// A sequence of instructions that is repeated.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    /// Its name.
    pub(super) name: String,
    /// What it is made of.
    pub(super) kind: UnitKind,
    /// How it is repeated where the clock is fine enough for either.
    pub(super) shape: Shape,
    /// The instructions.
    pub(super) body: Vec<Instruction>,
}

impl Unit {
    /// Makes a unit in a straight line.
    pub(super) fn new(name: impl Into<String>, body: impl Into<Vec<Instruction>>) -> Self {
        Self {
            name: name.into(),
            kind: UnitKind::Single,
            shape: Shape::Straight,
            body: body.into(),
        }
    }

    /// Makes a unit of one instruction, which it has the name of.
    pub(super) fn of(instruction: Instruction) -> Self {
        Self::new(instruction.key().as_str(), [instruction])
    }

    /// The same in a loop of few sites.
    pub(super) const fn in_a_loop(mut self) -> Self {
        self.shape = Shape::Loop;
        self
    }

    /// The same as one of many instructions.
    pub(super) const fn mixed(mut self) -> Self {
        self.kind = UnitKind::Mixed;
        self
    }

    /// Counts what so many copies execute.
    pub(super) fn tally(&self, copies: u16) -> Tally {
        let mut tally = Tally::default();
        for instruction in &self.body {
            instruction.count(copies.into(), &mut tally);
        }
        tally
    }

    /// Counts what one iteration of a loop over copies executes.
    pub(super) fn iteration_tally(&self, copies: u16) -> Tally {
        let mut tally = self.tally(copies);
        for key in ["add-int/lit8", "if-gtz_taken"] {
            tally.add(CostKey::new(key), 1);
        }
        tally
    }
}
