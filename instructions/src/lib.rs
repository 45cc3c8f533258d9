//! Decodes what an instruction does to registers and memory, and where execution continues, on any machine.
//!
//! The decoders distinguish what shows the offsets of structures, the frames of functions and the state of an interpreter's registers: loads,
//! stores, moves, sums, tests of bits, calls and jumps. For every other instruction they report the registers that it overwrites. They do not
//! print instructions; `varid-report` does.
//!
//! | question | file |
//! |---|---|
//! | what does an instruction do | `instruction` |
//! | which machines have a decoder, and which registers do their functions use | `decoder` |
//! | how is an instruction of this machine decoded | `aarch64`, `arm`, `x86` |
//! | how are bits of a word taken | `bits` |
//!
//! ```
//! use varid_instructions::{Decoder, Effect, Flow, Register};
//! use varid_model::Machine;
//!
//! let decoder = Decoder::of(Machine::Aarch64).unwrap();
//! // sub sp, sp, #64
//! let instruction = decoder.decode(&0xd101_03ff_u32.to_le_bytes(), 0x1000).unwrap();
//! let sp = decoder.stack_pointer();
//! assert_eq!(instruction.effects, [Effect::Move { to: sp, from: sp, add: -64 }]);
//! assert_eq!((instruction.size, instruction.flow), (4, Flow::Next));
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod aarch64;
mod arm;
mod bits;
mod decoder;
mod instruction;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use decoder::Decoder;
pub use instruction::{
    Base, Effect, Flow, Instruction, OPERAND, Place, REGISTERS, Register, Source,
};
