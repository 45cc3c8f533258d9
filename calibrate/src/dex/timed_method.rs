//! How is a timed method written?

use super::encode;
use super::fixture;
use super::instruction::Instruction;
use super::registers::{self, ITERATIONS, LONG_RESULT, START};
use super::unit::Unit;
use crate::clock::Clock;
use crate::repetition::Copies;
use varid_instrument::assemble::access;
use varid_instrument_dex::NotRewritten;
use varid_instrument_dex::assemble::{Class, Code, DexBuilder};

/// The descriptor of timed methods: the number of iterations, and the ticks that they took.
pub(super) const DESCRIPTOR: &str = "(I)J";

/// Adds a timed method to a class.
pub(super) fn add(
    class: &mut Class,
    dex: &mut DexBuilder,
    name: &str,
    unit: &Unit,
    copies: Copies,
    clock: Clock,
) -> Result<(), NotRewritten> {
    let mut code = Code::new(registers::COUNT, registers::OUTS);
    for instruction in registers::initialization() {
        instruction.write(dex, &mut code)?;
    }
    let clock = fixture::clock(clock, dex)?;
    let read_clock = |register, code: &mut Code| {
        code.indexed(&encode::arguments(0x71, &[]), clock);
        code.units(&encode::one(0x0b, register));
    };
    read_clock(START, &mut code);
    let top = code.label();
    if let Copies::Loop(_) = copies {
        code.place(top);
    }
    for _ in 0..copies.number() {
        for instruction in &unit.body {
            instruction.write(dex, &mut code)?;
        }
    }
    if let Copies::Loop(_) = copies {
        // add-int/lit8 and if-gtz.
        let less = Instruction::plain(encode::two_and_byte(0xd8, ITERATIONS, ITERATIONS, -1));
        less.write(dex, &mut code)?;
        code.branch(encode::first(0x3c, ITERATIONS), top);
    }
    read_clock(LONG_RESULT, &mut code);
    // sub-long and return-wide.
    code.units(&encode::three(0x9c, LONG_RESULT, LONG_RESULT, START));
    code.units(&encode::one(0x10, LONG_RESULT));
    let flags = access::PUBLIC | access::STATIC;
    class.method(flags, name, DESCRIPTOR, Some(code));
    Ok(())
}
