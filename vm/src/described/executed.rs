//! Which bytecode is a handler executing, when the pc's register may already be at the next?
//!
//! Whose handler it is tells the opcode, and where in the handler the register has been moved on is known from
//! its code. Then the instruction is the one of that opcode which may lead to where the register is.

use super::handlers::Moved;
use varid_process::{AddressSpace, ProcessImage};

/// The address of the instruction that the handler of `opcode` executes; `pc` is what the register holds, and is returned unchanged
/// if the instruction is ambiguous: two instructions of this opcode may lead there.
pub(crate) fn executed(space: &AddressSpace, pc: u64, opcode: u8, moved: Moved) -> u64 {
    if moved == Moved::No {
        return pc;
    }
    before(space, pc, opcode, moved).unwrap_or(pc)
}

/// The only instruction of this opcode that leads to the one at `pc`.
fn before(space: &AddressSpace, pc: u64, opcode: u8, moved: Moved) -> Option<u64> {
    let mapped = space.at(pc)?;
    let ProcessImage::Code(dex) = &mapped.image else {
        return None;
    };
    let in_file = pc.checked_sub(mapped.start)?.checked_add(mapped.pgoff)?;
    let offset = u32::try_from(in_file).ok()?;
    let here = *dex.bytecode.bytes().get(usize::try_from(in_file).ok()?)?;
    if moved == Moved::Unknown && here == opcode {
        return None;
    }
    let only = dex.bytecode.instruction_before(offset, opcode)?;
    Some(
        pc.wrapping_sub(u64::from(offset))
            .wrapping_add(u64::from(only)),
    )
}
