//! How many words does an instruction pop from the operand stack, and push onto it?

use crate::class::{Constants, Instruction, argument_words, opcode};

/// The words that an instruction pops and pushes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) pops: u16,
    pub(crate) pushes: u16,
}

/// Returns what an instruction does to the operand stack: section 6.5. Instructions that only move words (`dup`, `swap`, `pop`, loads and stores of
/// references) are among them, with the number of words.
pub(crate) fn effect(instruction: &Instruction<'_>, constants: &Constants<'_>) -> Effect {
    let (pops, pushes) = match instruction.operation() {
        // Constants and loads of one word.
        1..=8 | 11..=13 | 16..=19 | 21 | 23 | 25..=29 | 34..=37 | 42..=45 => (0, 1),
        // Of two words.
        9 | 10 | 14 | 15 | 20 | 22 | 24 | 30..=33 | 38..=41 => (0, 2),
        // Loads from arrays.
        46 | 48 | 50..=53 => (2, 1),
        47 | 49 => (2, 2),
        // Stores.
        54 | 56 | 58..=62 | 67..=70 | 75..=78 => (1, 0),
        55 | 57 | 63..=66 | 71..=74 => (2, 0),
        79 | 81 | 83..=86 => (3, 0),
        80 | 82 => (4, 0),
        // pop, pop2, dup, dup_x1, dup_x2, dup2, dup2_x1, dup2_x2, swap
        87 => (1, 0),
        88 => (2, 0),
        89 => (1, 2),
        90 => (2, 3),
        91 => (3, 4),
        92 => (2, 4),
        93 => (3, 5),
        94 => (4, 6),
        95 => (2, 2),
        // Arithmetic of int, long, float, double in turn.
        96..=115 if instruction.operation().is_multiple_of(2) => (2, 1),
        96..=115 => (4, 2),
        120 | 122 | 124 | 126 | 128 | 130 => (2, 1),
        121 | 123 | 125 => (3, 2),
        127 | 129 | 131 => (4, 2),
        // Conversions.
        133 | 135 | 140 | 141 => (1, 2),
        136 | 137 | 142 | 144 => (2, 1),
        // Comparisons.
        148 | 151 | 152 => (4, 1),
        149 | 150 => (2, 1),
        // Branches.
        153..=158 | 170 | 171 | 198 | 199 => (1, 0),
        159..=166 => (2, 0),
        opcode::JSR | opcode::JSR_W | opcode::NEW => (0, 1),
        opcode::GETSTATIC => (0, field_words(instruction, constants)),
        opcode::PUTSTATIC => (field_words(instruction, constants), 0),
        opcode::GETFIELD => (1, field_words(instruction, constants)),
        opcode::PUTFIELD => (field_words(instruction, constants).saturating_add(1), 0),
        opcode::INVOKEVIRTUAL..=opcode::INVOKEDYNAMIC => call_words(instruction, constants),
        188..=190 | 192 | 193 => (1, 1),
        194 | 195 => (1, 0),
        opcode::MULTIANEWARRAY => {
            let dimensions = instruction.bytes.last().copied().unwrap_or(0);
            (u16::from(dimensions), 1)
        }
        // The others change no word, or the next instruction does not follow.
        _ => (0, 0),
    };
    Effect { pops, pushes }
}

/// The words of a value of this type.
fn words(descriptor: &[u8]) -> u16 {
    match descriptor.first() {
        Some(b'J' | b'D') => 2,
        Some(b'V') | None => 0,
        Some(_) => 1,
    }
}

fn field_words(instruction: &Instruction<'_>, constants: &Constants<'_>) -> u16 {
    let descriptor = constants.member_descriptor(instruction.operand());
    descriptor.map_or(0, words)
}

fn call_words(instruction: &Instruction<'_>, constants: &Constants<'_>) -> (u16, u16) {
    let descriptor = constants.member_descriptor(instruction.operand());
    let descriptor = descriptor.unwrap_or_default();
    let receiver = match instruction.opcode {
        opcode::INVOKESTATIC | opcode::INVOKEDYNAMIC => 0,
        _ => 1,
    };
    let pops = argument_words(descriptor)
        .unwrap_or(0)
        .saturating_add(receiver);
    let end = descriptor.iter().rposition(|byte| *byte == b')');
    let returned = end.and_then(|end| descriptor.get(end.saturating_add(1)..));
    (pops, returned.map_or(0, words))
}
