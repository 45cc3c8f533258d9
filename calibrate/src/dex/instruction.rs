//! Which instructions do units have, how are they written, and which keys do they count for?

use super::encode::{self, Register};
use super::fixture::{Callee, FieldKind, Holder};
use crate::tally::{CostKey, Tally};
use varid_instrument_dex::NotRewritten;
use varid_instrument_dex::assemble::{Code, DexBuilder};
use varid_symbolizer::dex::Dialect;

/// Whether a conditional branch is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Taken,
    Not,
}

impl Outcome {
    /// Returns what a key has behind the opcode.
    pub(super) const fn suffix(self) -> &'static str {
        match self {
            Self::Taken => "_taken",
            Self::Not => "_not",
        }
    }
}

/// An instruction of a unit. Branches and switches lead to the next instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Instruction {
    /// Its code units. The one of an index is 0.
    units: Vec<u16>,
    refers: Refers,
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
    /// A field of the fixture.
    Field(FieldKind, Holder),
    /// A method of the fixture.
    Call(Callee),
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
    pub(super) const fn field(units: Vec<u16>, kind: FieldKind, holder: Holder) -> Self {
        Self::new(units, Refers::Field(kind, holder))
    }

    /// With a method.
    pub(super) const fn call(units: Vec<u16>, callee: Callee) -> Self {
        Self::new(units, Refers::Call(callee))
    }

    /// The call of the fixture's constructor for a new object.
    pub(super) fn call_constructor(object: Register) -> Self {
        /// invoke-direct.
        const OPCODE: u8 = 0x70;
        Self::call(encode::arguments(OPCODE, &[object]), Callee::Constructor)
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
        if let Refers::Call(callee) = self.refers {
            for instruction in callee.body() {
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
            Refers::Field(kind, holder) => kind.reference(*holder, dex),
            Refers::Call(callee) => callee.reference(dex)?,
        };
        code.indexed(&self.units, reference);
        Ok(())
    }
}
