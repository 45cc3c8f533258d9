//! In which part of a constructor is `this` not initialised?
//!
//! The verifier's type checker tells the two parts of a constructor apart: a handler that covers the part before `super()` has a frame with an
//! uninitialised `this`, one that covers the part after it may not have it, and the call itself cannot be covered by either.

use crate::class::{Constants, Instructions, opcode};
use crate::frames::Frames;

/// What is known of `this` when an instruction is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum This {
    /// It is initialised, or the method is not a constructor.
    Initialised,
    /// It is not initialised.
    Uninitialised,
    /// It is not, and this instruction calls the constructor that initialises it.
    Initialising,
}

/// Returns the state of `this` for each instruction of a constructor.
///
/// Between frames the state follows from the code: a call of `<init>` initialises the latest object of `new` that is not initialised, `this` if
/// there is none.
pub(crate) fn states(
    instructions: &Instructions<'_>,
    frames: &Frames,
    constants: &Constants<'_>,
) -> Vec<This> {
    let mut states = Vec::with_capacity(instructions.list.len());
    let mut initialised = false;
    let mut objects = 0_usize;
    for (instruction, index) in instructions.list.iter().zip(0..) {
        if let Some(frame) = frames.uninitialised(index) {
            initialised = !frame.this;
            objects = frame.objects;
        }
        let mut state = if initialised {
            This::Initialised
        } else {
            This::Uninitialised
        };
        match instruction.opcode {
            opcode::NEW => objects = objects.saturating_add(1),
            opcode::INVOKESPECIAL
                if constants.call_name(instruction.operand()) == Some(b"<init>") =>
            {
                if objects == 0 && !initialised {
                    state = This::Initialising;
                    initialised = true;
                }
                objects = objects.saturating_sub(1);
            }
            _ => {}
        }
        states.push(state);
    }
    states
}
