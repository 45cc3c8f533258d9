//! Merges native frames with managed frames on the same stack: a managed frame lies inside its caller's native frame.

use super::super::missing::{lacks_own_frame, stopped_among_linked_frames};
use super::super::steps::Step;
use super::{Inside, Item, Merged, Merging, ShownFn};
use crate::seam::CodeKind;
use crate::seam::stack_positions::StackPositions;
use varid_model::{Address, FrameAddress, Reason, Stack};
use varid_shim::{CapturedSample, FramePc, ManagedFrame, flags};
use varid_unwind::Reached;

/// Merges native frames with the managed frames inside them.
pub(in super::super) fn by_address(of: Merging<'_>, is_shown: ShownFn<'_>, items: &mut Vec<Item>) {
    let ordinary = first_on_ordinary_stack(of.record, of.steps);
    let frames_there = of.steps.get(ordinary..).unwrap_or_default();
    let sp = frames_there.first().map(|innermost| innermost.sp);
    let switched = !frames_there.is_sorted_by_key(|frame| frame.sp);
    let sp_of_stack = sp.unwrap_or(of.record.ordinary_sp());
    let mut merge = ByAddress {
        merged: Merged::new(of, is_shown, items),
        positions: StackPositions::of(of.managed, sp_of_stack, switched),
        ordinary,
        sp,
        inside: Inside::Nothing,
        crossing: Crossing::Nothing,
    };
    let mut last = Caller::Any;
    for (depth, step) in of.steps.iter().enumerate() {
        merge.frames_inside(depth, step);
        if step.reached == Reached::Resumed {
            merge.merged.items.push(Item::NativeStretch);
        }
        last = merge.native_frame(depth, step);
    }
    merge.outer_frames(last);
}

/// The native frames since the previous managed one, where managed frames may lie off the stack or be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Crossing {
    /// Other frames.
    Nothing,
    /// The VM's. The previous managed frame is not linked yet: the frames that they execute are the missing ones.
    Unlinked,
    /// A call into the interpreter, or out of it.
    Bridge,
    /// The interpreter of frames that lie off the stack.
    InterpreterOfDetached,
}

/// What the last native frame says of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Caller {
    /// It is native, and not unwound.
    Native,
    /// Nothing.
    Any,
}

struct ByAddress<'a> {
    merged: Merged<'a>,
    positions: StackPositions,
    /// The depth of the first native frame on the thread's ordinary stack, where managed frames lie.
    ordinary: usize,
    /// That frame's stack pointer.
    sp: Option<Address>,
    inside: Inside,
    crossing: Crossing,
}

impl ByAddress<'_> {
    /// Returns true if the next managed frame lies off the stack.
    fn is_next_detached(&self) -> bool {
        self.positions.is_detached(self.merged.done)
    }

    /// Appends the managed frames inside the native frame at `depth`.
    fn frames_inside(&mut self, depth: usize, step: &Step) {
        if depth <= self.ordinary {
            return;
        }
        while let Some(next) = self.merged.next()
            && self.positions.address(self.merged.done, next) < step.sp
        {
            if !self.is_live(next, depth) {
                self.merged.take();
                continue;
            }
            self.crossing = match self.merged.of.unlinked == Some(self.merged.done) {
                true => Crossing::Unlinked,
                false => Crossing::Nothing,
            };
            self.merged.managed();
            self.inside = match next.is_quick() || next.is_outermost() {
                true => Inside::Edge,
                false => Inside::Fragment,
            };
        }
    }

    /// Returns true if a managed frame inside the native frame at `depth` has not returned: the VM's note of it may be outdated.
    fn is_live(&self, frame: &ManagedFrame, depth: usize) -> bool {
        let of = &self.merged.of;
        let callee = depth.checked_sub(1).and_then(|callee| of.steps.get(callee));
        let callee = callee.and_then(|callee| callee.kind);
        match frame.pc() {
            // While the code that calls a native method makes a frame for it, what an earlier call left there is not this one's.
            FramePc::Native { .. } => {
                of.native_caller.is_some()
                    && callee == of.native_caller
                    && (depth > self.ordinary.saturating_add(1) || self.sp != Some(frame.address()))
            }
            // Unwinding would have met it: a note that is outdated led there. By frame pointers native code may be left without meeting it.
            FramePc::Compiled { .. } => callee.is_none(),
            _ => true,
        }
    }

    /// Appends the native frame at `depth`.
    fn native_frame(&mut self, depth: usize, step: &Step) -> Caller {
        let of = self.merged.of;
        if step.kind == Some(CodeKind::Bridge) && self.crossing == Crossing::Nothing {
            self.crossing = Crossing::Bridge;
        }
        if step.is_method_frame() {
            return self.method_frame(depth, step);
        }
        if self.crossing == Crossing::Unlinked {
            if step.interprets_listed_frames() {
                return Caller::Any;
            }
            if step.kind.is_none() {
                self.crossing = Crossing::Nothing;
            }
        }
        let of_detached =
            self.crossing == Crossing::InterpreterOfDetached || self.is_next_detached();
        if step.interprets_listed_frames() && of_detached {
            self.interpreter_of_detached();
            return Caller::Any;
        }
        // Without its own managed frame it is shown, and so is that the frame is missing; with only the leaf unwound nobody knows.
        if step.kind == Some(CodeKind::Interpreter)
            && of.steps.len() > 1
            && lacks_own_frame(of.record, of.steps, depth, self.merged.next())
        {
            self.merged.push(Item::Native(step.address));
            if !step.is_at_sp {
                self.merged.push(Item::Missing(self.missing_own_frame()));
            }
            return Caller::Any;
        }
        if !self.is_machinery(depth, step) {
            let caller = of.steps.get(depth.saturating_add(1));
            let returns_from_handler =
                depth > 0 && caller.is_some_and(|caller| caller.address.is_instruction());
            self.merged.push(Item::Native(match returns_from_handler {
                // The kernel has put its first instruction there, and no call lies before it.
                true => FrameAddress::calling_at(step.address.recorded()),
                false => step.address,
            }));
        }
        Caller::Any
    }

    /// The reason for an interpreter's missing managed frame.
    fn missing_own_frame(&self) -> Reason {
        match self.merged.of.record.has(flags::NOT_READY) {
            true => Reason::VmNotReady,
            false => Reason::TornFrames,
        }
    }

    /// Appends a native frame that is the frame of a method.
    fn method_frame(&mut self, depth: usize, step: &Step) -> Caller {
        if self.crossing == Crossing::Bridge && self.is_next_detached() {
            // Before the interpreter's loop is entered nobody tells whether it is for them or for what this code has called.
            while self.is_next_detached() {
                self.merged.take();
            }
            self.merged.push(Item::Missing(Reason::TornFrames));
        }
        self.crossing = Crossing::Nothing;
        let inside = std::mem::replace(&mut self.inside, Inside::Edge);
        // The walk may have found the same frame, and knows its method where the copy of the stack does not reach.
        let walked = self.merged.next().filter(|next| next.address() == step.sp);
        if let Some(walked) = walked {
            let index = self.merged.take();
            // A note that is outdated leads to it by another call.
            if matches!(walked.pc(), FramePc::Compiled { returns, .. } if step.address == FrameAddress::Return(returns))
            {
                self.merged.push_managed(index, Item::Walked(index));
                return match walked.is_outermost() {
                    true => Caller::Native,
                    false => Caller::Any,
                };
            }
        }
        self.merged.push(Item::MethodsOf { depth, inside });
        Caller::Any
    }

    /// Appends the frames off the stack that an interpreter executes, for its innermost native frame.
    fn interpreter_of_detached(&mut self) {
        let before = std::mem::replace(&mut self.crossing, Crossing::InterpreterOfDetached);
        if before == Crossing::InterpreterOfDetached {
            return;
        }
        while let Some(next) = self.merged.next()
            && self.is_next_detached()
        {
            self.merged.managed();
            self.inside = Inside::Fragment;
            if next.is_outermost() {
                self.inside = Inside::Edge;
                break;
            }
        }
    }

    /// Returns true if a native frame is omitted because managed frames stand for it.
    fn is_machinery(&self, depth: usize, step: &Step) -> bool {
        let is_last = self.merged.next().is_none();
        let among_managed = self.inside != Inside::Nothing || !is_last;
        match step.kind {
            // Stands for the managed frame that it executes; without one it is all there is.
            Some(CodeKind::Loop | CodeKind::Interpreter) => among_managed,
            Some(CodeKind::Bridge) => depth > 0 && among_managed,
            // Between two frames of one fragment there is nothing but an invoke.
            Some(CodeKind::Runtime) => depth > 0 && !is_last && self.inside == Inside::Fragment,
            _ => false,
        }
    }

    /// Appends the frames outside the native ones.
    fn outer_frames(mut self, last: Caller) {
        let of = self.merged.of;
        if last == Caller::Native {
            self.merged.items.push(Item::NativeStretch);
        }
        self.drop_outdated_notes();
        self.merged.leaf();
        // A managed frame that unwinding has come to and cannot leave: its caller is missing, it is not.
        let outermost = of.steps.last();
        let mut ends_managed = last == Caller::Any && outermost.is_some_and(Step::is_method_frame);
        if let Some(outermost) = outermost.filter(|_| of.stopped.is_some()) {
            while self
                .merged
                .next()
                .is_some_and(|next| next.address() == outermost.sp)
            {
                self.merged.managed();
                ends_managed = true;
            }
        }
        self.frames_beyond_unwinding(ends_managed);
        self.merged.callers();
    }

    /// Drops frames that have returned, to which an outdated note of the VM's led.
    fn drop_outdated_notes(&mut self) {
        let of = self.merged.of;
        if of
            .steps
            .iter()
            .any(|step| step.kind == Some(CodeKind::Compiled))
        {
            // Compiled code leaves behind the note of a call that is over. Unwinding has seen no frame that holds it.
            if self.merged.done == 0 && of.managed.first().is_some_and(ManagedFrame::is_quick) {
                self.merged.take();
            }
            if of.stack == Stack::None {
                self.merged.done = of.managed.len();
            }
        }
        // An outdated note may also have led into the outermost frame that was unwound.
        let is_in_vm = of.steps.last().is_some_and(|step| step.kind.is_some());
        while let Some(next) = self.merged.next()
            && is_in_vm
            && matches!(next.pc(), FramePc::Compiled { .. })
            && of.end.is_some_and(|end| next.address() < end)
        {
            self.merged.take();
        }
    }

    /// Where unwinding stopped early: appends the managed frames before the missing ones, and the reason. `ends_managed`: the outermost frame
    /// is the frame of a method.
    fn frames_beyond_unwinding(&mut self, ends_managed: bool) {
        let of = self.merged.of;
        let Some(error) = of.stopped else {
            return;
        };
        // Frames beyond what is copied of the stack may be managed ones.
        let is_unwound = of.record.has(flags::LINKED_ONLY) || of.has_compiled_code;
        // Of linked frames none is missing where unwinding stops.
        let among_linked = !ends_managed && stopped_among_linked_frames(of.record, of.steps);
        let rest = self.merged.rest();
        let may_lack_frames = match of.stack {
            Stack::Full => true,
            _ if among_linked => rest.iter().any(ManagedFrame::is_quick),
            _ => !rest.is_empty() || is_unwound || ends_managed,
        };
        if !may_lack_frames {
            return;
        }
        // What is missing lies further out than what was unwound, and, below the kernel, than the frame that the leaf's loop executes.
        let unwound = of.steps.last().map(|step| step.sp);
        while let Some(next) = self.merged.next()
            && (self.merged.of.is_empty
                || (!self.is_next_detached() && Some(next.address()) <= unwound))
        {
            self.merged.caller();
        }
        if among_linked {
            let noted = self.merged.rest().iter().position(ManagedFrame::is_quick);
            for _ in 0..noted.map_or(0, |at| at.saturating_add(1)) {
                self.merged.caller();
            }
        }
        self.merged.push(Item::Missing(error.reason()));
    }
}

/// Returns the depth of the first native frame on the thread's ordinary stack, where managed frames lie. The frames before it are those of a
/// signal handler on an alternate stack.
fn first_on_ordinary_stack(record: &CapturedSample, steps: &[Step]) -> usize {
    let is_of_handler = |step: &&Step| record.is_on_alternate_stack(step.sp);
    let of_handler = steps.iter().take_while(is_of_handler).count();
    // A stack grows down: what lies below its callee is on another one.
    let callers = steps.get(1..).unwrap_or_default();
    let mut pairs = steps.iter().zip(callers);
    let descends = pairs.rposition(|(step, caller)| caller.sp < step.sp);
    of_handler.max(descends.map_or(0, |callee| callee.saturating_add(1)))
}
