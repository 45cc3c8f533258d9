//! Which instructions do units have, how are they written, and which keys do they count for?

use super::fixture::{self, FIXTURE};
use super::opcode::{Call, Kind, Opcode};
use crate::outcome::Outcome;
use crate::tally::{CostKey, Tally};
use varid_instrument::NotRewritten;
use varid_instrument::assemble::{CodeBuilder, Constant};
use varid_instrument::opcode::WIDE;
use varid_symbolizer::class::java_mnemonic;

impl Kind {
    /// Returns the instruction that pushes 1, or null.
    pub(super) const fn one(self) -> Instruction {
        Instruction::Plain(self.one_opcode())
    }

    /// Returns the instruction that removes a value from the stack.
    pub(super) const fn pop(self) -> Instruction {
        Instruction::Plain(Opcode(match self.words() {
            1 => 87,
            _ => 88,
        }))
    }
}

/// An instruction of a unit. Branches and switches lead to the next instruction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Instruction {
    /// Without operands.
    Plain(Opcode),
    /// With a byte: `bipush`, `newarray`.
    Byte(Opcode, u8),
    /// `sipush`.
    Short(Opcode, i16),
    /// `ldc` and its wider forms.
    Load(Opcode, Constant<'static>),
    /// A load or store of a local variable, wide if its number needs it.
    Local(Opcode, u16),
    /// `iinc` by 1, wide if the variable's number needs it.
    Increment(u16),
    /// A conditional branch.
    If(Opcode, Outcome),
    /// `goto` and `goto_w`.
    Goto(Opcode),
    /// `tableswitch` or `lookupswitch` with the four values from 0 on.
    Switch(Opcode),
    /// An access to a field of the fixture.
    Field(Opcode, Kind),
    /// A call of a method of the fixture that returns a value, or none.
    Call(Call, Option<Kind>),
    /// With a class.
    Class(Opcode, &'static str),
    /// `multianewarray` of `int[][]`.
    MultiArray(Opcode),
}

/// The number of cases of a switch.
const CASES: i32 = 4;

impl Instruction {
    /// Counts what executing the instruction executes: of a call also the method.
    pub(super) fn count(&self, times: u32, to: &mut Tally) {
        let mut add = |name: &str, suffix: &str| {
            to.add(CostKey::new(format!("{name}{suffix}")), times);
        };
        match self {
            Self::Plain(opcode)
            | Self::Byte(opcode, _)
            | Self::Short(opcode, _)
            | Self::Load(opcode, _)
            | Self::Goto(opcode)
            | Self::Switch(opcode)
            | Self::Class(opcode, _)
            | Self::MultiArray(opcode) => add(opcode.name(), ""),
            Self::Local(opcode, local) => add(opcode.name(), wide(*local)),
            Self::Increment(local) => add("iinc", wide(*local)),
            Self::If(opcode, outcome) => add(opcode.name(), outcome.suffix()),
            Self::Field(opcode, kind) => {
                let suffix = match kind {
                    Kind::Reference => "_ref",
                    Kind::Long | Kind::Double => "_long",
                    Kind::Int | Kind::Float => "",
                };
                add(opcode.name(), suffix);
            }
            Self::Call(call, returned) => {
                match call {
                    Call::Static => add("invokestatic", ""),
                    Call::Virtual => add("invokevirtual", ""),
                    Call::Interface => add("invokeinterface", ""),
                    Call::Constructor => {
                        to.add(CostKey::new("invokespecial"), times.saturating_mul(2));
                    }
                }
                for opcode in fixture::method_body(*call, *returned) {
                    Self::Plain(opcode).count(times, to);
                }
            }
        }
    }

    /// Appends the instruction to a method's code.
    pub(super) fn write(&self, code: &mut CodeBuilder<'_>) -> Result<(), NotRewritten> {
        let to = &mut code.to;
        match *self {
            Self::Plain(Opcode(opcode)) => to.op(opcode),
            Self::Byte(Opcode(opcode), value) => to.bytes(&[opcode, value]),
            Self::Short(Opcode(opcode), value) => {
                let [high, low] = value.to_be_bytes();
                to.bytes(&[opcode, high, low]);
            }
            Self::Load(Opcode(opcode), constant) => {
                let index = to.constant(constant)?;
                match (java_mnemonic(opcode), u8::try_from(index)) {
                    (Some("ldc"), Ok(index)) => to.bytes(&[opcode, index]),
                    // The unit's own constants come first in its class.
                    (Some("ldc"), Err(_)) => return Err(NotRewritten::ConstantPoolFull),
                    _ => to.indexed(opcode, index),
                }
            }
            Self::Local(Opcode(opcode), local) => match u8::try_from(local) {
                Ok(local) if has_operand(opcode) => to.bytes(&[opcode, local]),
                Ok(_) => to.op(opcode),
                Err(_) => {
                    to.op(WIDE);
                    to.indexed(opcode, local);
                }
            },
            Self::Increment(local) => match u8::try_from(local) {
                Ok(local) => to.bytes(&[132, local, 1]),
                Err(_) => {
                    to.op(WIDE);
                    to.indexed(132, local);
                    to.bytes(&[0, 1]);
                }
            },
            Self::If(Opcode(opcode), _) => to.indexed(opcode, 3),
            Self::Goto(Opcode(opcode)) => match java_mnemonic(opcode) {
                Some("goto_w") => to.bytes(&[opcode, 0, 0, 0, 5]),
                _ => to.indexed(opcode, 3),
            },
            Self::Switch(opcode) => {
                let bytes = switch(opcode, to.offset());
                to.bytes(&bytes);
            }
            Self::Field(Opcode(opcode), kind) => {
                let is_static = opcode < 180;
                let (name, descriptor) = fixture::field(kind, is_static);
                to.field(opcode, FIXTURE, &name, descriptor)?;
            }
            Self::Call(call, returned) => fixture::write_call(call, returned, to)?,
            Self::Class(Opcode(opcode), name) => to.class(opcode, name)?,
            Self::MultiArray(Opcode(opcode)) => {
                to.class(opcode, "[[I")?;
                to.op(2);
            }
        }
        Ok(())
    }
}

/// Whether a load or store names its variable in an operand.
const fn has_operand(opcode: u8) -> bool {
    matches!(opcode, 21..=25 | 54..=58)
}

const fn wide(local: u16) -> &'static str {
    if local > 255 { "_wide" } else { "" }
}

/// Returns a switch at this offset whose cases all lead to the next instruction.
fn switch(opcode: Opcode, offset: usize) -> Vec<u8> {
    let mut bytes = vec![opcode.0];
    bytes.resize(1_usize.saturating_add(3_usize.wrapping_sub(offset) % 4), 0);
    let is_table = opcode.name() == "tableswitch";
    let operands = if is_table { 3 + CASES } else { 2 + 2 * CASES };
    let length = i32::try_from(bytes.len())
        .unwrap_or(0)
        .saturating_add(operands.saturating_mul(4));
    let mut words = vec![length];
    if is_table {
        words.extend([0, CASES.saturating_sub(1)]);
        words.extend((0..CASES).map(|_| length));
    } else {
        words.push(CASES);
        words.extend((0..CASES).flat_map(|value| [value, length]));
    }
    bytes.extend(words.iter().flat_map(|word| word.to_be_bytes()));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_lead_to_the_next_instruction() {
        for offset in 0..4 {
            for name in ["tableswitch", "lookupswitch"] {
                let bytes = switch(Opcode::named(name).unwrap(), offset);
                let operands = (offset / 4 + 1) * 4 - offset;
                let default = bytes[operands..operands + 4].try_into().unwrap();
                assert_eq!(
                    i32::from_be_bytes(default),
                    i32::try_from(bytes.len()).unwrap()
                );
            }
        }
    }

    #[test]
    fn a_mnemonic_that_does_not_exist_is_an_error() {
        assert_eq!(Opcode::named("iadd").unwrap(), Opcode(96));
        assert!(Opcode::named("iaddd").is_err());
    }
}
