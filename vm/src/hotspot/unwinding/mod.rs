//! How is a frame of HotSpot's code left?

mod entry;
mod leaf;

pub(super) use entry::EntryState;
use leaf::FrameState;
pub(super) use leaf::Prologue;
use varid_model::{Address, FrameAddress, Machine};
use varid_unwind::{
    CallerSp, CodeRule, FixedFrame, LinkedFrame, NativeFrame, SavedRegister, StackSlice, UnwindInfo,
};

/// Bytes from the frame pointer of an interpreter frame to the word with the sender's stack pointer.
const SENDER_SP: i64 = -8;
/// DWARF number of r13, which has the sender's stack pointer while a method is entered.
const SENDER_REGISTER: u16 = 13;
/// The most words that a routine without a frame has pushed: those of the string comparison and of C1's array copy.
const MAX_PUSHED: u64 = 9;
/// The most bytes between the stack pointer and the frame pointer of a routine that keeps one.
const MAX_ROUTINE_FRAME: u64 = 1 << 12;

/// The frames of a piece of code.
#[derive(Debug, Clone, Copy)]
pub(super) enum CodeFrames<'c> {
    /// So many words, with the return address last and the caller's frame pointer before it.
    Fixed {
        words: u32,
        /// The code's first instruction, and how it makes its frame.
        start: Address,
        prologue: Prologue<'c>,
    },
    /// Of the interpreter.
    Interpreter,
    /// Of the interpreter while it enters a method.
    Entered(EntryState),
    /// Of the call from native code into Java code.
    Entry,
    /// Of a routine that has none, or one that its frame pointer leads to.
    Routine,
}

/// Returns how to leave a frame. `returns_to_java`: whether an address is behind a call of Java code. None if it is not known.
pub(super) fn rule(
    frames: CodeFrames<'_>,
    frame: &NativeFrame,
    stack: StackSlice<'_>,
    returns_to_java: &mut dyn FnMut(Address) -> bool,
) -> Option<CodeRule> {
    let machine = frame.regs.machine();
    let word = u32::from(machine.word());
    let fixed = |words: u32, saved: &[SavedRegister]| {
        let size = words.saturating_mul(word);
        FixedFrame::new(machine, size, saved).rule(frame.lookup())
    };
    match frames {
        CodeFrames::Fixed {
            words,
            start,
            prologue,
        } => Some(match state(frame.address, start, prologue) {
            FrameState::Complete => fixed(words, &[saved_fp(machine, words)]),
            FrameState::Unsaved => fixed(words, &[]),
            FrameState::Pushed => fixed(2, &[saved_fp(machine, 2)]),
            FrameState::Called => fixed(1, &[]),
        }),
        CodeFrames::Interpreter => Some(linked(frame, CallerSp::InWord(SENDER_SP))),
        CodeFrames::Entered(EntryState::Called) => {
            Some(LinkedFrame::not_made(machine, SENDER_REGISTER).rule(frame.lookup()))
        }
        CodeFrames::Entered(EntryState::Popped) => None,
        CodeFrames::Entered(EntryState::Linked) => {
            let sender = frame.regs.fp()?.wrapping_add_signed(SENDER_SP);
            let is_pushed = frame.sp.get() <= sender;
            is_pushed.then(|| linked(frame, CallerSp::InWord(SENDER_SP)))
        }
        CodeFrames::Entry => Some(linked(frame, CallerSp::BehindReturn)),
        CodeFrames::Routine => {
            let (sp, fp) = (frame.sp, Address::new(frame.regs.fp()?));
            let is_near = sp <= fp && fp.offset_from(sp)? < MAX_ROUTINE_FRAME;
            let mut returns = |at: Address| {
                let word = stack.word(machine, at);
                word.is_some_and(|word| returns_to_java(Address::new(word)))
            };
            if is_near && returns(fp.wrapping_add(word.into())) {
                return Some(linked(frame, CallerSp::BehindReturn));
            }
            let mut places = 0..MAX_PUSHED;
            let above = |pushed: u64| sp.wrapping_add(pushed.wrapping_mul(word.into()));
            let pushed = places.find(|pushed| returns(above(*pushed)))?;
            Some(fixed(pushed as u32 + 1, &[]))
        }
    }
}

fn linked(frame: &NativeFrame, caller_sp: CallerSp) -> CodeRule {
    LinkedFrame::new(frame.regs.machine(), caller_sp).rule(frame.lookup())
}

/// The caller's frame pointer in a frame of so many words.
fn saved_fp(machine: Machine, words: u32) -> SavedRegister {
    let below = words.saturating_sub(2);
    SavedRegister {
        dwarf: machine.fp(),
        offset: below.saturating_mul(machine.word().into()),
    }
}

/// Returns what of a frame there is. Only an interrupted instruction may be where it is made or left.
fn state(address: FrameAddress, start: Address, prologue: Prologue<'_>) -> FrameState {
    let FrameAddress::Instruction(at) = address else {
        return FrameState::Complete;
    };
    let offset = at.offset_from(start).map(usize::try_from);
    match offset {
        Some(Ok(offset)) => prologue.state(offset),
        _ => FrameState::Complete,
    }
}
