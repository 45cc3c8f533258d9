//! Executes a program for RISC-V as code of this machine, with the counts and the cycles of the interpreter.
//!
//! The interpreter of `varid-machine` begins. A function that is executed often is translated: its blocks by calling context, each with
//! counters for the ways that it is left by. Where what comes next is unknown, or seldom (a system call, a fault, an access that is not
//! aligned, a division by zero, code that is written), translated code is left *before* the instruction, and the interpreter goes on there. So
//! there is one implementation of all that is rare.
//!
//! What a block takes is computed once, by issuing it to a pipeline whose caches have everything, and multiplied by the counters when somebody
//! asks. Translated code compares the lines of the caches, too. A block for which one is missing is issued to the pipeline once more, with the
//! addresses that it has accessed, before the next one begins: that is the only thing that translated code calls. Processors with a history of
//! another kind ([`History::Other`]) are interpreted.
//!
//! | question | file |
//! |---|---|
//! | which parts of a program are translated, and when | `engine` |
//! | what is translated of a function, and what does it take | `plan`, `planner` |
//! | which ways out of its blocks are counted | `flow` |
//! | which counters are in registers of the host, and where | `held`, `loops` |
//! | how is that code of this machine | `emit` |
//! | what happens if a cache misses | `emit::caches`, `engine::events` |
//! | which accesses of memory does it do itself | `memory` |
//! | what do this crate and translated code both know | `state` |
//! | what was counted | `settle` |
//! | where is the unsafe code | `code` |
#![deny(unsafe_code)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod code;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod emit;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod engine;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod flow;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod function;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod held;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod loops;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod memory;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod plan;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod planner;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod settle;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod state;

use varid_machine::{Interpreter, Stop, Timing};
use varid_processor::History;

/// How many blocks of a function are interpreted before it is translated. That takes as long as some thousand executions of its blocks, so a
/// program that is short is interpreted.
const HOT: u32 = 1 << 12;

/// Executes a program until it stops, and translates what is executed often if the processor permits it. All counts and cycles are in the
/// interpreter and in the timing afterwards, as if [`Interpreter::run`] had executed it.
pub fn run(interpreter: &mut Interpreter, timing: &mut Timing<'_>) -> Stop {
    run_after(HOT, interpreter, timing)
}

/// The same, with a function translated after so many of its blocks have been interpreted.
pub fn run_after(blocks: u32, interpreter: &mut Interpreter, timing: &mut Timing<'_>) -> Stop {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    if timing.processor().history() != History::Other
        && let Some(mut engine) = engine::Engine::new(interpreter, timing, blocks)
    {
        return engine.run();
    }
    let _ = blocks;
    interpreter.run(timing)
}
