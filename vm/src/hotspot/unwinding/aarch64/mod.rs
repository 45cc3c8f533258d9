//! How far are frames made on AArch64?
//!
//! A call leaves its return address in the link register. Code that calls saves it beside the caller's frame pointer, as the last two words
//! of its frame, before its own calls. Until then, and after it has loaded both again, samples of it have the return address in that register.
//!
//! Sources: `MacroAssembler::build_frame`, `remove_frame`, `enter` and `leave` in macroAssembler_aarch64.cpp, `remove_activation` in
//! interp_masm_aarch64.cpp, `generate_fixed_frame` in templateInterpreterGenerator_aarch64.cpp, `gen_c2i_adapter` in
//! sharedRuntime_aarch64.cpp, and stubGenerator_aarch64.cpp of JDK 17.

mod entry;
mod instruction;
mod leaf;
mod routine;

pub(super) use entry::partial_frame;
use instruction::{Instruction, SIZE, SP};
pub(in crate::hotspot) use leaf::pushed_by_call;
pub(super) use leaf::state;
pub(super) use routine::{
    called, is_before_frame, is_in_entry, is_linked, leaf_frame, pushed_in_adapter,
};
use varid_instructions::Register;

/// The most instructions between the end of a frame and the return: a poll, and a check of the stack.
const MAX_LEAVING: usize = 16;

/// Returns true if a frame has been left before the instruction at `at`: frame pointer and link register are those that the caller has to get.
fn is_left(code: &[u8], at: usize) -> bool {
    let mut before = at;
    for _ in 0..MAX_LEAVING {
        let Some(place) = before.checked_sub(SIZE) else {
            return false;
        };
        before = place;
        match Instruction::at(code, before) {
            Some(Instruction::Access(access)) if access.restores_link() => return access.moved > 0,
            Some(Instruction::Add { to, from, constant }) if is_freed(to, from, constant) => {
                return restores_link(code, before);
            }
            Some(instruction) if instruction.leaves() => return false,
            None => return false,
            Some(_) => {}
        }
    }
    false
}

/// Returns true if an instruction adds to the stack pointer.
fn is_freed(to: Register, from: Register, constant: i64) -> bool {
    (to, from) == (SP, SP) && constant > 0
}

/// Returns true if the instruction before the one at `at` loads the caller's frame pointer and the return address.
fn restores_link(code: &[u8], at: usize) -> bool {
    let before = at
        .checked_sub(SIZE)
        .and_then(|before| Instruction::at(code, before));
    matches!(before, Some(Instruction::Access(access)) if access.restores_link())
}

#[cfg(test)]
mod tests;
