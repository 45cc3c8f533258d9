//! Finds the caller of a frame.

use crate::architecture::{self, Architecture, Caller};
use crate::error::UnwindError;
use crate::native_stack::{NativeFrame, Reached};
use crate::rule::Rule;
use crate::stack_slice::StackSlice;
use crate::unwind_info::{CodeRule, UnwindInfo};
use varid_model::{Address, FrameAddress, Machine, Regs};

/// What follows a frame.
pub(crate) enum Step {
    /// The frame that called it.
    Caller(NativeFrame),
    /// There is none: this is the outermost frame.
    Outermost,
    /// The frame encloses the address at which unwinding was to end. `end` is the first address above the frame.
    Encloses { end: Address },
}

/// How the code of a frame came to be executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entered {
    /// By a call on the same stack.
    Called,
    /// By a call from another stack.
    CalledFromOtherStack,
    /// By a signal, which interrupted code on this stack or on another one.
    Interrupting,
}

impl Entered {
    /// How the code of a frame with this rule was entered.
    #[inline]
    const fn by_rule(rule: &Rule) -> Self {
        match rule.is_signal_frame {
            true => Self::Interrupting,
            false => Self::Called,
        }
    }

    /// Returns true if the caller's frame can begin at `cfa`. A leaf that has pushed nothing may end where it begins (AArch64). Code that a
    /// signal interrupted may have run on another stack.
    #[inline]
    fn may_lead_to(self, cfa: Address, frame: &NativeFrame) -> bool {
        cfa > frame.sp
            || (cfa == frame.sp && frame.address.is_instruction())
            || self != Self::Called
    }

    /// Returns the caller's address from its instruction pointer.
    #[inline]
    const fn caller_address(self, ip: Address) -> FrameAddress {
        match self {
            Self::Interrupting => FrameAddress::Instruction(ip),
            Self::Called | Self::CalledFromOtherStack => FrameAddress::Return(ip),
        }
    }
}

/// The state of unwinding one stack.
pub(crate) struct Unwinder<'a, I: ?Sized> {
    machine: Machine,
    architecture: &'static dyn Architecture,
    /// The bits of a word that form a code address.
    code_mask: u64,
    stack: StackSlice<'a>,
    /// The address of the stack at which unwinding ends.
    until: Option<Address>,
    /// How many more changes of stacks are followed. A hostile process can make each of them lead back to an earlier frame.
    stacks: u8,
    info: &'a mut I,
}

/// The most changes of stacks in one callchain: a goroutine's stack, the thread's own, that of a signal handler, and back.
const MAX_STACKS: u8 = 8;

impl<'a, I: UnwindInfo + ?Sized> Unwinder<'a, I> {
    /// For the stack of a thread with these registers.
    pub(crate) fn new(
        regs: &Regs,
        stack: StackSlice<'a>,
        until: Option<Address>,
        info: &'a mut I,
    ) -> Self {
        let architecture = architecture::of(regs.machine());
        Self {
            machine: regs.machine(),
            architecture,
            code_mask: architecture.code_address_mask(regs),
            stack,
            until,
            stacks: MAX_STACKS,
            info,
        }
    }

    /// Returns the code address in a word of the stack or a register, without a signature or the Thumb bit.
    pub(crate) const fn code_address(&self, word: u64) -> Address {
        Address::new(word & self.code_mask)
    }

    /// Returns how a frame is unwound.
    pub(crate) fn rule(&mut self, frame: &NativeFrame) -> CodeRule {
        match self.info.frame_rule(frame) {
            CodeRule::Rule(rule) if rule.machine != self.machine => CodeRule::Unknown,
            rule => rule,
        }
    }

    /// Finds the frame's caller. `rule`: how the frame is unwound.
    pub(crate) fn step(
        &mut self,
        frame: &NativeFrame,
        rule: CodeRule,
    ) -> Result<Step, UnwindError> {
        let (Caller { cfa, mut regs }, entered) = match rule {
            CodeRule::NoCode => return Err(UnwindError::NoCode(frame.address.recorded())),
            CodeRule::Elsewhere => return Err(UnwindError::Elsewhere(frame.sp)),
            CodeRule::NotRead => return Err(UnwindError::NotRead(frame.address.recorded())),
            CodeRule::Rule(rule) => {
                let cfa = self.cfa(frame, &rule);
                if let (Some(end), Some(until)) = (cfa, self.until)
                    && end > until
                    && !self.stack.is_of_handler(frame.sp)
                {
                    return Ok(Step::Encloses { end });
                }
                if rule.is_outermost() {
                    return Ok(Step::Outermost);
                }
                let cfa = cfa.ok_or_else(|| match frame.regs.sp() {
                    Some(_) => UnwindError::NoStack,
                    None => UnwindError::NoInfo(frame.address.recorded()),
                })?;
                let linked = rule
                    .caller(cfa, &frame.regs, self.stack)
                    .map(|regs| Caller { cfa, regs });
                let interrupted = || {
                    let linked = linked.as_ref().ok();
                    self.architecture.interrupted(frame, linked, self.stack)
                };
                let caller = match rule.is_signal_frame.then(interrupted).flatten() {
                    Some(interrupted) => interrupted,
                    None => linked?,
                };
                (caller, Entered::by_rule(&rule))
            }
            CodeRule::Unknown => match self.without_rule(frame) {
                Ok(found) => found,
                Err(_) if self.is_new_thread(frame) => return Ok(Step::Outermost),
                Err(error) => return Err(error),
            },
        };
        if !entered.may_lead_to(cfa, frame) {
            return Err(UnwindError::NotAscending(frame.sp));
        }
        let ip = regs.ip().map(|ip| self.code_address(ip));
        let Some(ip) = ip.filter(|ip| *ip != Address::default()) else {
            return Ok(Step::Outermost);
        };
        regs.set(self.machine.ip(), Some(ip.get()));
        Ok(Step::Caller(NativeFrame {
            address: entered.caller_address(ip),
            sp: cfa,
            regs,
            reached: Reached::Unwound,
        }))
    }

    /// Returns the frame of generated code that has called a native frame, whose own caller is not known.
    pub(crate) fn resumed(&self, frame: &NativeFrame) -> Option<NativeFrame> {
        let at = self.stack.beyond()?.resumption(frame.sp)?;
        let mut regs = Regs::unknown(self.machine);
        let [ip, sp] = [self.machine.ip(), self.machine.sp()];
        regs.set(ip, Some(at.returns.get()));
        regs.set(sp, Some(at.sp.get()));
        regs.set(self.machine.fp(), Some(at.fp).filter(|fp| *fp != 0));
        Some(NativeFrame {
            address: FrameAddress::Return(at.returns),
            sp: at.sp,
            regs,
            reached: Reached::Resumed,
        })
    }

    /// Returns the caller of a frame without a rule, and how the frame's code was entered.
    fn without_rule(&mut self, frame: &NativeFrame) -> Result<(Caller, Entered), UnwindError> {
        // Kernels of arm64 have no unwind information of their trampoline: Linux 6.1.
        let linked = self.architecture.caller_by_frame_pointer(frame, self.stack);
        let interrupted = self
            .architecture
            .interrupted(frame, linked.as_ref(), self.stack);
        if let Some(interrupted) = interrupted {
            return Ok((interrupted, Entered::Interrupting));
        }
        if let Some(caller) = self.caller_on_other_stack(frame) {
            return Ok((caller, Entered::CalledFromOtherStack));
        }
        let caller = self.caller_by_convention(frame)?;
        Ok((caller, Entered::Called))
    }

    /// Computes the CFA of a frame that has a rule.
    #[inline]
    fn cfa(&mut self, frame: &NativeFrame, rule: &Rule) -> Option<Address> {
        rule.cfa(&frame.regs, self.stack).or_else(|| {
            if frame.regs.sp().is_some() {
                return None;
            }
            // The caller of a frame of unknown size has no stack pointer. If its frame pointer leads to a caller, it shows where the
            // frame's two linked words are.
            let fp = frame.regs.fp()?;
            let linked = self
                .architecture
                .caller_by_frame_pointer(frame, self.stack)?;
            self.leads_to_code(&linked)
                .then(|| rule.cfa_by_frame_pointer(Address::new(fp)))?
        })
    }

    /// Returns true if a frame's frame pointer register holds a frame pointer: it leads into the copy of the stack, or the code is known to
    /// keep frame pointers. Memory beyond the copy may be a heap, whose words mean nothing.
    fn is_frame_pointer(&mut self, frame: &NativeFrame) -> bool {
        let fp = frame.regs.fp().map(Address::new);
        fp.is_some_and(|fp| self.stack.contains(fp))
            || self.architecture.links_every_frame()
            || self.info.keeps_frame_pointers(frame.lookup())
    }

    /// Returns the caller of code that keeps frame pointers across stacks, if its frame pointer leads out of the copy and not upwards.
    fn caller_on_other_stack(&mut self, frame: &NativeFrame) -> Option<Caller> {
        let fp = Address::new(frame.regs.fp()?);
        let beyond = self.stack.beyond()?;
        let leads_elsewhere = fp < frame.sp && beyond.has_link(fp);
        if !leads_elsewhere || !self.info.keeps_frame_pointers(frame.lookup()) {
            return None;
        }
        self.stacks = self.stacks.checked_sub(1)?;
        let there = NativeFrame { sp: fp, ..*frame };
        self.architecture
            .caller_by_frame_pointer(&there, self.stack)
    }

    /// Returns the caller of a frame without a rule, by the machine's conventions: the frame pointer, and for a leaf the place where calls
    /// leave the return address.
    fn caller_by_convention(&mut self, frame: &NativeFrame) -> Result<Caller, UnwindError> {
        if let Some(thread_begins) = self.beginning_of_thread(frame) {
            return Ok(thread_begins);
        }
        let leaf = frame
            .address
            .is_instruction()
            .then(|| self.architecture.caller_of_leaf(frame, self.stack))
            .flatten()
            .filter(|leaf| self.leads_to_code(leaf));
        let linked = self.architecture.caller_by_frame_pointer(frame, self.stack);
        let linked = linked.filter(|_| self.is_frame_pointer(frame));
        match (leaf, linked) {
            (Some(leaf), Some(linked))
                if self.is_stale(&leaf, &linked, frame) && self.leads_to_code(&linked) =>
            {
                Ok(linked)
            }
            (Some(leaf), _) => Ok(leaf),
            // Code that keeps no frame pointer may have any word in that register.
            (None, linked) => linked
                .filter(|linked| self.ends_or_leads_to_code(linked))
                .ok_or_else(|| UnwindError::NoInfo(frame.address.recorded())),
        }
    }

    /// Returns true if a leaf without a caller is the first code of a new thread. It returns from the clone system call, and the C library has no
    /// unwind information for the few instructions from that call to the code that it marks as outermost. In the parent thread the same code has
    /// a caller, whose address lies at the stack pointer.
    fn is_new_thread(&mut self, frame: &NativeFrame) -> bool {
        /// Bytes without unwind information: 10 in glibc on x86-64.
        const GAP: i64 = 16;
        let pushes_return_address = matches!(self.machine, Machine::X86_64 | Machine::X86);
        if !pushes_return_address
            || !frame.address.is_instruction()
            || self.stack.word(self.machine, frame.sp).is_none()
        {
            return false;
        }
        let at = frame.address.recorded();
        let mut described = |direction: i64| {
            (1..=GAP).find_map(|distance| {
                let address = at.wrapping_add_signed(distance.wrapping_mul(direction));
                match self.info.rule(address) {
                    CodeRule::Rule(rule) => Some((distance, rule)),
                    CodeRule::Unknown
                    | CodeRule::NotRead
                    | CodeRule::NoCode
                    | CodeRule::Elsewhere => None,
                }
            })
        };
        let (Some((before, _)), Some((behind, rule))) = (described(-1), described(1)) else {
            return false;
        };
        rule.is_outermost() && before.saturating_add(behind) <= GAP
    }

    /// Returns the caller of a thread's outermost function: the first return address above the frame's stack pointer is in code that has no
    /// caller. If another function had called it, the return address into that function would come first.
    fn beginning_of_thread(&mut self, frame: &NativeFrame) -> Option<Caller> {
        /// Words of the frame: musl's `start` has four on x86-64.
        const MAX_WORDS: u64 = 32;
        if frame.address.is_instruction() || !self.info.begins_threads(frame.lookup()) {
            return None;
        }
        let word = u64::from(self.machine.word());
        for index in 0..MAX_WORDS {
            let at = frame.sp.wrapping_add(word.wrapping_mul(index));
            let value = self.stack.word(self.machine, at)?;
            let call = FrameAddress::Return(self.code_address(value)).lookup();
            match self.info.rule(call) {
                CodeRule::NoCode => {}
                CodeRule::Rule(rule) if rule.is_outermost() => {
                    let cfa = at.wrapping_add(word);
                    let mut regs = Regs::unknown(self.machine);
                    regs.set(self.machine.sp(), Some(cfa.get()));
                    regs.set(self.machine.ip(), Some(value));
                    return Some(Caller { cfa, regs });
                }
                CodeRule::Rule(_) | CodeRule::Unknown | CodeRule::NotRead | CodeRule::Elsewhere => {
                    return None;
                }
            }
        }
        None
    }

    fn ends_or_leads_to_code(&mut self, caller: &Caller) -> bool {
        caller.regs.ip() == Some(0) || self.leads_to_code(caller)
    }

    fn leads_to_code(&mut self, caller: &Caller) -> bool {
        caller.regs.ip().is_some_and(|ip| {
            let call = FrameAddress::Return(self.code_address(ip)).lookup();
            self.info.is_code(call)
        })
    }

    /// Returns true if the link register of interrupted code without a rule cannot hold the return address. Either it equals the return
    /// address that the frame pointer leads to, or it lies in the function itself, where the function's last call left it.
    ///
    /// Without symbols the second case is not recognised, and the link register is believed; otherwise each leaf would lose its caller. A
    /// recursive function loses one level while it has no frame yet.
    fn is_stale(&mut self, leaf: &Caller, linked: &Caller, frame: &NativeFrame) -> bool {
        if !self.architecture.links_every_frame() {
            return false;
        }
        let Some(link) = leaf.regs.ip().map(|ip| self.code_address(ip)) else {
            return false;
        };
        if linked.regs.ip().map(|ip| self.code_address(ip)) == Some(link) {
            return true;
        }
        let function = self.info.function_start(frame.address.recorded());
        let call = FrameAddress::Return(link).lookup();
        function.is_some() && function == self.info.function_start(call)
    }
}
