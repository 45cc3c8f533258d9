//! How is a frame of HotSpot's code left?

mod entry;
mod leaf;
mod routine;

pub(super) use entry::EntryState;
use leaf::FrameState;
pub(super) use leaf::Prologue;
pub(super) use routine::CodeAt;
use varid_model::{Address, FrameAddress, Machine};
use varid_unwind::{
    CallerSp, CodeRule, FixedFrame, LinkedFrame, NativeFrame, SavedRegister, StackSlice,
    UnwindInfo, WordAt,
};

/// Bytes from the frame pointer of an interpreter frame to the word with the sender's stack pointer.
const SENDER_SP: i64 = -8;
/// DWARF number of r13, which has the sender's stack pointer while a method is entered.
const SENDER_REGISTER: u16 = 13;
/// The most words that a routine without a frame has pushed, and made room for.
const MAX_PUSHED: u64 = 128;

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
    /// Of routines with this code. They have none, or one that its frame pointer leads to.
    Routines(CodeAt<'c>),
    /// Of a stub with this code, which keeps a frame pointer from its first instructions on.
    Stub(CodeAt<'c>),
    /// Of code that jumps on to the method that is called. It has none.
    Passed,
}

/// What is known of return addresses.
pub(super) trait Calls {
    /// Returns what the call in front of a return address calls. None if there is no such call, or it does not say.
    fn called(&mut self, returns: Address) -> Option<Address>;

    /// Returns true if a method is called in front of an address.
    fn returns_to_java(&mut self, address: Address) -> bool;
}

/// Returns how to leave a frame. None if that is not known.
pub(super) fn rule(
    frames: CodeFrames<'_>,
    frame: &NativeFrame,
    stack: StackSlice<'_>,
    calls: &mut dyn Calls,
) -> Option<CodeRule> {
    let machine = frame.regs.machine();
    let word = u32::from(machine.word());
    // A return address of zero ends stacks, but none of this code's.
    let returns = |place: Address| stack.word(machine, place) != Some(0);
    let fixed = |words: u32, saved: &[SavedRegister]| {
        let size = words.saturating_mul(word);
        let last = frame.sp.wrapping_add(size.saturating_sub(word).into());
        returns(last).then(|| FixedFrame::new(machine, size, saved).rule(frame.lookup()))
    };
    match frames {
        CodeFrames::Fixed {
            words,
            start,
            prologue,
        } => match state(frame.address, start, prologue) {
            FrameState::Complete => fixed(words, &[saved_fp(machine, words)]),
            FrameState::Unsaved => fixed(words, &[]),
            FrameState::Pushed => fixed(2, &[saved_fp(machine, 2)]),
            FrameState::Called => fixed(1, &[]),
        },
        CodeFrames::Interpreter => Some(linked(frame, CallerSp::InWord(SENDER_SP))),
        CodeFrames::Entered(EntryState::Called) => {
            let returns = WordAt {
                register: machine.sp(),
                offset: 0,
            };
            Some(not_made(frame, returns))
        }
        CodeFrames::Entered(EntryState::Popped) => {
            // It is still there if the method has no local variables beside its parameters.
            let returns = WordAt {
                register: SENDER_REGISTER,
                offset: i64::from(word).wrapping_neg(),
            };
            let sender = Address::new(frame.regs.get(SENDER_REGISTER)?);
            let address = stack.word(machine, sender.wrapping_add_signed(returns.offset))?;
            let is_there = calls.returns_to_java(Address::new(address));
            is_there.then(|| not_made(frame, returns))
        }
        CodeFrames::Entered(EntryState::Linked) => {
            let sender = frame.regs.fp()?.wrapping_add_signed(SENDER_SP);
            let is_pushed = frame.sp.get() <= sender;
            is_pushed.then(|| linked(frame, CallerSp::InWord(SENDER_SP)))
        }
        CodeFrames::Entry => Some(linked(frame, CallerSp::BehindReturn)),
        CodeFrames::Routines(code) => {
            let at = match frame.address {
                FrameAddress::Instruction(at) | FrameAddress::Return(at) => at,
            };
            // A word on the stack may be the return address of an earlier call.
            let mut entry = |place: Address| {
                let returns = stack.word(machine, place).map(Address::new)?;
                let called = calls.called(returns)?;
                code.addresses().contains(&called).then_some(called)
            };
            let fp = Address::new(frame.regs.fp()?);
            if frame.sp <= fp && entry(fp.wrapping_add(word.into())).is_some() {
                return Some(linked(frame, CallerSp::BehindReturn));
            }
            let mut pushed = 0..=MAX_PUSHED;
            let pushed = pushed.find(|pushed| {
                let pushed = pushed.wrapping_mul(word.into());
                let entry = entry(frame.sp.wrapping_add(pushed));
                entry.is_some_and(|entry| code.pushed(entry, at) == Some(pushed))
            })?;
            fixed((pushed as u32).saturating_add(1), &[])
        }
        CodeFrames::Stub(code) => match frame.address {
            FrameAddress::Instruction(at) if code.is_before_frame(at) => fixed(1, &[]),
            FrameAddress::Instruction(at) if code.is_in_entry(at) => {
                fixed(2, &[saved_fp(machine, 2)])
            }
            _ => Some(linked(frame, CallerSp::BehindReturn)),
        },
        CodeFrames::Passed => {
            let returns = Address::new(stack.word(machine, frame.sp)?);
            calls.returns_to_java(returns).then(|| fixed(1, &[]))?
        }
    }
}

fn not_made(frame: &NativeFrame, returns: WordAt) -> CodeRule {
    let machine = frame.regs.machine();
    LinkedFrame::not_made(machine, SENDER_REGISTER, returns).rule(frame.lookup())
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
