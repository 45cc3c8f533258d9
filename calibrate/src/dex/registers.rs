//! Which registers does a timed method have?

use super::encode::{self, Register};
use super::fixture::{Callee, FIXTURE};
use super::instruction::Instruction;

/// The object.
pub(super) const OBJECT: Register = Register(0);
/// A result: any reference.
pub(super) const REFERENCE: Register = Register(1);
/// Two operands, which are not changed, and a result.
pub(super) const INT: Register = Register(2);
pub(super) const SMALL: Register = Register(3);
pub(super) const INT_RESULT: Register = Register(4);
/// An array of [`ELEMENTS`] numbers.
pub(super) const ARRAY: Register = Register(5);
pub(super) const LONG: Register = Register(6);
pub(super) const LONG_RESULT: Register = Register(8);
pub(super) const DOUBLE: Register = Register(10);
pub(super) const DOUBLE_RESULT: Register = Register(12);
pub(super) const FLOAT: Register = Register(14);
pub(super) const FLOAT_RESULT: Register = Register(15);
/// The number of iterations that are left.
pub(super) const ITERATIONS: Register = Register(16);
/// The time at the start.
pub(super) const START: Register = Register(18);
pub(super) const ZERO: Register = Register(20);
pub(super) const ONE: Register = Register(21);
pub(super) const MINUS: Register = Register(22);
pub(super) const NULL: Register = Register(23);
/// Arrays of each type, in the order of the opcodes that load from them.
pub(super) const ARRAYS: [(Register, &str); 7] = [
    (Register(24), "[I"),
    (Register(25), "[J"),
    (Register(26), "[Ljava/lang/Object;"),
    (Register(27), "[Z"),
    (Register(28), "[B"),
    (Register(29), "[C"),
    (Register(30), "[S"),
];
/// Operands and results whose registers need more than four bits.
pub(super) const FAR_OBJECT: Register = Register(32);
pub(super) const FAR_INT: Register = Register(33);
pub(super) const FAR_LONG: Register = Register(34);
pub(super) const SMALL_LONG: Register = Register(36);
/// The argument of a timed method.
pub(super) const ARGUMENT: Register = Register(38);
/// The number of registers.
pub(super) const COUNT: u16 = 39;
/// The most registers of arguments of a call.
pub(super) const OUTS: u16 = 4;

/// The elements of arrays.
pub(super) const ELEMENTS: u16 = 8;

/// Returns the instructions that give the registers their values.
pub(super) fn initialization() -> Vec<Instruction> {
    let int = |register, value: u32| {
        let [a, b, c, d] = value.to_le_bytes();
        let halves = [u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])];
        // const, which also gives a float its bits.
        Instruction::plain(encode::one_and_two(0x14, register, halves))
    };
    // const-wide/16, and const-wide/high16.
    let long = |register, value| Instruction::plain(encode::one_and(0x16, register, value));
    let double = |register| Instruction::plain(encode::one_and(0x19, register, 0x3ff0));
    let one = 1.0_f32.to_bits();
    let mut all = vec![
        Instruction::plain(encode::one_and(0x02, ITERATIONS, ARGUMENT.0.into())),
        Instruction::class(encode::one_and(0x22, OBJECT, 0), FIXTURE),
        Callee::Constructor.call(encode::arguments(0x70, &[OBJECT])),
        // move-object, and move-object/from16.
        Instruction::plain(encode::two(0x07, REFERENCE, OBJECT)),
        Instruction::plain(encode::one_and(0x08, FAR_OBJECT, OBJECT.0.into())),
        int(INT, 1_000_003),
        int(SMALL, 3),
        int(FAR_INT, 5),
        int(FLOAT, one),
        int(FLOAT_RESULT, one),
        int(ZERO, 0),
        int(ONE, 1),
        int(MINUS, u32::MAX),
        int(NULL, 0),
        long(LONG, 30_003),
        long(LONG_RESULT, 3),
        long(FAR_LONG, 3),
        long(SMALL_LONG, 3),
        double(DOUBLE),
        double(DOUBLE_RESULT),
        int(INT_RESULT, ELEMENTS.into()),
        Instruction::class(encode::two_and(0x23, ARRAY, INT_RESULT, 0), "[I"),
    ];
    for (register, class) in ARRAYS {
        // new-array has a register of four bits for the array.
        all.push(Instruction::class(
            encode::two_and(0x23, REFERENCE, INT_RESULT, 0),
            class,
        ));
        all.push(Instruction::plain(encode::one_and(
            0x08,
            register,
            REFERENCE.0.into(),
        )));
    }
    all
}
