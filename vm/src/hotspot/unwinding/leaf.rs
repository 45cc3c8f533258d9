//! How far is the frame of an interrupted instruction of compiled code made?
//!
//! Compiled code on x86-64 is entered with the return address at the stack pointer, pushes the caller's frame pointer, and subtracts the rest
//! of the frame's size from the stack pointer. It leaves by the reverse. Between these instructions the frame has another size.

use super::aarch64;
use super::code::{FP, SP, instruction, instructions};
use super::state::{FrameState, Prologue};
use varid_instructions::{Base, Effect, Flow, OPERAND, Register};
use varid_model::Machine;

/// r15, which has the thread.
const THREAD: Register = Register(15);
/// The sizes of a poll in bytes.
const POLL_SIZES: [usize; 2] = [4, 7];

impl Prologue<'_> {
    /// Returns what of the frame there is before the instruction at `at` is executed.
    pub(in super::super) fn state(self, machine: Machine, at: usize) -> FrameState {
        if machine == Machine::Aarch64 {
            return aarch64::state(self, at);
        }
        if at < self.entry {
            return FrameState::Called;
        }
        if at < self.complete {
            return self.in_prologue(at);
        }
        self.in_epilogue(at)
    }

    fn in_prologue(self, at: usize) -> FrameState {
        let Some(executed) = self.code.get(self.entry..at) else {
            return FrameState::Complete;
        };
        let (mut is_pushed, mut is_made) = (false, false);
        for (_, instruction) in instructions(executed) {
            is_pushed |= instruction.pushed(SP) == Some(FP);
            is_made |= matches!(
                *instruction.effects,
                [Effect::Move {
                    to: SP,
                    from: SP,
                    add: ..0
                }]
            );
        }
        match (is_pushed, is_made) {
            (false, false) => FrameState::Called,
            (true, false) => FrameState::Pushed,
            (false, true) => FrameState::Unsaved,
            (true, true) => FrameState::Complete,
        }
    }

    fn in_epilogue(self, at: usize) -> FrameState {
        let Some(instruction) = instruction(self.code, at) else {
            return FrameState::Complete;
        };
        let is_after_poll = || {
            let mut before = POLL_SIZES.iter().filter_map(|size| at.checked_sub(*size));
            before.any(|before| self.polls(before, Some(at)))
        };
        match instruction.flow {
            _ if instruction.popped(SP) == Some(FP) => FrameState::Pushed,
            Flow::Return => FrameState::Called,
            Flow::Branch(_) if is_after_poll() => FrameState::Called,
            _ if self.polls(at, None) => FrameState::Called,
            _ => FrameState::Complete,
        }
    }

    /// Returns true if the instruction at an offset compares the stack pointer with a word of the thread: whether the thread is to stop
    /// before it returns. `end`: where the instruction must end.
    fn polls(self, at: usize, end: Option<usize>) -> bool {
        let Some(instruction) = instruction(self.code, at) else {
            return false;
        };
        let next = at.saturating_add(instruction.size.into());
        let compares = matches!(
            *instruction.effects,
            [
                Effect::Load { to: Some(OPERAND), from, .. },
                Effect::Subtract { to: OPERAND, left: SP, right: OPERAND },
            ] if from.base == Base::Register(THREAD)
        );
        compares && end.is_none_or(|end| end == next)
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::FrameState::{Called, Complete, Pushed, Unsaved};
    use super::*;

    /// Each instruction of a method, and the state before it.
    fn check(entry: usize, complete: usize, instructions: &[(&[u8], FrameState)]) {
        let code: Vec<u8> = instructions
            .iter()
            .flat_map(|(bytes, _)| bytes.to_vec())
            .collect();
        let offset = |number: usize| {
            let before = instructions.iter().take(number);
            before.map(|(bytes, _)| bytes.len()).sum()
        };
        let prologue = Prologue {
            code: &code,
            entry: offset(entry),
            complete: offset(complete),
        };
        for (number, (bytes, expected)) in instructions.iter().enumerate() {
            assert_eq!(
                prologue.state(Machine::X86_64, offset(number)),
                *expected,
                "{number}: {bytes:x?}"
            );
        }
    }

    #[test]
    fn frames_are_made_and_left_step_by_step() {
        check(
            2,
            5,
            &[
                (&[0x44, 0x8b, 0x56, 0x08], Called), // mov 8(%rsi),%r10d
                (&[0x0f, 0x85, 0, 0, 0, 0], Called), // jne
                (&[0x89, 0x84, 0x24, 0, 0xc0, 0xfe, 0xff], Called), // mov %eax,-0x14000(%rsp)
                (&[0x55], Called),                   // push %rbp
                (&[0x48, 0x83, 0xec, 0x20], Pushed), // sub $0x20,%rsp
                (&[0x90], Complete),
                (&[0x49, 0x3b, 0x47, 0x70], Complete), // cmp 0x70(%r15),%rax
                (&[0x0f, 0x87, 0, 0, 0, 0], Complete), // ja
                (&[0x48, 0x83, 0xc4, 0x20], Complete), // add $0x20,%rsp
                (&[0x5d], Pushed),                     // pop %rbp
                (&[0x49, 0x3b, 0xa7, 0x38, 3, 0, 0], Called), // cmp 0x338(%r15),%rsp
                (&[0x0f, 0x87, 0, 0, 0, 0], Called),   // ja
                (&[0xc3], Called),                     // ret
            ],
        );
    }

    #[test]
    fn without_a_check_of_the_stack_the_frame_pointer_is_saved_last() {
        check(
            0,
            2,
            &[
                (&[0x48, 0x81, 0xec, 0, 1, 0, 0], Called), // sub $0x100,%rsp
                (&[0x48, 0x89, 0xac, 0x24, 0xf0, 0, 0, 0], Unsaved), // mov %rbp,0xf0(%rsp)
                (&[0x90], Complete),
            ],
        );
    }

    #[test]
    fn a_frame_of_two_words_is_a_push() {
        check(0, 1, &[(&[0x55], Called), (&[0x90], Complete)]);
        // Outside of its code nothing is known.
        let nothing = Prologue {
            code: &[],
            entry: 0,
            complete: 8,
        };
        assert_eq!(nothing.state(Machine::X86_64, 4), Complete);
        assert_eq!(nothing.state(Machine::X86_64, usize::MAX), Complete);
    }
}
