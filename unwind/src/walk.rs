//! How is a stack unwound, frame by frame?

use crate::error::UnwindError;
use crate::native_stack::{NativeFrame, NativeStack};
use crate::stack_slice::StackSlice;
use crate::step::{Step, Unwinder};
use crate::unwind_info::{CodeRule, UnwindInfo};
use crate::unwound_stack::{Common, UnwoundStack};
use varid_model::{Address, FrameAddress, Regs};

/// No thread's stack is deeper; a longer one is a loop.
pub(crate) const MAX_FRAMES: usize = 4096;

impl NativeStack {
    /// Replaces the frames by those of a thread with these registers and this copy of its stack, unwound to the frame that
    /// encloses the address `until` of the stack, or to the outermost one.
    ///
    /// Without an instruction and a stack pointer there are no frames. Why unwinding ended is in
    /// [`stopped`](NativeStack::stopped).
    pub fn unwind(
        &mut self,
        regs: &Regs,
        stack: StackSlice<'_>,
        until: Option<Address>,
        info: &mut (impl UnwindInfo + ?Sized),
    ) {
        self.unwind_until(regs, stack, until, None, info);
    }

    /// The same to the outermost frame. `before`: the stack of the same thread as it was unwound before, since when the code of the
    /// process has not changed. From the first frame that both have, with the same stack above it, its frames are taken.
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
        };
        let mut rule = unwinder.rule(&leaf);
        self.frames.push(leaf);
        while let Some(frame) = self.frames.last() {
            match unwinder.step(frame, rule) {
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
                    // A stack may be executable, and a word of it be taken for a return address by a wrong rule.
                    if stack.contains(return_address) || matches!(rule, CodeRule::NoCode) {
                        self.end = Some(caller.sp);
                        self.stopped = Some(UnwindError::NoCode(return_address));
                        return;
                    }
                    if self.frames.len() >= MAX_FRAMES {
                        return;
                    }
                    self.end = Some(caller.sp);
                    self.frames.push(caller);
                }
                Ok(Step::Outermost) => return,
                Ok(Step::Encloses { end }) => {
                    self.end = Some(end);
                    return;
                }
                Err(error) => {
                    self.end = None;
                    // A frame that begins at `until` encloses it, wherever it ends.
                    self.stopped = Some(error).filter(|_| until != Some(frame.sp));
                    return;
                }
            }
        }
    }
}
