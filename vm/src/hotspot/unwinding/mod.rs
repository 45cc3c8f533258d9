//! How is a frame of HotSpot's code left?

mod code;
mod entry;
mod leaf;
mod routine;

pub(super) use entry::EntryState;
pub(super) use leaf::{FrameState, Prologue};
pub(super) use routine::CodeAt;
use varid_model::{Address, FrameAddress, Machine};
use varid_unwind::{
    CallerSp, CodeRule, FixedFrame, LinkedFrame, NativeFrame, ReturnAt, SavedRegister, StackSlice,
    UnwindInfo,
};

/// Bytes from the frame pointer of an interpreter frame to the word with the sender's stack pointer.
const SENDER_SP: i64 = -8;
/// DWARF number of r13, which has the sender's stack pointer while a method is entered.
const SENDER_REGISTER: u16 = 13;
/// DWARF number of rax, which has the return address while the interpreter makes room for local variables.
const RETURN_REGISTER: u16 = 0;
/// The most words that a routine without a frame has pushed, and made room for.
const MAX_PUSHED: u64 = 128;

/// The frames of a piece of code.
#[derive(Debug, Clone, Copy)]
pub(super) enum CodeFrames<'c> {
    /// So many words, with the return address last and the caller's frame pointer before it.
    Fixed {
        words: u32,
        /// What of the frame there is.
        state: FrameState,
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
    let left = LeftFrame { frame, stack };
    match frames {
        CodeFrames::Fixed { words, state } => match state {
            FrameState::Complete => left.saving_fp(words),
            FrameState::Unsaved => left.of_words(words, &[]),
            FrameState::Pushed => left.saving_fp(2),
            FrameState::Called => left.of_words(1, &[]),
        },
        CodeFrames::Interpreter => Some(left.by_fp(CallerSp::InWord(SENDER_SP))),
        CodeFrames::Entered(state) => left.entered(state),
        CodeFrames::Entry => Some(left.by_fp(CallerSp::BehindReturn)),
        CodeFrames::Routines(code) => left.of_routine(code, calls),
        CodeFrames::Stub(code) => match frame.address {
            FrameAddress::Instruction(at) if code.is_before_frame(at) => left.of_words(1, &[]),
            FrameAddress::Instruction(at) if code.is_in_entry(at) => left.saving_fp(2),
            _ => Some(left.by_fp(CallerSp::BehindReturn)),
        },
        CodeFrames::Passed => {
            let returns = left.word(frame.sp)?;
            calls.returns_to_java(returns).then_some(())?;
            left.of_words(1, &[])
        }
    }
}

/// A frame that is left, and its part of the stack.
#[derive(Clone, Copy)]
struct LeftFrame<'f> {
    frame: &'f NativeFrame,
    stack: StackSlice<'f>,
}

impl LeftFrame<'_> {
    fn machine(self) -> Machine {
        self.frame.regs.machine()
    }

    fn word(self, place: Address) -> Option<Address> {
        self.stack.word(self.machine(), place).map(Address::new)
    }

    /// Returns the address so many words above another one.
    fn above(self, place: Address, words: u64) -> Address {
        place.wrapping_add(words.wrapping_mul(self.machine().word().into()))
    }

    /// The rule of a frame of so many words. None if its return address is zero, which ends stacks, but none of this code's.
    fn of_words(self, words: u32, saved: &[SavedRegister]) -> Option<CodeRule> {
        let last = self.above(self.frame.sp, u64::from(words).saturating_sub(1));
        if self.word(last) == Some(Address::new(0)) {
            return None;
        }
        let size = words.saturating_mul(self.machine().word().into());
        Some(FixedFrame::new(self.machine(), size, saved).rule(self.frame.lookup()))
    }

    /// The same, with the caller's frame pointer in front of the return address.
    fn saving_fp(self, words: u32) -> Option<CodeRule> {
        let below = words.saturating_sub(2);
        let saved = SavedRegister {
            dwarf: self.machine().fp(),
            offset: below.saturating_mul(self.machine().word().into()),
        };
        self.of_words(words, &[saved])
    }

    fn by_fp(self, caller_sp: CallerSp) -> CodeRule {
        LinkedFrame::new(self.machine(), caller_sp).rule(self.frame.lookup())
    }

    /// The rule of a frame that is not made.
    fn not_made(self, returns: ReturnAt) -> CodeRule {
        LinkedFrame::not_made(self.machine(), SENDER_REGISTER, returns).rule(self.frame.lookup())
    }

    /// The rule of a frame of the interpreter that enters a method.
    fn entered(self, state: EntryState) -> Option<CodeRule> {
        Some(match state {
            EntryState::Called => self.not_made(ReturnAt::Stack(0)),
            EntryState::Popped => self.not_made(ReturnAt::Register(RETURN_REGISTER)),
            EntryState::Saved => self.not_made(ReturnAt::Stack(self.machine().word().into())),
            EntryState::Linked => {
                let sender = self.frame.regs.fp()?.wrapping_add_signed(SENDER_SP);
                let is_pushed = self.frame.sp.get() <= sender;
                self.by_fp(match is_pushed {
                    true => CallerSp::InWord(SENDER_SP),
                    false => CallerSp::InRegister(SENDER_REGISTER),
                })
            }
        })
    }

    /// The rule of a frame of one of the routines in some code. A word on the stack may be the return address of an earlier call.
    fn of_routine(self, code: CodeAt<'_>, calls: &mut dyn Calls) -> Option<CodeRule> {
        let at = match self.frame.address {
            FrameAddress::Instruction(at) | FrameAddress::Return(at) => at,
        };
        let mut entry = |place: Address| {
            let called = calls.called(self.word(place)?)?;
            code.addresses().contains(&called).then_some(called)
        };
        let (sp, fp) = (self.frame.sp, Address::new(self.frame.regs.fp()?));
        if sp <= fp && entry(self.above(fp, 1)).is_some() {
            return Some(self.by_fp(CallerSp::BehindReturn));
        }
        let mut words = 0..=MAX_PUSHED;
        let pushed = words.find(|words| {
            let place = self.above(sp, *words);
            let pushed = entry(place).and_then(|entry| code.pushed(entry, at));
            pushed.is_some() && pushed == place.offset_from(sp)
        });
        let words = match (pushed, self.frame.address) {
            (Some(words), _) => u32::try_from(words).ok()?.saturating_add(1),
            // The one that forwards exceptions is jumped to, with the return address of the method that has thrown. It asks the VM, and pushes
            // nothing.
            (None, FrameAddress::Return(_)) if calls.returns_to_java(self.word(sp)?) => 1,
            (None, _) => return None,
        };
        self.of_words(words, &[])
    }
}
