//! How is a frame of HotSpot's code left?

mod aarch64;
mod code;
mod entry;
mod leaf;
mod routine;
mod state;

pub(super) use aarch64::pushed_by_call;
pub(super) use entry::InterruptedPart;
pub(super) use state::{CodeAt, FrameState, PartialFrame, PartialState, Prologue};
use varid_model::{Address, FrameAddress, Machine};
use varid_unwind::{
    CallerSp, CodeRule, FixedFrame, LinkedFrame, NativeFrame, ReturnAt, SavedRegister, StackSlice,
    UnwindInfo,
};

/// Bytes from the frame pointer of an interpreter frame to the word with the sender's stack pointer.
const SENDER_SP: i64 = -8;
/// DWARF number of rax, which has the return address while the interpreter makes room for local variables (x86-64).
const RETURN_REGISTER: u16 = 0;
/// DWARF number of r13, which has it while a method is left.
const LEFT_RETURN_REGISTER: u16 = 13;
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
    /// Of the interpreter while it enters or leaves a method.
    Partial(PartialFrame),
    /// Of the call from native code into Java code.
    Entry,
    /// Of routines with this code. They have none, or one that its frame pointer leads to.
    Routines(CodeAt<'c>),
    /// Of a stub with this code, which keeps a frame pointer from its first instructions on.
    Stub(CodeAt<'c>),
    /// Of code that jumps on to the method that is called. It has none.
    Passed(CodeAt<'c>),
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
            FrameState::Unsaved => left.unsaved(words),
            FrameState::Pushed => left.saving_fp(2),
            FrameState::Called => left.called(),
        },
        CodeFrames::Interpreter => Some(left.by_fp(left.sender_sp())),
        CodeFrames::Partial(partial) => match left.machine().link() {
            Some(link) => left.partial_in_link(partial, link),
            None => left.partial_on_stack(partial),
        },
        CodeFrames::Entry => Some(left.by_fp(CallerSp::BehindReturn)),
        CodeFrames::Routines(code) => left.of_routine(code, calls),
        CodeFrames::Stub(code) => match frame.address {
            FrameAddress::Instruction(at) if code.is_before_frame(at) => left.called(),
            FrameAddress::Instruction(at) if code.is_in_entry(at) => left.saving_fp(2),
            _ => Some(left.by_fp(CallerSp::BehindReturn)),
        },
        CodeFrames::Passed(code) => left.passed(code, calls),
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

    /// The rule of a frame of so many words. None if its return address is zero, which ends stacks, but none of this code's; and behind a frame
    /// that has been left by its frame pointer alone, which does not lead to the stack pointer.
    fn of_words(self, words: u32, saved: &[SavedRegister]) -> Option<CodeRule> {
        self.frame.regs.sp()?;
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

    /// The return address that the link register has. None if it may have another one, or if the machine has no such register.
    fn link(self) -> Option<Address> {
        self.frame.address.is_instruction().then_some(())?;
        let link = self.frame.regs.get(self.machine().link()?)?;
        Some(Address::new(link)).filter(|link| *link != Address::new(0))
    }

    /// The rule of a frame of so many bytes whose return address is in the link register.
    fn in_link(self, size: u32, saved: &[SavedRegister]) -> Option<CodeRule> {
        self.link()?;
        Some(FixedFrame::unlinked(self.machine(), size, saved).rule(self.frame.lookup()))
    }

    /// The rule of a frame of so many words that has neither saved the caller's frame pointer nor, in a link register, the return address.
    fn unsaved(self, words: u32) -> Option<CodeRule> {
        match self.machine().link() {
            Some(_) => self.in_link(words.saturating_mul(self.machine().word().into()), &[]),
            None => self.of_words(words, &[]),
        }
    }

    /// The rule of code that has made no frame yet.
    fn called(self) -> Option<CodeRule> {
        match self.machine().link() {
            Some(_) => self.in_link(0, &[]),
            None => self.of_words(1, &[]),
        }
    }

    /// The rule of code that jumps on to a method.
    fn passed(self, code: CodeAt<'_>, calls: &mut dyn Calls) -> Option<CodeRule> {
        let returns = match self.machine().link() {
            Some(_) => self.link()?,
            None => self.word(self.frame.sp)?,
        };
        calls.returns_to_java(returns).then_some(())?;
        match self.machine().link() {
            Some(_) => self.in_link(code.pushed_in_adapter(self.frame.lookup())?, &[]),
            None => self.of_words(1, &[]),
        }
    }

    /// Where the caller's stack pointer is in a frame of the interpreter. An interpreter that calls keeps room for its whole expression stack,
    /// and on AArch64 the called method's frame lies over that: its stack pointer is below the end of that frame then.
    fn sender_sp(self) -> CallerSp {
        let fp = self.frame.regs.fp().map(Address::new);
        let sender = fp.and_then(|fp| self.word(fp.wrapping_add_signed(SENDER_SP)));
        match fp.zip(sender) {
            Some((fp, sender)) if sender < self.above(fp, 2) => CallerSp::BehindReturn,
            _ => CallerSp::InWord(SENDER_SP),
        }
    }

    /// The rule of a frame of the interpreter that is being made or left, with the return address in the link register, by its DWARF number.
    fn partial_in_link(self, partial: PartialFrame, link: u16) -> Option<CodeRule> {
        self.link()?;
        let end = match partial.state {
            PartialState::Linked => self.above(Address::new(self.frame.regs.fp()?), 2),
            _ => self.frame.sp,
        };
        let sender = self.frame.regs.get(partial.sender_sp).map(Address::new);
        // See `sender_sp`.
        let is_above = sender.is_some_and(|sender| sender >= end);
        let returns = ReturnAt::Register(link);
        Some(match (partial.state, is_above) {
            (PartialState::Linked, true) => self.by_fp(CallerSp::InRegister(partial.sender_sp)),
            (PartialState::Linked, false) => self.by_fp(CallerSp::BehindReturn),
            (_, true) => self.not_made(partial.sender_sp, returns),
            (_, false) => self.not_made(self.machine().sp(), returns),
        })
    }

    /// The same, with the return address on the stack or in rax.
    fn partial_on_stack(self, partial: PartialFrame) -> Option<CodeRule> {
        let not_made = |returns| Some(self.not_made(partial.sender_sp, returns));
        match partial.state {
            PartialState::Called => not_made(ReturnAt::Stack(0)),
            PartialState::Popped => not_made(ReturnAt::Register(RETURN_REGISTER)),
            PartialState::Saved => not_made(ReturnAt::Stack(self.machine().word().into())),
            PartialState::Linked => {
                let sender = self.frame.regs.fp()?.wrapping_add_signed(SENDER_SP);
                let is_pushed = self.frame.sp.get() <= sender;
                Some(self.by_fp(match is_pushed {
                    true => CallerSp::InWord(SENDER_SP),
                    false => CallerSp::InRegister(partial.sender_sp),
                }))
            }
            PartialState::Left => not_made(ReturnAt::Stack(0)),
            PartialState::LeftPopped => not_made(ReturnAt::Register(LEFT_RETURN_REGISTER)),
        }
    }

    /// The rule of a frame that is not made. `caller_sp`: the DWARF number of the register with the caller's stack pointer.
    fn not_made(self, caller_sp: u16, returns: ReturnAt) -> CodeRule {
        LinkedFrame::not_made(self.machine(), caller_sp, returns).rule(self.frame.lookup())
    }

    /// The rule of a frame of one of the routines in some code. A word on the stack may be the return address of an earlier call.
    fn of_routine(self, code: CodeAt<'_>, calls: &mut dyn Calls) -> Option<CodeRule> {
        let at = match self.frame.address {
            FrameAddress::Instruction(at) | FrameAddress::Return(at) => at,
        };
        let mut called = |returns: Address| {
            let called = calls.called(returns)?;
            code.addresses().contains(&called).then_some(called)
        };
        if let Some(returns) = self.link()
            && let Some(entry) = called(returns)
            && let Some(frame) = aarch64::leaf_frame(code, entry, at, returns)
        {
            let dwarf = self.machine().fp();
            let saved_fp = frame.saved_fp.map(|offset| SavedRegister { dwarf, offset });
            return self.in_link(frame.size, saved_fp.as_slice());
        }
        let mut entry = |place: Address| called(self.word(place)?);
        let (sp, fp) = (self.frame.sp, Address::new(self.frame.regs.fp()?));
        if sp <= fp && entry(self.above(fp, 1)).is_some() {
            return Some(self.by_fp(CallerSp::BehindReturn));
        }
        if self.machine().link().is_some() {
            // Routines that call keep a frame pointer.
            return None;
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
