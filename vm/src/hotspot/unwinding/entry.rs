//! How far is a frame of the interpreter made or left?
//!
//! On x86-64 the interpreter is entered with the return address at the stack pointer, the method in rbx and the caller's stack pointer in r13. It
//! pops the return address into rax, pushes zeros for local variables, pushes the address again, and makes the fixed part of the frame. It leaves a
//! method by `leave; pop %r13; mov %rbx,%rsp; jmp *%r13`: the caller's stack pointer is in rbx, its frame pointer where it belongs.

use super::aarch64;
use super::code::{FP, SP, instruction, instructions};
use super::state::{PartialFrame, PartialState};
use varid_instructions::{Effect, Flow, Register};
use varid_model::Machine;
use varid_unwind::NativeFrame;

/// An interrupted instruction of a part of the interpreter.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct InterruptedPart<'c> {
    /// The part's instructions.
    pub(in super::super) code: &'c [u8],
    /// The offset of the instruction in bytes.
    pub(in super::super) at: usize,
    /// The part enters methods.
    pub(in super::super) enters: bool,
    /// Bytes from the frame pointer to the last word of a complete frame.
    pub(in super::super) last_word: i32,
}

/// DWARF number of r13, which has the sender's stack pointer while a method is entered.
const SENDER_REGISTER: u16 = 13;
/// rbx, which has it while a method is left.
const LEFT_SENDER: Register = Register(3);
/// r13, into which the return address is popped then.
const LEFT_RETURN_ADDRESS: Register = Register(13);
/// The sizes in bytes of the instruction that pops it, and of the one that sets the stack pointer.
const LEAVING: [usize; 2] = [2, 3];
/// rax, which has the return address until it is pushed again.
const RETURN_ADDRESS: Register = Register(0);

impl PartialFrame {
    /// Returns what of its frame there is before an instruction is executed. None: all of it.
    pub(in super::super) fn of(part: InterruptedPart<'_>, frame: &NativeFrame) -> Option<Self> {
        if frame.regs.machine() == Machine::Aarch64 {
            return aarch64::partial_frame(part.code, part.at, part.enters);
        }
        if let Some(state) = left(part.code, part.at) {
            let sender_sp = LEFT_SENDER.0.into();
            return Some(Self { state, sender_sp });
        }
        let state = part.enters.then(|| entered(part.code, part.at))?;
        let is_complete = state == PartialState::Linked
            && frame
                .regs
                .fp()
                .is_some_and(|fp| frame.sp.get() <= fp.wrapping_add_signed(part.last_word.into()));
        (!is_complete).then_some(Self {
            state,
            sender_sp: SENDER_REGISTER,
        })
    }
}

/// Returns what there is before the instruction at `at` is executed. `code`: the entry's instructions.
fn entered(code: &[u8], at: usize) -> PartialState {
    let mut state = PartialState::Called;
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
            ) => return PartialState::Linked,
            _ if instruction.popped(SP) == Some(RETURN_ADDRESS) => PartialState::Popped,
            _ if instruction.pushed(SP) == Some(RETURN_ADDRESS) => PartialState::Called,
            _ if instruction.pushed(SP) == Some(FP) => PartialState::Saved,
            // What follows is entered by a jump from code before it.
            (_, Flow::Jump(_) | Flow::JumpIndirect | Flow::Return) => PartialState::Called,
            _ => state,
        };
    }
    state
}

/// Returns what there is before the instruction at `at` is executed, if that is behind `leave`.
fn left(code: &[u8], at: usize) -> Option<PartialState> {
    let [pop, mov] = LEAVING;
    let leaves = |start: usize| {
        let (moves, jumps) = (
            start.checked_add(pop)?,
            start.checked_add(pop)?.checked_add(mov)?,
        );
        let popped = instruction(code, start)?.popped(SP)?;
        let sets_sp = instruction(code, moves)?.effects.as_slice()
            == [Effect::Move {
                to: SP,
                from: LEFT_SENDER,
                add: 0,
            }];
        let jumps = instruction(code, jumps)?.flow == Flow::JumpIndirect;
        (popped == LEFT_RETURN_ADDRESS && sets_sp && jumps).then_some(())
    };
    if leaves(at).is_some() {
        return Some(PartialState::Left);
    }
    let mut popped = [pop, pop.saturating_add(mov)].into_iter();
    let is_popped = popped.any(|size| at.checked_sub(size).and_then(leaves).is_some());
    is_popped.then_some(PartialState::LeftPopped)
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn a_left_frame_has_its_return_address_on_the_stack_and_then_in_a_register() {
        let code = [
            &[0x48, 0x8b, 0x5d, 0xf8][..], // mov -8(%rbp),%rbx
            &[0xc9],                       // leave
            &[0x41, 0x5d],                 // pop %r13
            &[0x48, 0x8b, 0xe3],           // mov %rbx,%rsp
            &[0x41, 0xff, 0xe5],           // jmp *%r13
        ]
        .concat();
        let states = (0..code.len() + 2).filter_map(|at| Some((at, left(&code, at)?)));
        assert_eq!(
            states.collect::<Vec<_>>(),
            [
                (5, PartialState::Left),
                (7, PartialState::LeftPopped),
                (10, PartialState::LeftPopped)
            ]
        );
        assert_eq!(left(&code[..10], 5), None);
    }

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
            (0, PartialState::Called),
            (1, PartialState::Called),
            (2, PartialState::Popped),
            (7, PartialState::Popped),
            (8, PartialState::Called),
            (9, PartialState::Saved),
            (12, PartialState::Linked),
            (14, PartialState::Linked),
        ];
        for (at, expected) in states {
            assert_eq!(entered(&code, at), expected, "{at}");
        }
        // Another way out, which returns before the frame is made.
        let code = [0x58, 0xff, 0xe0, 0x90]; // pop %rax; jmp *%rax; nop
        let states = [0, 1, 3].map(|at| entered(&code, at));
        assert_eq!(
            states,
            [
                PartialState::Called,
                PartialState::Popped,
                PartialState::Called
            ]
        );
        // Intrinsic methods make no frame.
        assert_eq!(entered(&[0x90; 16], 8), PartialState::Called);
        assert_eq!(entered(&[], 8), PartialState::Called);
    }
}
