//! Which units are there of the imperative instructions: those on constants, registers, numbers, branches?

use super::encode::{self, Register};
use super::instruction::Instruction;
use super::registers::{
    DOUBLE, DOUBLE_RESULT, FAR_INT, FAR_LONG, FAR_OBJECT, FLOAT, FLOAT_RESULT, INT, INT_RESULT,
    LONG, LONG_RESULT, MINUS, OBJECT, ONE, REFERENCE, SMALL, SMALL_LONG, ZERO,
};
use super::unit::Unit;
use crate::outcome::Outcome;

/// The type of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Int,
    Long,
    Float,
    Double,
}

impl Kind {
    /// All types, in the order of opcodes.
    const ALL: [Self; 4] = [Self::Int, Self::Long, Self::Float, Self::Double];

    /// Returns the registers of a result, of an operand, and of another operand.
    const fn registers(self) -> [Register; 3] {
        match self {
            Self::Int => [INT_RESULT, INT, SMALL],
            Self::Long => [LONG_RESULT, LONG, SMALL_LONG],
            Self::Float => [FLOAT_RESULT, FLOAT, FLOAT],
            Self::Double => [DOUBLE_RESULT, DOUBLE, DOUBLE],
        }
    }

    /// Returns the move of the operand to the register of results.
    fn reset(self) -> Instruction {
        let [result, operand, _] = self.registers();
        let opcode = match self {
            Self::Int | Self::Float => 0x01,
            Self::Long | Self::Double => 0x04,
        };
        Instruction::plain(encode::two(opcode, result, operand))
    }
}

/// Returns a unit of one instruction without an index.
fn plain(units: Vec<u16>) -> Unit {
    Unit::of(Instruction::plain(units))
}

/// Returns the units of imperative instructions.
pub(super) fn imperative() -> Vec<Unit> {
    let mut units = vec![plain(vec![0])];
    units.extend(moves());
    units.extend(constants());
    units.extend(arithmetic());
    units.extend(with_literals());
    units.extend(conversions());
    units.extend(comparisons());
    units.extend(branches());
    units
}

fn moves() -> Vec<Unit> {
    let mut units = Vec::new();
    for ([opcode, from16, both16], result, near, far) in [
        ([0x01, 0x02, 0x03], INT_RESULT, INT, FAR_INT),
        ([0x04, 0x05, 0x06], LONG_RESULT, LONG, FAR_LONG),
        ([0x07, 0x08, 0x09], REFERENCE, OBJECT, FAR_OBJECT),
    ] {
        units.push(plain(encode::two(opcode, result, near)));
        units.push(plain(encode::one_and(from16, result, far.0.into())));
        units.push(plain(encode::wide_two(both16, result, far)));
    }
    units
}

fn constants() -> Vec<Unit> {
    let (int, long) = (INT_RESULT, LONG_RESULT);
    let [const_4, const_16, constant, high_16] = [0x12, 0x13, 0x14, 0x15];
    let [wide_16, wide_32, wide, wide_high_16] = [0x16, 0x17, 0x18, 0x19];
    vec![
        plain(encode::two(const_4, int, Register(7))),
        plain(encode::one_and(const_16, int, 300)),
        plain(encode::one_and_two(constant, int, [0x86a0, 1])),
        plain(encode::one_and(high_16, int, 0x10)),
        plain(encode::one_and(wide_16, long, 300)),
        plain(encode::one_and_two(wide_32, long, [0x86a0, 1])),
        plain(vec![encode::first(wide, long), 1, 2, 3, 0]),
        plain(encode::one_and(wide_high_16, long, 0x10)),
    ]
}

/// The operations of each type, from that of `int` on: 23x, and with the result in the first operand 12x, 32 opcodes later.
fn arithmetic() -> Vec<Unit> {
    /// add, sub, mul, div, rem; of whole numbers also and, or, xor, shl, shr, ushr.
    const OF_ALL: u8 = 5;
    const OF_WHOLE: u8 = 11;
    const TO_FIRST: u8 = 0x20;
    let mut units = Vec::new();
    let mut opcode = 0x90_u8;
    for kind in Kind::ALL {
        let operations = match kind {
            Kind::Int | Kind::Long => OF_WHOLE,
            Kind::Float | Kind::Double => OF_ALL,
        };
        let [result, operand, other] = kind.registers();
        for operation in 0..operations {
            let is_shift = operation >= 8;
            // The distance of a shift is an int.
            let other = if is_shift { SMALL } else { other };
            units.push(plain(encode::three(opcode, result, operand, other)));
            let near = match (kind, is_shift) {
                (Kind::Long, false) => LONG,
                _ => other,
            };
            let to_first = encode::two(opcode.saturating_add(TO_FIRST), result, near);
            let instruction = Instruction::plain(to_first);
            // A division makes its result so small that the next one takes less time.
            let is_division = operation == 3 || operation == 4;
            units.push(match is_division {
                true => Unit::new(
                    instruction.key().as_str(),
                    [kind.reset(), instruction.clone()],
                ),
                false => Unit::of(instruction),
            });
            opcode = opcode.saturating_add(1);
        }
    }
    units
}

fn with_literals() -> Vec<Unit> {
    let of_16_bits =
        (0xd0..=0xd7_u8).map(|opcode| plain(encode::two_and(opcode, INT_RESULT, INT, 300)));
    let of_8_bits =
        (0xd8..=0xe2_u8).map(|opcode| plain(encode::two_and_byte(opcode, INT_RESULT, INT, 7)));
    of_16_bits.chain(of_8_bits).collect()
}

fn conversions() -> Vec<Unit> {
    use Kind::{Double, Float, Int, Long};
    // neg and not; conversions between types; of int to smaller ones.
    let types = [
        (Int, Int),
        (Int, Int),
        (Long, Long),
        (Long, Long),
        (Float, Float),
        (Double, Double),
        (Int, Long),
        (Int, Float),
        (Int, Double),
        (Long, Int),
        (Long, Float),
        (Long, Double),
        (Float, Int),
        (Float, Long),
        (Float, Double),
        (Double, Int),
        (Double, Long),
        (Double, Float),
        (Int, Int),
        (Int, Int),
        (Int, Int),
    ];
    let opcodes = 0x7b_u8..;
    let unit = |(opcode, (from, to)): (u8, (Kind, Kind))| {
        let ([result, ..], [_, operand, _]) = (to.registers(), from.registers());
        plain(encode::two(opcode, result, operand))
    };
    opcodes.zip(types).map(unit).collect()
}

fn comparisons() -> Vec<Unit> {
    let kinds = [
        Kind::Float,
        Kind::Float,
        Kind::Double,
        Kind::Double,
        Kind::Long,
    ];
    let unit = |(opcode, kind): (u8, Kind)| {
        let [_, operand, other] = kind.registers();
        plain(encode::three(opcode, INT_RESULT, operand, other))
    };
    (0x2d..).zip(kinds).map(unit).collect()
}

/// Returns the branch of two registers to the next instruction. eq, ne, lt, ge, gt, le from 0x32 on.
pub(super) fn branch_of_two(opcode: u8, outcome: Outcome) -> Instruction {
    let (equal, less, greater) = ((INT, INT), (SMALL, INT), (INT, SMALL));
    let (holds, fails) = match opcode {
        0x32 => (equal, less),
        0x33 => (less, equal),
        0x34 => (less, greater),
        0x35 => (greater, less),
        0x36 => (greater, less),
        _ => (less, greater),
    };
    let (one, other) = match outcome {
        Outcome::Taken => holds,
        Outcome::Not => fails,
    };
    Instruction::branch(encode::two_and(opcode, one, other, 2), outcome)
}

/// Returns the branch of a register to the next instruction: from 0x38 on.
pub(super) fn branch_of_one(opcode: u8, outcome: Outcome) -> Instruction {
    let (holds, fails) = match opcode {
        0x38 => (ZERO, ONE),
        0x39 => (ONE, ZERO),
        0x3a => (MINUS, ZERO),
        0x3b => (ZERO, MINUS),
        0x3c => (ONE, ZERO),
        _ => (ZERO, ONE),
    };
    let register = match outcome {
        Outcome::Taken => holds,
        Outcome::Not => fails,
    };
    Instruction::branch(encode::one_and(opcode, register, 2), outcome)
}

fn branches() -> Vec<Unit> {
    let mut units = Vec::new();
    for outcome in Outcome::BOTH {
        units.extend((0x32..=0x37).map(|opcode| Unit::of(branch_of_two(opcode, outcome))));
        units.extend((0x38..=0x3d).map(|opcode| Unit::of(branch_of_one(opcode, outcome))));
    }
    // goto, goto/16 and goto/32 to the next instruction.
    units.extend([vec![0x0128], vec![0x29, 2], vec![0x2a, 3, 0]].map(plain));
    // Four cases from 0 on.
    let packed = Instruction::table(encode::first(0x2b, ONE), vec![0x0100, 4, 0, 0], 4);
    let keys = [0, 0, 1, 0, 2, 0, 3, 0];
    let sparse = [vec![0x0200, 4], keys.to_vec()].concat();
    let sparse = Instruction::table(encode::first(0x2c, ONE), sparse, 4);
    units.extend([packed, sparse].map(Unit::of));
    units
}
