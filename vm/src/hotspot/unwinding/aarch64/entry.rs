//! How far is the frame of the interpreter made or left?
//!
//! The interpreter is entered with the return address in the link register, the method in x12, and the sender's stack pointer in a register
//! that depends on the version. It moves the stack pointer twice, and then stores the fixed part of the frame:
//!
//! ```text
//! stp x20, x22, [sp, #-96]!
//! stp x8, x12, [sp, #48]
//! stp x29, x30, [sp, #80]
//! add x29, sp, #80
//! stp xzr, x13, [sp, #64]       x19 from JDK 21 on
//! ```
//!
//! It leaves by `ldr x9, [x29, #-8]; mov x20, x9; mov sp, x29; ldp x29, x30, [sp], #16`, and sets the stack pointer to x20 then.

use super::instruction::{FP, Instruction, SIZE, SP};
use super::is_left;
use crate::hotspot::unwinding::state::{PartialFrame, PartialState};

/// The word of the fixed part with the sender's stack pointer: the second one of a pair at this offset.
const SENDER: i64 = 64;
/// The register with the expression stack's top, which has the sender's stack pointer when a frame is left.
const EXPRESSIONS: u16 = 20;

/// Returns what of its frame there is before the instruction at `at` of a part of the interpreter is executed. None: all of it.
/// `enters`: the part enters methods.
pub(in super::super) fn partial_frame(
    code: &[u8],
    at: usize,
    enters: bool,
) -> Option<PartialFrame> {
    if is_left(code, at) {
        return Some(PartialFrame {
            state: PartialState::Left,
            sender_sp: EXPRESSIONS,
        });
    }
    let state = enters.then(|| entered(code, at)).flatten()?;
    let sender_sp = sender_sp(code).unwrap_or(SP.0.into());
    Some(PartialFrame { state, sender_sp })
}

fn entered(code: &[u8], at: usize) -> Option<PartialState> {
    let mut state = PartialState::Called;
    for place in (0..at).step_by(SIZE) {
        match Instruction::at(code, place)? {
            Instruction::Add {
                to: FP, from: SP, ..
            } => state = PartialState::Linked,
            Instruction::Access(access) if access.restores_link() => state = PartialState::Called,
            // The last word.
            instruction if stored_sender(instruction).is_some() => return None,
            _ => {}
        }
    }
    Some(state)
}

/// Returns the register with the sender's stack pointer. None if no frame is made: it is in the stack pointer then.
fn sender_sp(code: &[u8]) -> Option<u16> {
    let mut places = (0..code.len()).step_by(SIZE);
    places.find_map(|place| stored_sender(Instruction::at(code, place)?))
}

fn stored_sender(instruction: Instruction) -> Option<u16> {
    match instruction {
        Instruction::Access(access) if !access.is_load && access.offset == SENDER => {
            let (zero, sender) = access.pair?;
            (zero == SP).then(|| sender.0.into())
        }
        _ => None,
    }
}
