//! Which instructions make a block an event of the call order?

use crate::class::{Constants, Instruction, opcode};

/// The opcodes that small Java processors, JOP above all, execute by a subroutine, which takes part in their method caches. What the order of
/// all other instructions is makes no difference to them.
const BY_SUBROUTINE: [(u8, u8); 16] = [
    // fconst_1, fconst_2; dconst_1: they have no stack of floats.
    (12, 13),
    (15, 15),
    (opcode::AASTORE, opcode::AASTORE),
    // Arithmetic: of float and double, division and remainder, long multiplication.
    (98, 99),
    (102, 103),
    (105, 115),
    (118, 119),
    // Shifts of long, each in one of two forms: by a loop.
    (121, 121),
    (123, 123),
    (125, 125),
    // Conversions other than i2l, l2i and i2c.
    (134, 135),
    (137, 145),
    // i2s, and comparisons of long, float and double.
    (147, 152),
    (opcode::TABLESWITCH, opcode::LOOKUPSWITCH),
    // Allocation.
    (opcode::NEW, opcode::ANEWARRAY),
    // athrow, checkcast, instanceof, monitorenter, monitorexit.
    (opcode::ATHROW, opcode::MONITOREXIT),
];

/// Returns true if each execution of a block with this instruction is an event.
pub(crate) fn is_ordered(instruction: &Instruction<'_>, constants: &Constants<'_>) -> bool {
    match instruction.opcode {
        opcode::MULTIANEWARRAY => true,
        // References are stored by a subroutine for the collector.
        opcode::PUTSTATIC | opcode::PUTFIELD => {
            let descriptor = constants.field_descriptor(instruction.operand());
            descriptor.is_some_and(|it| it.starts_with(b"L") || it.starts_with(b"["))
        }
        opcode => BY_SUBROUTINE
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&opcode)),
    }
}
