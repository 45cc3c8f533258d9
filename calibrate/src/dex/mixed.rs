//! Which units mix instructions, as programs do?

use super::catalogue::{branch_of_one, branch_of_two};
use super::encode::{self, Register};
use super::fixture::{FieldKind, Holder};
use super::instruction::Instruction;
use super::objects::Call;
use super::registers::{
    ARRAY, ARRAYS, DOUBLE, DOUBLE_RESULT, INT, INT_RESULT, LONG, LONG_RESULT, OBJECT, REFERENCE,
    SMALL, SMALL_LONG, ZERO,
};
use super::unit::Unit;
use crate::mixed::bodies;
use crate::outcome::Outcome;

/// Returns units of random phrases. They are the same each time. `others`: units that are phrases, too.
pub(super) fn units(others: &[Unit]) -> Vec<Unit> {
    let common = common_phrases();
    let others: Vec<_> = others.iter().map(|unit| unit.body.clone()).collect();
    bodies(&common, &others)
        .map(|(name, body)| Unit::new(name, body).mixed().in_a_loop())
        .collect()
}

/// Short sequences that programs are full of.
fn common_phrases() -> Vec<Vec<Instruction>> {
    let plain = Instruction::plain;
    let three = |opcode, result: Register, one: Register, other: Register| {
        plain(encode::three(opcode, result, one, other))
    };
    let two =
        |opcode, result: Register, operand: Register| plain(encode::two(opcode, result, operand));
    let byte = |opcode, value| plain(encode::two_and_byte(opcode, INT_RESULT, INT, value));
    let array = ARRAYS.first().map_or(ARRAY, |(array, _)| *array);
    let own = |opcode, register, kind: FieldKind| {
        kind.access(Holder::Object, encode::two_and(opcode, register, OBJECT, 0))
    };
    let of_class = |opcode, register, kind: FieldKind| {
        kind.access(Holder::Class, encode::one_and(opcode, register, 0))
    };
    let reset = || two(0x01, INT_RESULT, INT);
    let (taken, not) = (Outcome::Taken, Outcome::Not);
    let mut phrases = vec![
        // x = y + z and the like.
        vec![three(0x90, INT_RESULT, INT, SMALL)],
        vec![three(0x91, INT_RESULT, INT, SMALL)],
        vec![three(0x92, INT_RESULT, INT, SMALL)],
        vec![three(0x93, INT_RESULT, INT, SMALL)],
        vec![three(0x94, INT_RESULT, INT, SMALL)],
        vec![byte(0xd8, 1)],
        vec![byte(0xd8, -1), reset()],
        vec![byte(0xdd, 31), byte(0xe0, 3)],
        vec![two(0xb0, INT_RESULT, SMALL)],
        vec![two(0xb7, INT_RESULT, SMALL), byte(0xdd, 15)],
        vec![
            three(0x9b, LONG_RESULT, LONG, SMALL_LONG),
            two(0x84, INT_RESULT, LONG),
        ],
        vec![three(0xa0, LONG_RESULT, LONG, SMALL_LONG)],
        vec![three(0xad, DOUBLE_RESULT, DOUBLE, DOUBLE)],
        vec![
            three(0xab, DOUBLE_RESULT, DOUBLE, DOUBLE),
            two(0x8a, INT_RESULT, DOUBLE),
        ],
        // x = 7 and the like.
        vec![plain(encode::two(0x12, INT_RESULT, Register(1)))],
        vec![
            plain(encode::one_and(0x13, INT_RESULT, 100)),
            two(0xb0, INT_RESULT, SMALL),
        ],
        vec![two(0x07, REFERENCE, OBJECT)],
        vec![reset()],
        // if (x < y) and the like.
        vec![branch_of_two(0x34, not)],
        vec![branch_of_two(0x35, taken)],
        vec![branch_of_two(0x33, not), reset()],
        vec![branch_of_one(0x38, not)],
        vec![branch_of_one(0x39, taken)],
        vec![
            three(0x31, INT_RESULT, LONG, SMALL_LONG),
            branch_of_one(0x3d, not),
        ],
        vec![plain(vec![0x0128])],
        // Arrays and fields.
        vec![three(0x44, INT_RESULT, array, ZERO)],
        vec![three(0x4b, SMALL, array, ZERO)],
        vec![two(0x21, INT_RESULT, ARRAY)],
        vec![
            three(0x44, INT_RESULT, array, ZERO),
            two(0xb0, INT_RESULT, SMALL),
            three(0x4b, INT_RESULT, array, ZERO),
        ],
        vec![own(0x52, INT_RESULT, FieldKind::Int)],
        vec![
            own(0x52, INT_RESULT, FieldKind::Int),
            plain(encode::two_and_byte(0xd8, INT_RESULT, INT_RESULT, 1)),
            own(0x59, INT_RESULT, FieldKind::Int),
        ],
        vec![own(0x54, REFERENCE, FieldKind::Reference)],
        vec![of_class(0x60, INT_RESULT, FieldKind::Int)],
        vec![of_class(0x67, SMALL, FieldKind::Int)],
    ];
    phrases.extend(Call::ALL.map(Call::phrase));
    phrases
}
