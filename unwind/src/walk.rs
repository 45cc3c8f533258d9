//! Unwinds a stack, frame by frame.

use crate::error::UnwindError;
use crate::native_stack::{NativeFrame, NativeStack, Reached};
use crate::stack_slice::StackSlice;
use crate::step::{Step, Unwinder};
use crate::unwind_info::{CodeRule, UnwindInfo};
use crate::unwound_stack::{Common, UnwoundStack};
use varid_model::{Address, FrameAddress, Regs};

/// The depth limit. No thread's stack is deeper; a longer callchain is a loop.
pub(crate) const MAX_FRAMES: usize = 4096;

impl NativeStack {
    /// Replaces the frames by those of a thread with these registers and this copy of its stack. Unwinding ends at the frame that encloses
    /// the stack address `until`, or at the outermost one.
    ///
    /// Without an instruction pointer and a stack pointer there are no frames. [`stopped`](NativeStack::stopped) says why unwinding ended.
    pub fn unwind(
        &mut self,
        regs: &Regs,
        stack: StackSlice<'_>,
        until: Option<Address>,
        info: &mut (impl UnwindInfo + ?Sized),
    ) {
        self.unwind_until(regs, stack, until, None, info);
    }

    /// As [`NativeStack::unwind`], to the outermost frame. `before`: the previous unwound stack of the same thread; the process's code must
    /// not have changed since. From the first frame that both stacks have, with the same stack above it, its frames are reused.
    pub fn unwind_after(
        &mut self,
        before: &UnwoundStack,
        regs: &Regs,
        stack: StackSlice<'_>,
        info: &mut (impl UnwindInfo + ?Sized),
    ) {
        self.unwind_until(regs, stack, None, before.in_common(stack), info);
    }

    fn unwind_until(
        &mut self,
        regs: &Regs,
        stack: StackSlice<'_>,
        until: Option<Address>,
        common: Option<Common<'_>>,
        info: &mut (impl UnwindInfo + ?Sized),
    ) {
        self.frames.clear();
        (self.end, self.stopped) = (None, None);
        let (Some(ip), Some(sp)) = (regs.ip(), regs.sp()) else {
            return;
        };
        let mut unwinder = Unwinder::new(regs, stack, until, info);
        let leaf = NativeFrame {
            address: FrameAddress::Instruction(unwinder.code_address(ip)),
            sp: Address::new(sp),
            regs: *regs,
            reached: Reached::Unwound,
        };
        let mut rule = unwinder.rule(&leaf);
        self.frames.push(leaf);
        while let Some(frame) = self.frames.last() {
            let (error, end) = match unwinder.step(frame, rule) {
                Ok(Step::Caller(caller)) => {
                    let known = common.and_then(|common| common.callers(&caller));
                    if let Some((callers, end)) = known {
                        self.frames.push(caller);
                        self.frames.extend_from_slice(callers);
                        self.end = end;
                        return;
                    }
                    rule = unwinder.rule(&caller);
                    let return_address = caller.address.recorded();
                    let error = match rule {
                        CodeRule::Elsewhere => UnwindError::Elsewhere(caller.sp),
                        // A stack may be executable, and a wrong rule may take a word of it for a return address.
                        CodeRule::Rule(_) | CodeRule::Unknown | CodeRule::NotRead
                            if !stack.contains(return_address) =>
                        {
                            if self.frames.len() >= MAX_FRAMES {
                                return;
                            }
                            self.end = Some(caller.sp);
                            self.frames.push(caller);
                            continue;
                        }
                        CodeRule::Rule(_)
                        | CodeRule::Unknown
                        | CodeRule::NotRead
                        | CodeRule::NoCode => UnwindError::NoCode(return_address),
                    };
                    (error, Some(caller.sp))
                }
                Ok(Step::Outermost) => return,
                Ok(Step::Encloses { end }) => {
                    self.end = Some(end);
                    return;
                }
                // A frame that begins at `until` encloses it, whatever its size.
                Err(_) if until == Some(frame.sp) => {
                    self.end = None;
                    return;
                }
                Err(error) => (error, None),
            };
            let is_full = self.frames.len() >= MAX_FRAMES;
            // What is known further out has not called this frame.
            let is_elsewhere = matches!(error, UnwindError::Elsewhere(_));
            let resumed = unwinder.resumed(frame);
            let Some(resumed) = resumed.filter(|_| !is_full && !is_elsewhere) else {
                (self.end, self.stopped) = (end, Some(error));
                return;
            };
            rule = unwinder.rule(&resumed);
            self.end = Some(resumed.sp);
            self.frames.push(resumed);
        }
    }
}
