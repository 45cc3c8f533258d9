//! What is a unit, and how is it repeated?

use super::instruction::Instruction;
use super::opcode::Kind;
use crate::program::{Shape, UnitKind};
use crate::tally::Tally;

/// A value that a unit's local variable has at first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value {
    Int(i32),
    Long(i64),
    Float(f32),
    Double(f64),
    /// An object of the fixture.
    Object,
    /// An array of eight elements of a primitive type, by its code of `newarray`.
    Array(u8),
    /// An array of eight objects of the fixture, null at first.
    Objects,
}

impl Value {
    /// Returns the type.
    pub(super) const fn kind(self) -> Kind {
        match self {
            Self::Int(_) => Kind::Int,
            Self::Long(_) => Kind::Long,
            Self::Float(_) => Kind::Float,
            Self::Double(_) => Kind::Double,
            Self::Object | Self::Array(_) | Self::Objects => Kind::Reference,
        }
    }

    /// Returns 1, or an object.
    pub(super) const fn one(kind: Kind) -> Self {
        match kind {
            Kind::Int => Self::Int(1),
            Kind::Long => Self::Long(1),
            Kind::Float => Self::Float(1.0),
            Kind::Double => Self::Double(1.0),
            Kind::Reference => Self::Object,
        }
    }
}

/// A sequence of instructions that is repeated.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    /// Its name.
    pub(super) name: String,
    /// What it is made of.
    pub(super) kind: UnitKind,
    /// How it is repeated where the clock is fine enough for either.
    pub(super) shape: Shape,
    /// The local variables that it reads.
    pub(super) locals: Vec<(u16, Value)>,
    /// What pushes the operands that are on the stack at first, and stay there.
    pub(super) base: Vec<(Instruction, Kind)>,
    /// What pushes the operands that each repetition removes.
    pub(super) each: Vec<(Instruction, Kind)>,
    /// The instructions.
    pub(super) body: Vec<Instruction>,
    /// The values that each repetition leaves on the stack.
    pub(super) leaves: Vec<Kind>,
}

impl Unit {
    /// Starts a unit of a single instruction in a straight line that leaves the stack as it is.
    pub(super) fn new(name: impl Into<String>, body: impl Into<Vec<Instruction>>) -> Self {
        Self {
            name: name.into(),
            kind: UnitKind::Single,
            shape: Shape::Straight,
            locals: Vec::new(),
            base: Vec::new(),
            each: Vec::new(),
            body: body.into(),
            leaves: Vec::new(),
        }
    }

    /// The same in a loop of few sites.
    pub(super) fn in_a_loop(mut self) -> Self {
        self.shape = Shape::Loop;
        self
    }

    /// The same as one of many instructions.
    pub(super) const fn mixed(mut self) -> Self {
        self.kind = UnitKind::Mixed;
        self
    }

    /// The same with local variables.
    pub(super) fn with(mut self, locals: impl Into<Vec<(u16, Value)>>) -> Self {
        self.locals = locals.into();
        self
    }

    /// The same with ones of these types on the stack at first.
    pub(super) fn above(mut self, kinds: &[Kind]) -> Self {
        self.base = kinds.iter().map(|kind| (kind.one(), *kind)).collect();
        self
    }

    /// The same with operands that each repetition removes, and what pushes them.
    pub(super) fn removing(mut self, operands: impl Into<Vec<(Instruction, Kind)>>) -> Self {
        self.each = operands.into();
        self
    }

    /// The same, leaving values.
    pub(super) fn leaving(mut self, kinds: impl Into<Vec<Kind>>) -> Self {
        self.leaves = kinds.into();
        self
    }

    /// Returns one repetition with its operands, and with what removes its results.
    pub(super) fn phrase(&self) -> Vec<Instruction> {
        let operands = self.base.iter().chain(&self.each);
        let mut all: Vec<_> = operands.map(|(instruction, _)| *instruction).collect();
        all.extend(&self.body);
        all.extend(self.cleanup(1));
        all
    }

    /// Returns true if it uses local variables.
    pub(super) fn has_locals(&self) -> bool {
        let is_local =
            |it: &Instruction| matches!(it, Instruction::Local(..) | Instruction::Increment(_));
        self.body.iter().any(is_local)
    }

    /// Counts what one repetition in a straight line executes.
    pub(super) fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for instruction in &self.body {
            instruction.count(1, &mut tally);
        }
        tally
    }

    /// Returns the instructions that remove what `copies` of the body leave, and what was there at first.
    pub(super) fn cleanup(&self, copies: u16) -> Vec<Instruction> {
        let left = self.leaves.iter().rev().map(|kind| kind.pop());
        let left: Vec<_> = left.collect();
        let mut all = left.repeat(usize::from(copies));
        all.extend(self.base.iter().rev().map(|(_, kind)| kind.pop()));
        all
    }

    /// Returns the words of the stack that `copies` of the body need at most.
    pub(super) fn stack(&self, copies: u16) -> u16 {
        /// What any body, and reading a clock, needs beside its operands.
        const TEMPORARY: u16 = 24;
        let words = |kinds: &mut dyn Iterator<Item = Kind>| {
            kinds.map(Kind::words).fold(0, u16::saturating_add)
        };
        let each = words(&mut self.each.iter().map(|operand| operand.1));
        let leaves = words(&mut self.leaves.iter().copied());
        words(&mut self.base.iter().map(|operand| operand.1))
            .saturating_add(each.saturating_add(leaves).saturating_mul(copies))
            .saturating_add(TEMPORARY)
    }
}
