//! Which instructions do units have, how are they written, and which keys do they count for?

use crate::outcome::Outcome;
use crate::tally::{CostKey, Tally};
use varid_instrument_dex::NotRewritten;
use varid_instrument_dex::assemble::{Code, DexBuilder};
use varid_symbolizer::dex::Dialect;

/// An instruction of a unit. Branches and switches lead to the next instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Instruction {
    /// Its code units. The one of an index is 0.
    units: Vec<u16>,
    refers: Refers,
}

/// A field or a method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    /// The descriptor of its class.
    pub(super) class: &'static str,
    pub(super) name: String,
    pub(super) descriptor: &'static str,
}

/// What an instruction refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Refers {
    Nothing,
    /// It is a conditional branch.
    Branch(Outcome),
    /// A string.
    Text,
    /// A type, by its descriptor.
    Class(&'static str),
    /// A field.
    Field(Member),
    /// A method, and what it executes.
    Call(Member, Vec<Instruction>),
    /// A table: what it has before the targets, and their number.
    Table(Vec<u16>, usize),
}

impl Instruction {
    const fn new(units: Vec<u16>, refers: Refers) -> Self {
        Self { units, refers }
    }

    /// Without an index.
    pub(super) const fn plain(units: Vec<u16>) -> Self {
        Self::new(units, Refers::Nothing)
    }

    /// A conditional branch to the next instruction.
    pub(super) const fn branch(units: Vec<u16>, outcome: Outcome) -> Self {
        Self::new(units, Refers::Branch(outcome))
    }

    /// With a string.
    pub(super) const fn text(units: Vec<u16>) -> Self {
        Self::new(units, Refers::Text)
    }

    /// With a type.
    pub(super) const fn class(units: Vec<u16>, descriptor: &'static str) -> Self {
        Self::new(units, Refers::Class(descriptor))
    }

    /// With a field.
    pub(super) const fn field(units: Vec<u16>, field: Member) -> Self {
        Self::new(units, Refers::Field(field))
    }

    /// With a method, and what it executes.
    pub(super) const fn call(units: Vec<u16>, method: Member, body: Vec<Self>) -> Self {
        Self::new(units, Refers::Call(method, body))
    }

    /// With a table whose targets are the next instruction.
    pub(super) fn table(first: u16, head: Vec<u16>, targets: usize) -> Self {
        Self::new(vec![first], Refers::Table(head, targets))
    }

    /// Returns the name of its opcode.
    fn name(&self) -> &'static str {
        let [code, _] = self.units.first().copied().unwrap_or(0).to_le_bytes();
        Dialect::Art.opcode(code).name
    }

    /// Returns the key of its cost.
    pub(super) fn key(&self) -> CostKey {
        let suffix = match self.refers {
            Refers::Branch(outcome) => outcome.suffix(),
            _ => "",
        };
        CostKey::new(format!("{}{suffix}", self.name()))
    }

    /// Counts what executing the instruction executes: of a call also the method.
    pub(super) fn count(&self, times: u32, to: &mut Tally) {
        to.add(self.key(), times);
        if let Refers::Call(_, body) = &self.refers {
            for instruction in body {
                instruction.count(times, to);
            }
        }
    }

    /// Appends the instruction to a method's code.
    pub(super) fn write(&self, dex: &mut DexBuilder, code: &mut Code) -> Result<(), NotRewritten> {
        let reference = match &self.refers {
            Refers::Nothing | Refers::Branch(_) => {
                code.units(&self.units);
                return Ok(());
            }
            Refers::Table(head, targets) => {
                let next = code.label();
                let first = self.units.first().copied().unwrap_or(0);
                code.table(first, head, &vec![next; *targets]);
                code.place(next);
                return Ok(());
            }
            Refers::Text => dex.string("calibrate"),
            Refers::Class(descriptor) => dex.type_of(descriptor),
            Refers::Field(field) => dex.field(field.class, &field.name, field.descriptor),
            Refers::Call(method, _) => dex.method(method.class, &method.name, method.descriptor)?,
        };
        code.indexed(&self.units, reference);
        Ok(())
    }
}
