//! Which units mix instructions, as programs do?
//!
//! An interpreter's jump to the next instruction is predicted from the ones before. A unit of a single instruction shows the best case, in which
//! each jump leads to the same place.

use super::fixture::FIELDS;
use super::instruction::Instruction;
use super::opcode::{Call, Kind, Opcode};
use super::unit::{Unit, Value};
use crate::mixed::bodies;

/// The local variables of mixed units: an object in 0 and 1, `int` in 2 to 5, `long` in 6 and 8, `double` in 10 and 12, arrays from 14 on in the order
/// of the opcodes that load from them.
const LOCALS: [(u16, Value); 18] = [
    (0, Value::Object),
    (1, Value::Object),
    (2, Value::Int(3)),
    (3, Value::Int(1_000_003)),
    (4, Value::Int(5)),
    (5, Value::Int(7)),
    (6, Value::Long(1_000_003)),
    (8, Value::Long(3)),
    (10, Value::Double(1.5)),
    (12, Value::Double(2.5)),
    (14, Value::Array(10)),
    (15, Value::Array(11)),
    (16, Value::Array(6)),
    (17, Value::Array(7)),
    (18, Value::Objects),
    (19, Value::Array(8)),
    (20, Value::Array(5)),
    (21, Value::Array(9)),
];

/// Returns units of random phrases. They are the same each time. `imperative`: units of which those that use no local variables are phrases, too.
pub(super) fn units(imperative: &[Unit]) -> Vec<Unit> {
    let common = common_phrases();
    let others = imperative.iter().filter(|unit| !unit.has_locals());
    let mut others: Vec<Vec<Instruction>> = others.map(Unit::phrase).collect();
    others.extend(object_phrases());
    bodies(&common, &others)
        .map(|(name, body)| Unit::new(name, body).mixed().in_a_loop().with(LOCALS))
        .collect()
}

/// Short sequences that programs are full of. They leave the stack as it is.
fn common_phrases() -> Vec<Vec<Instruction>> {
    let plain = |opcode| Instruction::Plain(Opcode(opcode));
    let local = |opcode, local| Instruction::Local(Opcode(opcode), local);
    let branch = |opcode, outcome| Instruction::If(Opcode(opcode), outcome);
    let field = |opcode, kind| Instruction::Field(Opcode(opcode), kind);
    let int = Kind::Int;
    let (i2, i3, i4) = (local(28, 2), local(29, 3), local(21, 4));
    let (l6, l8) = (local(22, 6), local(22, 8));
    let (d10, d12) = (local(24, 10), local(24, 12));
    let (this, object, array) = (local(42, 0), local(43, 1), local(25, 14));
    let (store_int, store_long, store_double) = (local(54, 5), local(55, 8), local(57, 12));
    use crate::outcome::Outcome::{Not, Taken};
    vec![
        // x = y + z and the like.
        vec![i2, i3, plain(96), store_int],
        vec![i3, i4, plain(100), store_int],
        vec![i2, i4, plain(104), store_int],
        vec![i3, plain(6), plain(120), i4, plain(130), store_int],
        vec![i3, Instruction::Byte(Opcode(16), 31), plain(126), store_int],
        vec![i3, i4, plain(108), int.pop()],
        vec![i3, i4, plain(112), int.pop()],
        vec![Instruction::Increment(4), i2, int.pop()],
        vec![l6, l8, plain(97), int_of_long(), store_int],
        vec![l6, plain(10), plain(127), store_long],
        vec![d10, d10, plain(107), store_double],
        vec![d10, d12, plain(99), plain(142), int.pop()],
        // if (x < y) and the like.
        vec![i2, i3, branch(162, Not)],
        vec![i3, i2, branch(162, Taken)],
        vec![i2, branch(153, Not)],
        vec![i2, branch(154, Taken)],
        vec![l6, l8, plain(148), branch(158, Not)],
        vec![object, branch(198, Not)],
        vec![Instruction::Goto(Opcode(167))],
        // Arrays and fields.
        vec![array, i2, plain(46), store_int],
        vec![array, i2, i4, plain(79)],
        vec![array, plain(190), int.pop()],
        vec![
            array,
            i2,
            plain(92),
            plain(46),
            plain(4),
            plain(96),
            plain(79),
        ],
        vec![this, field(180, Kind::Int), store_int],
        vec![
            this,
            plain(89),
            field(180, Kind::Int),
            plain(4),
            plain(96),
            field(181, Kind::Int),
        ],
        vec![object, field(180, Kind::Reference), Kind::Reference.pop()],
        vec![field(178, Kind::Int), store_int],
        vec![i3, field(179, Kind::Int)],
        // Calls.
        vec![Instruction::Call(Call::Static, None)],
        returning(Kind::Long),
        returning(Kind::Float),
        returning(Kind::Double),
        returning(Kind::Reference),
        vec![Instruction::Call(Call::Static, Some(int)), store_int],
        vec![object, Instruction::Call(Call::Virtual, None)],
        vec![
            object,
            Instruction::Call(Call::Virtual, Some(int)),
            store_int,
        ],
        vec![
            object,
            Instruction::Call(Call::Interface, Some(int)),
            int.pop(),
        ],
    ]
}

/// Loads and stores of all types in arrays and fields.
fn object_phrases() -> Vec<Vec<Instruction>> {
    use Kind::{Double, Float, Int, Long, Reference};
    let zero = Instruction::Plain(Opcode(3));
    let object = Instruction::Local(Opcode(43), 1);
    let mut phrases = Vec::new();
    let types = [Int, Long, Float, Double, Reference, Int, Int, Int];
    for ((local, load), kind) in (14..).zip(46_u8..).zip(types) {
        let array = Instruction::Local(Opcode(25), local);
        let store = Instruction::Plain(Opcode(33_u8.saturating_add(load)));
        let value = if kind == Reference {
            object
        } else {
            kind.one()
        };
        let load = Instruction::Plain(Opcode(load));
        phrases.push(vec![array, zero, load, kind.pop()]);
        phrases.push(vec![array, zero, value, store]);
    }
    for kind in FIELDS {
        let field = |opcode| Instruction::Field(Opcode(opcode), kind);
        phrases.push(vec![object, field(180), kind.pop()]);
        phrases.push(vec![object, kind.one(), field(181)]);
        phrases.push(vec![field(178), kind.pop()]);
        phrases.push(vec![kind.one(), field(179)]);
    }
    phrases
}

/// A call of a static method, whose value is removed.
fn returning(kind: Kind) -> Vec<Instruction> {
    vec![Instruction::Call(Call::Static, Some(kind)), kind.pop()]
}

/// `l2i`.
const fn int_of_long() -> Instruction {
    Instruction::Plain(Opcode(136))
}
