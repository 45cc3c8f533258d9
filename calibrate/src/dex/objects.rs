//! Which units are there of instructions on objects: arrays, fields, calls, allocation, casts, monitors?
//!
//! Those that resolve what they refer to are in loops of few sites. ART keeps what it has resolved for 256 places of a thread's code: a longer straight
//! line defeats that, as programs do not.

use super::encode::{self, Register};
use super::fixture::{Callee, FIXTURE, FieldKind, Holder, Returned};
use super::instruction::Instruction;
use super::registers::{
    ARRAY, ARRAYS, ELEMENTS, FAR_OBJECT, INT, INT_RESULT, LONG, LONG_RESULT, OBJECT, REFERENCE,
    SMALL, ZERO,
};
use super::unit::Unit;

/// Returns the register that a load of this type writes, and the one that a store reads. What is loaded of one type fits no other.
const fn registers(kind: FieldKind) -> (Register, Register) {
    match kind {
        FieldKind::Wide => (LONG_RESULT, LONG),
        FieldKind::Reference => (REFERENCE, OBJECT),
        _ => (INT_RESULT, SMALL),
    }
}

/// Returns the units of instructions on arrays and fields.
pub(super) fn accesses() -> Vec<Unit> {
    let mut units = Vec::new();
    for (offset, (kind, (array, _))) in (0..7_u8).zip(FieldKind::ALL.into_iter().zip(ARRAYS)) {
        let (load, store) = registers(kind);
        let opcode = |first: u8| first.saturating_add(offset);
        for (first, register) in [(0x44, load), (0x4b, store)] {
            let units_of = encode::three(opcode(first), register, array, ZERO);
            units.push(Unit::of(Instruction::plain(units_of)));
        }
        for (first, register) in [(0x52, load), (0x59, store)] {
            let access = encode::two_and(opcode(first), register, OBJECT, 0);
            let access = kind.access(Holder::Object, access);
            units.push(Unit::of(access).in_a_loop());
        }
        for (first, register) in [(0x60, load), (0x67, store)] {
            let access = encode::one_and(opcode(first), register, 0);
            let access = kind.access(Holder::Class, access);
            units.push(Unit::of(access).in_a_loop());
        }
    }
    let length = encode::two(0x21, INT_RESULT, ARRAY);
    units.push(Unit::of(Instruction::plain(length)));
    units
}

/// A call with what takes its result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    /// That with registers of four bits.
    opcode: u8,
    callee: Callee,
}

impl Call {
    /// The calls, beside those of constructors.
    pub(super) const ALL: [Self; 9] = [
        Self::new(0x71, Callee::Static(Returned::Nothing)),
        Self::new(0x71, Callee::Static(Returned::Int)),
        Self::new(0x71, Callee::Static(Returned::Long)),
        Self::new(0x71, Callee::Static(Returned::Reference)),
        Self::new(0x71, Callee::Sum),
        Self::new(0x6e, Callee::Virtual(Returned::Nothing)),
        Self::new(0x6e, Callee::Virtual(Returned::Int)),
        Self::new(0x72, Callee::Interface(Returned::Nothing)),
        Self::new(0x72, Callee::Interface(Returned::Int)),
    ];

    const fn new(opcode: u8, callee: Callee) -> Self {
        Self { opcode, callee }
    }

    /// Returns the instruction, with registers of four bits.
    fn instruction(self) -> Instruction {
        let registers: &[Register] = match self.callee {
            Callee::Static(_) => &[],
            Callee::Sum => &[INT, SMALL],
            _ => &[OBJECT],
        };
        self.callee.call(encode::arguments(self.opcode, registers))
    }

    /// Returns the instruction with a range of registers.
    fn range(self) -> Instruction {
        /// How much larger the opcode of a range is.
        const RANGE: u8 = 6;
        let registers: &[Register] = match self.callee {
            Callee::Static(_) => &[],
            Callee::Sum => &[INT, SMALL],
            _ => &[FAR_OBJECT],
        };
        let opcode = self.opcode.saturating_add(RANGE);
        self.callee.call(encode::range(opcode, registers))
    }

    /// Returns the instruction that takes the result, or None of a call without one.
    fn result(self) -> Option<Instruction> {
        let (opcode, register) = match self.callee {
            Callee::Static(returned) | Callee::Virtual(returned) | Callee::Interface(returned) => {
                match returned {
                    Returned::Nothing => return None,
                    Returned::Int => (0x0a, INT_RESULT),
                    Returned::Long => (0x0b, LONG_RESULT),
                    Returned::Reference => (0x0c, REFERENCE),
                }
            }
            Callee::Sum => (0x0a, INT_RESULT),
            _ => return None,
        };
        Some(Instruction::plain(encode::one(opcode, register)))
    }

    /// Returns the call with what takes its result.
    pub(super) fn phrase(self) -> Vec<Instruction> {
        let call = self.instruction();
        [call].into_iter().chain(self.result()).collect()
    }
}

/// Returns the units of calls.
pub(super) fn calls() -> Vec<Unit> {
    let mut units = Vec::new();
    for call in Call::ALL {
        let one = call.instruction();
        let key = one.key();
        // Each instruction that takes a result is in the unit of that name.
        let name = match (call.callee, call.result()) {
            (Callee::Static(_), Some(result)) => result.key().as_str().to_owned(),
            (Callee::Sum, _) => format!("{key} of two"),
            (_, Some(_)) => format!("{key} and return"),
            (_, None) => key.as_str().to_owned(),
        };
        if let (Callee::Static(_), Some(_)) = (call.callee, call.result()) {
            let alone = format!("{key} before {name}");
            units.push(Unit::new(alone, [one]).in_a_loop());
        }
        units.push(Unit::new(name, call.phrase()).in_a_loop());
        let range = call.range();
        let name = match call.callee {
            Callee::Static(Returned::Nothing)
            | Callee::Virtual(Returned::Nothing)
            | Callee::Interface(Returned::Nothing) => range.key().as_str().to_owned(),
            other => format!("{} {other:?}", range.key()),
        };
        units.push(Unit::new(name, [range]).in_a_loop());
    }
    let new = || Instruction::class(encode::one_and(0x22, REFERENCE, 0), FIXTURE);
    let constructor = |units| Callee::Constructor.call(units);
    let super_call = |callee: Callee| callee.call(encode::arguments(0x6e, &[OBJECT]));
    for (name, body) in [
        (
            "invoke-direct",
            vec![new(), constructor(encode::arguments(0x70, &[REFERENCE]))],
        ),
        (
            "invoke-direct/range",
            vec![new(), constructor(encode::range(0x76, &[REFERENCE]))],
        ),
        ("invoke-super", vec![super_call(Callee::Super)]),
        ("invoke-super/range", vec![super_call(Callee::SuperRange)]),
    ] {
        units.push(Unit::new(name, body).in_a_loop());
    }
    units
}

/// Returns the units of allocation, types, constants that are objects, and monitors.
pub(super) fn others() -> Vec<Unit> {
    let length = Instruction::plain(encode::one_and(0x13, INT_RESULT, ELEMENTS));
    let array = encode::two_and(0x23, REFERENCE, INT_RESULT, 0);
    let array = Instruction::class(array, "[I");
    let filled = |units| {
        let take = Instruction::plain(encode::one(0x0c, REFERENCE));
        let fill = Instruction::class(units, "[I");
        Unit::new(fill.key().as_str(), [fill, take])
    };
    let [enter, leave] = [0x1d, 0x1e].map(|opcode| encode::one(opcode, OBJECT));
    let data = [
        0x0300, 4, ELEMENTS, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8, 0,
    ];
    let type_of = |units| Unit::of(Instruction::class(units, FIXTURE));
    let text = |units| Unit::of(Instruction::text(units));
    let units = [
        type_of(encode::one_and(0x22, REFERENCE, 0)),
        Unit::new("new-array", [length, array]),
        filled(encode::arguments(0x24, &[INT, SMALL])),
        filled(encode::range(0x25, &[INT, SMALL])),
        Unit::of(Instruction::table(
            encode::first(0x26, ARRAY),
            data.to_vec(),
            0,
        )),
        type_of(encode::one_and(0x1f, OBJECT, 0)),
        type_of(encode::two_and(0x20, INT_RESULT, OBJECT, 0)),
        type_of(encode::one_and(0x1c, REFERENCE, 0)),
        text(encode::one_and(0x1a, REFERENCE, 0)),
        text(encode::one_and_two(0x1b, REFERENCE, [0, 0])),
        Unit::new("monitor-enter", [enter, leave].map(Instruction::plain)),
    ];
    units.into_iter().map(Unit::in_a_loop).collect()
}
