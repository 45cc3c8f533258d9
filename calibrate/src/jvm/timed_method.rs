//! How is a timed method written?

use super::fixture::{FIXTURE, write_clock};
use super::instruction::Instruction;
use super::opcode::{Kind, Opcode};
use super::unit::{Unit, Value};
use crate::clock::Clock;
use crate::repetition::Copies;
use crate::tally::Tally;
use varid_instrument::NotRewritten;
use varid_instrument::assemble::{
    ClassBuilder, CodeBuilder, Constant, Limits, Local, Member, access,
};
use varid_instrument::opcode::{ANEWARRAY, DUP, IFGT, INVOKESTATIC, LRETURN, LSUB, NEW, NEWARRAY};

/// The descriptor of timed methods: the number of iterations, and the ticks that they took.
pub(super) const DESCRIPTOR: &str = "(I)J";
/// The number of iterations that are left, and the time at the start: beyond the local variables of units.
const ITERATIONS: Local = Local(200);
const START: Local = Local(202);

/// The instructions of the loop itself, as it goes on.
fn loop_end() -> [Instruction; 2] {
    [
        Instruction::Local(Opcode(21), ITERATIONS.0),
        Instruction::If(Opcode(IFGT), crate::outcome::Outcome::Taken),
    ]
}

/// Counts what one iteration of a loop over copies of a unit executes.
pub(super) fn iteration_tally(unit: &Unit, copies: u16) -> Tally {
    let mut tally = Tally::default();
    for (instruction, _) in &unit.base {
        instruction.count(1, &mut tally);
    }
    for (instruction, _) in &unit.each {
        instruction.count(copies.into(), &mut tally);
    }
    for instruction in &unit.body {
        instruction.count(copies.into(), &mut tally);
    }
    for instruction in unit.cleanup(copies) {
        instruction.count(1, &mut tally);
    }
    tally.add(crate::tally::CostKey::new("iinc"), 1);
    for instruction in loop_end() {
        instruction.count(1, &mut tally);
    }
    tally
}

/// Adds a timed method to a class.
pub(super) fn add(
    class: &mut ClassBuilder,
    name: &str,
    unit: &Unit,
    copies: Copies,
    clock: Clock,
) -> Result<(), NotRewritten> {
    let member = Member {
        access: access::PUBLIC | access::STATIC,
        name,
        descriptor: DESCRIPTOR,
        annotation: None,
    };
    let highest = unit.body.iter().map(|instruction| match instruction {
        Instruction::Local(_, local) | Instruction::Increment(local) => *local,
        _ => 0,
    });
    let locals = highest.max().unwrap_or(0).max(START.0).saturating_add(2);
    let limits = Limits {
        stack: unit.stack(copies.number()),
        locals,
    };
    class.method(&member, limits, |code| {
        code.to.load_int(Local(0));
        code.to.store_int(ITERATIONS);
        for (local, value) in &unit.locals {
            store(*local, *value, code)?;
        }
        if let Copies::Once(copies) = copies {
            operands(unit, copies, code)?;
        }
        write_clock(clock, &mut code.to)?;
        code.to.store_long(START);
        match copies {
            Copies::Once(copies) => body(unit, copies, code)?,
            Copies::Loop(copies) => {
                let top = code.label();
                code.place(top);
                operands(unit, copies, code)?;
                body(unit, copies, code)?;
                for instruction in unit.cleanup(copies) {
                    instruction.write(code)?;
                }
                code.to.bytes(&[132, 200, 0xff]);
                code.to.load_int(ITERATIONS);
                code.branch(IFGT, top);
            }
        }
        write_clock(clock, &mut code.to)?;
        code.to.load_long(START);
        code.to.op(LSUB);
        code.to.op(LRETURN);
        Ok(())
    })
}

fn operands(unit: &Unit, copies: u16, code: &mut CodeBuilder<'_>) -> Result<(), NotRewritten> {
    for (instruction, _) in &unit.base {
        instruction.write(code)?;
    }
    for _ in 0..copies {
        for (instruction, _) in &unit.each {
            instruction.write(code)?;
        }
    }
    Ok(())
}

fn body(unit: &Unit, copies: u16, code: &mut CodeBuilder<'_>) -> Result<(), NotRewritten> {
    for _ in 0..copies {
        for instruction in &unit.body {
            instruction.write(code)?;
        }
    }
    Ok(())
}

/// Stores a new value in a local variable.
fn store(local: u16, value: Value, code: &mut CodeBuilder<'_>) -> Result<(), NotRewritten> {
    let to = &mut code.to;
    match value {
        Value::Int(value) => to.int(value)?,
        Value::Long(value) => to.long(value)?,
        Value::Float(value) => {
            let index = to.constant(Constant::Float(value))?;
            to.indexed(19, index);
        }
        Value::Double(value) => {
            let index = to.constant(Constant::Double(value))?;
            to.indexed(20, index);
        }
        Value::Object => {
            to.class(NEW, FIXTURE)?;
            to.op(DUP);
            to.call(INVOKESTATIC.saturating_sub(1), FIXTURE, "<init>", "()V")?;
        }
        Value::Array(element) => {
            to.int(8)?;
            to.bytes(&[NEWARRAY, element]);
        }
        Value::Objects => {
            to.int(8)?;
            to.class(ANEWARRAY, FIXTURE)?;
        }
    }
    let kind: Kind = value.kind();
    let opcode = Opcode(54_u8.saturating_add(kind.index()));
    Instruction::Local(opcode, local).write(code)
}
