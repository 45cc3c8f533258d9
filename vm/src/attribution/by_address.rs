//! How are native frames merged with managed frames on the same stack? A managed frame lies inside the native frame of its caller.

use super::chain::{Chain, Inside};
use super::missing::{lacks_own_frame, reason, stopped_among_linked_frames};
use crate::seam::stack_positions::StackPositions;
use crate::seam::{CodeKind, Vm, VmCompiler};
use varid_model::{Address, FrameAddress, Reason, Stack};
use varid_process::Process;
use varid_shim::{CapturedSample, FramePc, ManagedFrame, flags};
use varid_unwind::{NativeFrame, NativeStack};

impl Chain<'_> {
    /// Native frames, and the managed ones that lie within them.
    pub(super) fn merge_by_address(
        &mut self,
        record: &CapturedSample,
        native: &NativeStack,
        managed: &[ManagedFrame],
        vm: Option<&dyn Vm>,
        stack: Stack,
    ) {
        let mut rest = managed;
        // Frames beyond what is copied of the stack may be managed ones.
        let is_unwound = record.has(flags::LINKED_ONLY)
            || vm
                .and_then(|vm| vm.compiler())
                .is_some_and(VmCompiler::has_code);
        let missing = match record.has(flags::NOT_READY) {
            true => Reason::VmNotReady,
            false => Reason::TornFrames,
        };
        let mut inside = Inside::Nothing;
        let mut enclosing = None; // what the native frame below the next one is
        let mut has_compiled = false;
        let mut interprets_detached = false; // what the native frames execute since frames that lie elsewhere
        let mut is_bridged = false; // frames of a call into the interpreter, or out of it, since a managed frame
        let mut called_natively = false; // the frame that came last, by frames that are not unwound
        let ordinary = first_on_ordinary_stack(record, native);
        let frames_there = native.frames.get(ordinary..).unwrap_or_default();
        let sp = frames_there.first().map(|innermost| innermost.sp);
        let switched = !frames_there.is_sorted_by_key(|frame| frame.sp);
        let positions = StackPositions::of(managed, sp.unwrap_or(record.ordinary_sp()), switched);
        let innermost = |rest: &[ManagedFrame]| managed.len().saturating_sub(rest.len());
        for (depth, frame) in native.frames.iter().enumerate() {
            called_natively = false;
            while let Some((next, after)) = rest.split_first().filter(|(next, _)| {
                depth > ordinary && positions.address(innermost(rest), next) < frame.sp
            }) {
                let is_live = match next.pc() {
                    // While the code that calls a native method makes a frame for it, what an earlier call left there is not this one's.
                    FramePc::Native { .. } => {
                        vm.is_some_and(|vm| vm.has_live_native_method(enclosing))
                            && (depth > ordinary.saturating_add(1) || sp != Some(next.address()))
                    }
                    // Unwinding would have met it: a note that is outdated led there. By frame pointers native code may be left without meeting it.
                    FramePc::Compiled { .. } => enclosing.is_none(),
                    _ => true,
                };
                if is_live {
                    self.managed(next);
                    (interprets_detached, is_bridged) = (false, false);
                    inside = if next.is_quick() || next.is_outermost() {
                        Inside::Edge
                    } else {
                        Inside::Fragment
                    };
                }
                rest = after;
            }
            let kind = vm.and_then(|vm| code_at(vm, frame.lookup(), &self.process.process));
            enclosing = kind;
            is_bridged |= kind == Some(CodeKind::Bridge);
            if let (Some(CodeKind::NativeFrames | CodeKind::Compiled), Some(vm)) = (kind, vm) {
                if is_bridged && !interprets_detached && positions.is_detached(innermost(rest)) {
                    // Before the interpreter's loop is entered nobody tells whether it is for them or for what this code has called.
                    while positions.is_detached(innermost(rest)) {
                        rest = rest.get(1..).unwrap_or_default();
                    }
                    self.missing(Reason::TornFrames);
                }
                (interprets_detached, is_bridged) = (false, false);
                has_compiled |= kind == Some(CodeKind::Compiled);
                // The walk may have found the same frame, and knows its method where the copy of the stack does not reach.
                let walked = rest
                    .split_first()
                    .filter(|(next, _)| next.address() == frame.sp);
                if let Some((next, after)) = walked {
                    rest = after;
                    // A note that is outdated leads to it by another call.
                    if matches!(next.pc(), FramePc::Compiled { returns, .. } if frame.address == FrameAddress::Return(returns))
                    {
                        self.managed(next);
                        called_natively = next.is_outermost();
                        self.quick.get_or_insert(frame.sp.get());
                        inside = Inside::Edge;
                        continue;
                    }
                }
                self.native_frame(frame, inside, vm, record);
                inside = Inside::Edge;
                continue;
            }
            // The interpreter of frames that lie elsewhere: it executes the first of them, and then the others. One that keeps its frames on
            // the stack executes none of those.
            let interprets = matches!(kind, Some(CodeKind::Loop | CodeKind::Interpreter))
                && !vm.is_some_and(|vm| vm.is_at_sp(frame.lookup()));
            if interprets && (interprets_detached || positions.is_detached(innermost(rest))) {
                if std::mem::replace(&mut interprets_detached, true) {
                    continue;
                }
                while let Some((next, after)) = rest.split_first()
                    && positions.is_detached(innermost(rest))
                {
                    self.managed(next);
                    rest = after;
                    inside = Inside::Fragment;
                    if next.is_outermost() {
                        inside = Inside::Edge;
                        break;
                    }
                }
                continue;
            }
            let among_managed = inside != Inside::Nothing || !rest.is_empty();
            // Without its own managed frame it is shown, and so is that the frame is missing; with only the leaf unwound nobody knows.
            if let (Some(CodeKind::Interpreter), Some(vm)) = (kind, vm)
                && native.frames.len() > 1
                && lacks_own_frame(record, vm, native, depth, rest.first())
            {
                self.native(frame.address);
                if !vm.is_at_sp(frame.lookup()) {
                    self.missing(missing);
                }
                continue;
            }
            let machinery = match kind {
                // Stands for the managed frame that it executes; without one it is all there is.
                Some(CodeKind::Loop | CodeKind::Interpreter) => among_managed,
                Some(CodeKind::Bridge) => depth > 0 && among_managed,
                // Between two frames of one fragment there is nothing but an invoke.
                Some(CodeKind::Runtime) => {
                    depth > 0 && !rest.is_empty() && inside == Inside::Fragment
                }
                _ => false,
            };
            if !machinery {
                let returns_from_handler = depth > 0
                    && native
                        .frames
                        .get(depth.saturating_add(1))
                        .is_some_and(|caller| caller.address.is_instruction());
                self.native(match returns_from_handler {
                    // The kernel has put its first instruction there, and no call lies before it.
                    true => FrameAddress::calling_at(frame.address.recorded()),
                    false => frame.address,
                });
            }
        }
        self.native_stretch |= called_natively;
        if has_compiled {
            // Compiled code leaves behind the note of a call that is over. Unwinding has seen no frame that holds it.
            let note = managed.first().filter(|first| first.is_quick());
            if note.is_some() && rest.len() == managed.len() {
                rest = rest.get(1..).unwrap_or_default();
            }
            if stack == Stack::None {
                rest = &[];
            }
        }
        // An outdated note may also have led into the outermost frame that was unwound.
        while let Some((next, after)) = rest.split_first()
            && enclosing.is_some()
            && matches!(next.pc(), FramePc::Compiled { .. })
            && native.end.is_some_and(|end| next.address() < end)
        {
            rest = after;
        }
        // An interrupted loop has been left out for the frame that it executes: that is the leaf.
        while let Some((next, after)) = rest.split_first().filter(|_| self.leaf) {
            self.managed(next);
            self.native_stretch |= next.is_outermost();
            rest = after;
        }
        self.leaf_at_least();
        // A managed frame that unwinding has come to and cannot leave: its caller is missing, it is not.
        let mut ends_managed = !called_natively
            && matches!(enclosing, Some(CodeKind::NativeFrames | CodeKind::Compiled));
        if native.stopped.is_some()
            && let Some(last) = native.frames.last()
        {
            while let Some((next, after)) = rest
                .split_first()
                .filter(|(next, _)| next.address() == last.sp)
            {
                self.managed(next);
                ends_managed = true;
                rest = after;
            }
        }
        // Of linked frames none is missing where unwinding stops.
        let among_linked = !ends_managed && stopped_among_linked_frames(record, native);
        let may_lack_frames = match stack {
            Stack::Full => true,
            _ if among_linked => rest.iter().any(ManagedFrame::is_quick),
            _ => !rest.is_empty() || is_unwound || ends_managed,
        };
        if let Some(error) = native.stopped.as_ref().filter(|_| may_lack_frames) {
            // What is missing lies further out than what was unwound, and, below the kernel, than the frame that the leaf's loop executes.
            let unwound = native.frames.last().map(|frame| frame.sp);
            while let Some((next, after)) = rest.split_first()
                && (self.user.is_empty()
                    || (!positions.is_detached(innermost(rest)) && Some(next.address()) <= unwound))
            {
                self.caller(next, after.first());
                rest = after;
            }
            if among_linked {
                let noted = rest.iter().position(ManagedFrame::is_quick);
                let (inside, outside) = rest.split_at(noted.map_or(0, |at| at.saturating_add(1)));
                for (at, frame) in inside.iter().enumerate() {
                    self.caller(frame, rest.get(at.saturating_add(1)));
                }
                rest = outside;
            }
            self.missing(reason(error));
        }
        self.callers(record.tid.get(), rest);
    }
}

/// What the code at an address does, if it is the VM's own or compiled.
fn code_at(vm: &dyn Vm, address: Address, process: &Process) -> Option<CodeKind> {
    vm.code_at(address).or_else(|| {
        let is_compiled = vm.compiler()?.is_code(address, process);
        is_compiled.then_some(CodeKind::Compiled)
    })
}

/// Which native frame is the first one on the thread's ordinary stack, where managed frames lie: those before it are of a signal's handler
/// on an alternate stack.
fn first_on_ordinary_stack(record: &CapturedSample, native: &NativeStack) -> usize {
    let frames = &native.frames;
    let is_of_handler = |frame: &&NativeFrame| record.is_on_alternate_stack(frame.sp);
    let of_handler = frames.iter().take_while(is_of_handler).count();
    // A stack grows down: what lies below its callee is on another one.
    let callers = frames.get(1..).unwrap_or_default();
    let mut pairs = frames.iter().zip(callers);
    let descends = pairs.rposition(|(frame, caller)| caller.sp < frame.sp);
    of_handler.max(descends.map_or(0, |callee| callee.saturating_add(1)))
}
