//! How far is the frame of an interrupted instruction of compiled code made?
//!
//! ```text
//! sub sp, sp, #32               or  stp x29, x30, [sp, #-16]!
//! stp x29, x30, [sp, #16]           sub sp, sp, #1024
//! ...
//! ldp x29, x30, [sp, #16]           add sp, sp, #1024
//! add sp, sp, #32                   ldp x29, x30, [sp], #16
//! ldr x8, [x28, #1128]              (the poll)
//! cmp sp, x8
//! b.hi
//! ret
//! ```

use super::instruction::{Instruction, SIZE, SP};
use super::{is_freed, is_left, restores_link};
use crate::hotspot::unwinding::state::{FrameState, Prologue};

/// Bytes in which a frame is complete where the VM does not say it.
const MAX_UNKNOWN: usize = 4 * SIZE;
/// The most bytes that code pushes for a call, and pops behind it: two registers.
const PUSHED: i64 = 16;

/// Returns what of the frame there is before the instruction at `at` is executed.
pub(in super::super) fn state(prologue: Prologue<'_>, at: usize) -> FrameState {
    let complete = match prologue.complete {
        0 => MAX_UNKNOWN,
        complete => complete,
    };
    match at {
        _ if at < prologue.entry => FrameState::Called,
        _ if at < complete => in_prologue(prologue, at),
        _ => in_epilogue(prologue.code, at),
    }
}

fn in_prologue(prologue: Prologue<'_>, at: usize) -> FrameState {
    let mut state = FrameState::Called;
    for place in (prologue.entry..at).step_by(SIZE) {
        let Some(instruction) = Instruction::at(prologue.code, place) else {
            break;
        };
        state = match (state, instruction) {
            (FrameState::Called, Instruction::Access(access))
                if access.saves_link() && access.moved < 0 =>
            {
                FrameState::Pushed
            }
            (
                FrameState::Called,
                Instruction::Add {
                    to: SP, from: SP, ..
                },
            ) => FrameState::Unsaved,
            (FrameState::Unsaved, Instruction::Access(access)) if access.saves_link() => {
                FrameState::Complete
            }
            // The size of a large frame is in a register.
            (FrameState::Pushed, Instruction::Add { to: SP, .. } | Instruction::SetSp) => {
                FrameState::Complete
            }
            (state, _) => state,
        };
    }
    state
}

fn in_epilogue(code: &[u8], at: usize) -> FrameState {
    match Instruction::at(code, at) {
        Some(Instruction::Access(access)) if access.restores_link() && access.moved > 0 => {
            FrameState::Pushed
        }
        Some(Instruction::Add { to, from, constant })
            if is_freed(to, from, constant) && restores_link(code, at) =>
        {
            FrameState::Unsaved
        }
        _ if is_left(code, at) => FrameState::Called,
        _ => FrameState::Complete,
    }
}

/// Returns how many words code has pushed below its frame for the call that returns to `at`, and pops there.
pub(in crate::hotspot) fn pushed_by_call(code: &[u8], at: usize) -> u32 {
    let call = at
        .checked_sub(SIZE)
        .and_then(|call| Instruction::at(code, call));
    let pops = match Instruction::at(code, at) {
        Some(Instruction::Access(access)) => {
            access.is_load && access.moved == PUSHED && !access.restores_link()
        }
        Some(Instruction::Add {
            to: SP,
            from: SP,
            constant,
        }) => constant == PUSHED,
        _ => false,
    };
    match call {
        Some(Instruction::CallRegister(_)) if pops => 2,
        _ => 0,
    }
}
