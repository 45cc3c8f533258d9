//! How far is the frame of a method made that the interpreter is entering?
//!
//! The interpreter is entered with the return address at the stack pointer, the method in rbx and the caller's stack pointer in r13. It pops the
//! return address into rax, pushes zeros for local variables, pushes the address again, and makes the fixed part of the frame.

use super::code::{FP, SP, instructions};
use varid_instructions::{Effect, Flow, Register};

/// What of an interpreter frame there is while its method is being entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum EntryState {
    /// The return address is at the stack pointer.
    Called,
    /// The return address is in rax.
    Popped,
    /// The caller's frame pointer is at the stack pointer, and still in its register; the return address is behind it.
    Saved,
    /// The frame pointer leads to the caller. The words below it may be missing.
    Linked,
}

impl EntryState {
    /// Returns what there is before the instruction at `at` is executed. `code`: the entry's instructions.
    pub(in super::super) fn at(code: &[u8], at: usize) -> Self {
        let mut state = Self::Called;
        for (_, instruction) in instructions(code.get(..at).unwrap_or(code)) {
            state = match (instruction.effects.as_slice(), instruction.flow) {
                (
                    [
                        Effect::Move {
                            to: FP,
                            from: SP,
                            add: 0,
                        },
                    ],
                    _,
                ) => return Self::Linked,
                _ if instruction.popped(SP) == Some(RETURN_ADDRESS) => Self::Popped,
                _ if instruction.pushed(SP) == Some(RETURN_ADDRESS) => Self::Called,
                _ if instruction.pushed(SP) == Some(FP) => Self::Saved,
                // What follows is entered by a jump from code before it.
                (_, Flow::Jump(_) | Flow::JumpIndirect | Flow::Return) => Self::Called,
                _ => state,
            };
        }
        state
    }
}

/// rax, which has the return address until it is pushed again.
const RETURN_ADDRESS: Register = Register(0);

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn the_return_address_is_popped_and_pushed_again() {
        let code = [
            &[0x90][..],
            &[0x58],                         // pop %rax
            &[0x4c, 0x8d, 0x74, 0xcc, 0xf8], // lea -8(%rsp,%rcx,8),%r14
            &[0x50],                         // push %rax
            &[0x55],                         // push %rbp
            &[0x48, 0x8b, 0xec],             // mov %rsp,%rbp
            &[0x41, 0x55],                   // push %r13
        ]
        .concat();
        let states = [
            (0, EntryState::Called),
            (1, EntryState::Called),
            (2, EntryState::Popped),
            (7, EntryState::Popped),
            (8, EntryState::Called),
            (9, EntryState::Saved),
            (12, EntryState::Linked),
            (14, EntryState::Linked),
        ];
        for (at, expected) in states {
            assert_eq!(EntryState::at(&code, at), expected, "{at}");
        }
        // Another way out, which returns before the frame is made.
        let code = [0x58, 0xff, 0xe0, 0x90]; // pop %rax; jmp *%rax; nop
        let states = [0, 1, 3].map(|at| EntryState::at(&code, at));
        assert_eq!(
            states,
            [EntryState::Called, EntryState::Popped, EntryState::Called]
        );
        // Intrinsic methods make no frame.
        assert_eq!(EntryState::at(&[0x90; 16], 8), EntryState::Called);
        assert_eq!(EntryState::at(&[], 8), EntryState::Called);
    }
}
