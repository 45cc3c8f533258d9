//! Finds the bytecode instruction that a handler executes, where the pc register may already hold the next one.
//!
//! The handler's address gives the opcode; its code shows whether the pc register has already advanced. Then the instruction is the one of
//! that opcode that can lead to the register's value.

use super::handlers::PcRegister;
use varid_process::{AddressSpace, ProcessImage};

/// Returns the address of the instruction that the handler of `opcode` executes. `pc` is the value of the register. It is returned
/// unchanged if the instruction is ambiguous, because two instructions of this opcode may lead there.
pub(crate) fn executed(space: &AddressSpace, pc: u64, opcode: u8, state: PcRegister) -> u64 {
    if state == PcRegister::Current {
        return pc;
    }
    before(space, pc, opcode, state).unwrap_or(pc)
}

/// Returns the only instruction of this opcode that leads to the one at `pc`.
fn before(space: &AddressSpace, pc: u64, opcode: u8, state: PcRegister) -> Option<u64> {
    let mapped = space.at(pc)?;
    let ProcessImage::Code(dex) = &mapped.image else {
        return None;
    };
    let in_file = pc.checked_sub(mapped.start)?.checked_add(mapped.pgoff)?;
    let offset = u32::try_from(in_file).ok()?;
    let here = *dex.bytecode.bytes().get(usize::try_from(in_file).ok()?)?;
    if state == PcRegister::Unknown && here == opcode {
        return None;
    }
    let only = dex.bytecode.instruction_before(offset, opcode)?;
    Some(
        pc.wrapping_sub(u64::from(offset))
            .wrapping_add(u64::from(only)),
    )
}
