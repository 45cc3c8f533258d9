//! Which units are there of the imperative instructions: those on constants, local variables, the stack, numbers, branches?

use super::instruction::Instruction;
use super::opcode::{Kind, Opcode};
use super::unit::{Unit, Value};
use crate::error::Error;
use crate::outcome::Outcome;
use varid_instrument::assemble::Constant;

/// A local variable whose number has no form of its own, and one that needs `wide`.
const LOCAL: u16 = 4;
const WIDE_LOCAL: u16 = 300;

/// Returns an instruction without operands.
pub(super) fn plain(name: &'static str) -> Result<Instruction, Error> {
    Opcode::named(name).map(Instruction::Plain)
}

/// Returns the instructions without operands of these names.
pub(super) fn plains<const N: usize>(names: [&'static str; N]) -> Result<Vec<Instruction>, Error> {
    names.into_iter().map(plain).collect()
}

/// Returns a unit of one opcode.
fn single(opcode: u8, of: impl FnOnce(Opcode) -> Instruction) -> Unit {
    let opcode = Opcode(opcode);
    Unit::new(opcode.name(), [of(opcode)])
}

/// Returns the units of imperative instructions.
pub(super) fn imperative() -> Result<Vec<Unit>, Error> {
    let mut units = constants()?;
    units.extend(local_variables());
    units.extend(stack()?);
    units.extend(arithmetic()?);
    units.extend(conversions()?);
    units.extend(branches()?);
    Ok(units)
}

fn constants() -> Result<Vec<Unit>, Error> {
    use Kind::{Double, Float, Int, Long, Reference};
    let mut units = vec![Unit::new("nop", plains(["nop"])?)];
    for opcode in 1..=15 {
        let kind = match opcode {
            1 => Reference,
            2..=8 => Int,
            9 | 10 => Long,
            11..=13 => Float,
            _ => Double,
        };
        units.push(single(opcode, Instruction::Plain).leaving([kind]));
    }
    units.push(single(16, |it| Instruction::Byte(it, 7)).leaving([Int]));
    units.push(single(17, |it| Instruction::Short(it, 300)).leaving([Int]));
    let mut load = |opcode, constant, kind| {
        units.push(single(opcode, |it| Instruction::Load(it, constant)).leaving([kind]));
    };
    load(18, Constant::Int(100_000), Int);
    load(19, Constant::Float(1.5), Float);
    load(20, Constant::Long(1 << 40), Long);
    Ok(units)
}

fn local_variables() -> Vec<Unit> {
    let mut units = Vec::new();
    for kind in Kind::ALL {
        let index = kind.index();
        let mut load = |opcode: u8, local: u16| {
            let unit = single(opcode, |it| Instruction::Local(it, local));
            units.push(
                named(unit, local)
                    .with([(local, Value::one(kind))])
                    .leaving([kind]),
            );
        };
        let (long, short) = (21_u8.saturating_add(index), index.saturating_mul(4));
        if kind != Kind::Int {
            load(long, LOCAL);
        }
        load(long, WIDE_LOCAL);
        for local in 0..4_u8 {
            load(
                26_u8.saturating_add(short).saturating_add(local),
                local.into(),
            );
        }
        let mut store = |opcode: u8, local: u16| {
            let unit = single(opcode, |it| Instruction::Local(it, local));
            units.push(named(unit, local).removing([(kind.one(), kind)]));
        };
        let long = 54_u8.saturating_add(index);
        store(long, LOCAL);
        store(long, WIDE_LOCAL);
        for local in 0..4_u8 {
            store(
                59_u8.saturating_add(short).saturating_add(local),
                local.into(),
            );
        }
    }
    // HotSpot executes two iload in a row as one instruction: this one stands alone.
    let (load, store) = (Opcode(21), Opcode(54));
    let body = [
        Instruction::Local(load, LOCAL),
        Instruction::Local(store, LOCAL),
    ];
    units.push(Unit::new("iload", body).with([(LOCAL, Value::Int(1))]));
    for local in [LOCAL, WIDE_LOCAL] {
        let unit = Unit::new("iinc", [Instruction::Increment(local)]);
        units.push(named(unit, local).with([(local, Value::Int(1))]));
    }
    units
}

/// Names a unit of a wide instruction.
fn named(mut unit: Unit, local: u16) -> Unit {
    if local == WIDE_LOCAL {
        unit.name.push_str("_wide");
    }
    unit
}

fn stack() -> Result<Vec<Unit>, Error> {
    use Kind::{Int, Long};
    let unit = |name| Ok::<_, Error>(Unit::new(name, [plain(name)?]));
    let two = [Int, Int];
    Ok(vec![
        unit("pop")?.removing([(Int.one(), Int)]),
        unit("pop2")?.removing([(Long.one(), Long)]),
        unit("dup")?.above(&[Int]).leaving([Int]),
        unit("dup_x1")?.above(&two).leaving([Int]),
        unit("dup_x2")?.above(&[Int, Int, Int]).leaving([Int]),
        unit("dup2")?.above(&two).leaving(two),
        unit("dup2_x1")?.above(&[Int, Int, Int]).leaving(two),
        unit("dup2_x2")?.above(&[Int, Int, Int, Int]).leaving(two),
        unit("swap")?.above(&two),
    ])
}

fn arithmetic() -> Result<Vec<Unit>, Error> {
    let mut units = Vec::new();
    for kind in [Kind::Int, Kind::Long, Kind::Float, Kind::Double] {
        let at = |opcode: u8| opcode.saturating_add(kind.index());
        // add, sub, mul; of whole numbers also and, or, xor.
        for opcode in [96, 100, 104] {
            units.push(reducing(at(opcode), kind));
        }
        if matches!(kind, Kind::Int | Kind::Long) {
            for opcode in [126, 128, 130] {
                units.push(reducing(at(opcode), kind));
            }
        }
        units.push(single(at(116), Instruction::Plain).above(&[kind]));
        // div, rem: of numbers that are not their own quotient; div of ones, too. A remainder of ones is a zero, which divides nothing.
        units.push(reducing(at(108), kind));
        let (dividend, divisor) = match kind {
            Kind::Int => (Value::Int(1_000_003), Value::Int(7)),
            Kind::Long => (Value::Long(1_000_003), Value::Long(7)),
            Kind::Float => (Value::Float(1003.5), Value::Float(7.25)),
            _ => (Value::Double(1003.5), Value::Double(7.25)),
        };
        let load = Opcode(21_u8.saturating_add(kind.index()));
        for opcode in [108, 112] {
            let opcode = Opcode(at(opcode));
            let body = [
                Instruction::Local(load, LOCAL),
                Instruction::Local(load, LOCAL.saturating_add(2)),
                Instruction::Plain(opcode),
            ];
            let locals = [(LOCAL, dividend), (LOCAL.saturating_add(2), divisor)];
            let unit = Unit::new(opcode.name(), body).with(locals);
            units.push(unit.leaving([kind]));
        }
    }
    for opcode in [120, 122, 124] {
        units.push(reducing(opcode, Kind::Int));
        let long = Opcode(opcode.saturating_add(1));
        let body = [Kind::Int.one(), Instruction::Plain(long)];
        units.push(Unit::new(long.name(), body).above(&[Kind::Long]));
    }
    Ok(units)
}

/// Returns a unit that makes one value of two of the same type.
fn reducing(opcode: u8, kind: Kind) -> Unit {
    single(opcode, Instruction::Plain)
        .above(&[kind])
        .removing([(kind.one(), kind)])
}

fn conversions() -> Result<Vec<Unit>, Error> {
    use Kind::{Double, Float, Int, Long};
    let from = [
        (Int, [Long, Float, Double]),
        (Long, [Int, Float, Double]),
        (Float, [Int, Long, Double]),
        (Double, [Int, Long, Float]),
    ];
    let mut units = Vec::new();
    let mut opcode = 133_u8;
    for (from, to) in from {
        for to in to {
            let conversion = Opcode(opcode);
            let body = [from.one(), Instruction::Plain(conversion)];
            units.push(Unit::new(conversion.name(), body).leaving([to]));
            opcode = opcode.saturating_add(1);
        }
    }
    // There and back, without anything between.
    for (there, back) in [
        (133, 136),
        (134, 139),
        (135, 142),
        (137, 140),
        (138, 143),
        (141, 144),
    ] {
        let kind = match there {
            133..=135 => Int,
            137 | 138 => Long,
            _ => Float,
        };
        let (there, back) = (Opcode(there), Opcode(back));
        let name = format!("{} and {}", there.name(), back.name());
        let body = [there, back].map(Instruction::Plain);
        units.push(Unit::new(name, body).above(&[kind]));
    }
    for opcode in 145..=147 {
        units.push(single(opcode, Instruction::Plain).above(&[Int]));
    }
    // The result of a comparison, converted, is an operand of the next one.
    for (opcode, kind, back) in [
        (148, Long, 133),
        (149, Float, 134),
        (150, Float, 134),
        (151, Double, 135),
        (152, Double, 135),
    ] {
        let opcode = Opcode(opcode);
        let back = Instruction::Plain(Opcode(back));
        let body = [Instruction::Plain(opcode), back];
        let unit = Unit::new(opcode.name(), body).above(&[kind]);
        units.push(unit.removing([(kind.one(), kind)]));
    }
    Ok(units)
}

fn branches() -> Result<Vec<Unit>, Error> {
    let [minus, zero, one] = [2, 3, 4].map(|opcode| Instruction::Plain(Opcode(opcode)));
    let mut units = Vec::new();
    let mut add = |opcode: u8, outcome, operands: &[Instruction]| {
        let operands: Vec<_> = operands.iter().map(|it| (*it, Kind::Int)).collect();
        units.push(conditional(opcode, outcome, []).removing(operands));
    };
    // By the comparison with 0: eq, ne, lt, ge, gt, le. For each, an operand for which it holds, and one for which it does not.
    let with_zero = [
        (zero, one),
        (one, zero),
        (minus, zero),
        (zero, minus),
        (one, zero),
        (zero, one),
    ];
    for (opcode, (holds, fails)) in (153..).zip(with_zero) {
        add(opcode, Outcome::Taken, &[holds]);
        add(opcode, Outcome::Not, &[fails]);
    }
    let (equal, less, greater) = ([one, one], [zero, one], [one, zero]);
    let of_two = [
        (equal, less),
        (less, equal),
        (less, greater),
        (greater, less),
        (greater, less),
        (less, greater),
    ];
    for (opcode, (holds, fails)) in (159..).zip(of_two) {
        add(opcode, Outcome::Taken, &holds);
        add(opcode, Outcome::Not, &fails);
    }
    let null = Kind::Reference.one();
    let object = Instruction::Local(Opcode(43), 1);
    let locals = [(1, Value::Object)];
    for outcome in Outcome::BOTH {
        let is_taken = outcome == Outcome::Taken;
        for (opcode, equal) in [(165, true), (166, false)] {
            let other = if is_taken == equal { null } else { object };
            units.push(conditional(opcode, outcome, [null, other]).with(locals));
        }
        for (opcode, is_null) in [(198, true), (199, false)] {
            let operand = if is_taken == is_null { null } else { object };
            units.push(conditional(opcode, outcome, [operand]).with(locals));
        }
    }
    for opcode in [167, 200] {
        units.push(single(opcode, Instruction::Goto));
    }
    for opcode in [170, 171] {
        let opcode = Opcode(opcode);
        units.push(Unit::new(opcode.name(), [one, Instruction::Switch(opcode)]));
    }
    Ok(units)
}

/// Returns a unit of a conditional branch behind instructions that push its operands.
fn conditional<const N: usize>(opcode: u8, outcome: Outcome, operands: [Instruction; N]) -> Unit {
    let opcode = Opcode(opcode);
    let mut body = operands.to_vec();
    body.push(Instruction::If(opcode, outcome));
    let suffix = if outcome == Outcome::Taken {
        "_taken"
    } else {
        "_not"
    };
    Unit::new(format!("{}{suffix}", opcode.name()), body)
}
