//! The instructions of HotSpot's code, which is of x86-64.

use varid_instructions::{Decoder, Instruction, Register};
use varid_model::Machine;

/// The stack pointer.
pub(super) const SP: Register = Register(7);
/// The frame pointer.
pub(super) const FP: Register = Register(6);

/// Returns the instruction at an offset of some code, as if the code began at address 0. None if there is none.
pub(super) fn instruction(code: &[u8], at: usize) -> Option<Instruction> {
    Decoder::of(Machine::X86_64)?.decode(code.get(at..)?, at as u64)
}

/// Returns the instructions of some code, with their offsets, as if the code began at address 0.
pub(super) fn instructions(code: &[u8]) -> impl Iterator<Item = (usize, Instruction)> {
    let decoder = Decoder::of(Machine::X86_64);
    decoder
        .into_iter()
        .flat_map(move |decoder| decoder.sweep(code, 0))
}
