//! Which units are there of instructions on objects: arrays, fields, calls, allocation, casts, monitors?
//!
//! Fields, calls and allocations are in loops of few sites. A thousand call sites in a row are not what a program executes: each is mispredicted,
//! which doubles its time.

use super::catalogue::plains;
use super::fixture::{FIELDS, FIXTURE, METHODS};
use super::instruction::Instruction;
use super::opcode::{Call, Kind, Opcode};
use super::unit::{Unit, Value};
use crate::error::Error;

/// `aload_1` with local variable 1, which is an object or an array.
pub(super) const OBJECT: Instruction = Instruction::Local(Opcode(43), 1);
const ZERO: Instruction = Instruction::Plain(Opcode(3));
/// Elements of an array that is allocated.
const ELEMENTS: u8 = 8;

/// Returns the units of instructions on objects.
pub(super) fn units() -> Result<Vec<Unit>, Error> {
    let mut units = arrays();
    units.extend(fields());
    units.extend(calls());
    units.extend(others()?);
    Ok(units)
}

fn arrays() -> Vec<Unit> {
    use Kind::{Double, Float, Int, Long, Reference};
    // In the order of opcodes: the type on the stack, and the array.
    let types = [
        (Int, Value::Array(10)),
        (Long, Value::Array(11)),
        (Float, Value::Array(6)),
        (Double, Value::Array(7)),
        (Reference, Value::Objects),
        (Int, Value::Array(8)),
        (Int, Value::Array(5)),
        (Int, Value::Array(9)),
    ];
    let mut units = Vec::new();
    for (opcode, (kind, array)) in (46..).zip(types) {
        let load = Opcode(opcode);
        let body = [OBJECT, ZERO, Instruction::Plain(load)];
        let unit = Unit::new(load.name(), body).with([(1, array)]);
        units.push(unit.leaving([kind]));
        let store = Opcode(opcode.saturating_add(33));
        // A null is stored without a check of its type.
        let (value, locals) = match kind {
            Reference => (
                Instruction::Local(Opcode(44), 2),
                vec![(1, array), (2, Value::Object)],
            ),
            _ => (kind.one(), vec![(1, array)]),
        };
        let body = [OBJECT, ZERO, value, Instruction::Plain(store)];
        units.push(Unit::new(store.name(), body).with(locals));
    }
    units
}

fn fields() -> Vec<Unit> {
    let mut units = Vec::new();
    let this = Instruction::Local(Opcode(42), 0);
    for kind in FIELDS {
        let access = |opcode| Instruction::Field(Opcode(opcode), kind);
        let mut add = |name: &str, body: &[Instruction], leaves: &[Kind]| {
            let unit = Unit::new(format!("{name}{}", suffix(kind)), body).in_a_loop();
            let unit = unit.with([(0, Value::Object), (1, Value::Object)]);
            units.push(unit.leaving(leaves));
        };
        add("getstatic", &[access(178)], &[kind]);
        add("putstatic", &[kind.one(), access(179)], &[]);
        add("getfield", &[OBJECT, access(180)], &[kind]);
        add("putfield", &[OBJECT, kind.one(), access(181)], &[]);
        // HotSpot executes both as one instruction.
        add("getfield of this", &[this, access(180)], &[kind]);
    }
    units
}

const fn suffix(kind: Kind) -> &'static str {
    match kind.words() {
        2 => "_long",
        _ if kind.index() == Kind::Reference.index() => "_ref",
        _ => "",
    }
}

fn calls() -> Vec<Unit> {
    let mut units = Vec::new();
    for (call, returned) in METHODS {
        let mut body = Vec::new();
        if call != Call::Static {
            body.push(OBJECT);
        }
        body.push(Instruction::Call(call, returned));
        let opcode = match call {
            Call::Static => "invokestatic",
            Call::Virtual => "invokevirtual",
            Call::Interface | Call::Constructor => "invokeinterface",
        };
        // Each instruction that returns a value is the last one of a static method.
        let name = match (call, returned) {
            (_, None) => opcode.to_owned(),
            (Call::Static, Some(kind)) => kind.return_opcode().name().to_owned(),
            (_, Some(_)) => format!("{opcode} and ireturn"),
        };
        let unit = Unit::new(name, body).in_a_loop();
        let leaves = returned.map_or_else(Vec::new, |kind| vec![kind]);
        units.push(unit.with([(1, Value::Object)]).leaving(leaves));
    }
    let body = [
        Instruction::Class(Opcode(187), FIXTURE),
        Instruction::Call(Call::Constructor, None),
    ];
    units.push(Unit::new("invokespecial", body).in_a_loop());
    units
}

fn others() -> Result<Vec<Unit>, Error> {
    let reference = [Kind::Reference];
    let elements = Instruction::Byte(Opcode::named("bipush")?, ELEMENTS);
    let class = |name, class| Ok::<_, Error>(Instruction::Class(Opcode::named(name)?, class));
    let two = Instruction::Plain(Opcode::named("iconst_2")?);
    let arrays = Instruction::MultiArray(Opcode::named("multianewarray")?);
    let with_object = |name, body: &[Instruction]| {
        let mut all = vec![OBJECT];
        all.extend(body);
        Unit::new(name, all).in_a_loop().with([(1, Value::Object)])
    };
    let plain = |name| super::catalogue::plain(name);
    let integers = Instruction::Byte(Opcode::named("newarray")?, 10);
    let mut monitor = vec![plain("monitorenter")?, OBJECT];
    monitor.extend(plains(["monitorexit"])?);
    Ok(vec![
        Unit::new("new", [class("new", FIXTURE)?])
            .in_a_loop()
            .leaving(reference),
        Unit::new("newarray", [elements, integers])
            .in_a_loop()
            .leaving(reference),
        Unit::new("anewarray", [elements, class("anewarray", FIXTURE)?])
            .in_a_loop()
            .leaving(reference),
        Unit::new("multianewarray", [two, two, arrays])
            .in_a_loop()
            .leaving(reference),
        Unit::new("arraylength", [OBJECT, plain("arraylength")?])
            .with([(1, Value::Array(10))])
            .leaving([Kind::Int]),
        with_object("checkcast", &[class("checkcast", FIXTURE)?]).leaving(reference),
        with_object("instanceof", &[class("instanceof", FIXTURE)?]).leaving([Kind::Int]),
        with_object("monitorenter", &monitor),
    ])
}
