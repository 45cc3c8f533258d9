//! A callchain in the making: native and managed frames in one order, and what is missing.

use super::RemapTable;
use super::missing::{lacks_own_frame, reason, stopped_among_linked_frames};
use super::shared_code::{address_by_caller, is_shared};
use crate::code_kind::CodeKind;
use crate::kind::{FrameMethods, Methods, Vm};
use crate::stack_positions::StackPositions;
use crate::{ManagedProcess, Method};
use std::ops::Range;
use varid_model::{Address, FrameAddress, Marker, MonotonicNs, Precision, Reason, Stack};
use varid_recording::remap::address_of;
use varid_shim::{CapturedSample, FramePc, ManagedFrame, flags};
use varid_unwind::{NativeFrame, NativeStack, UnwindError};

/// Which managed frame came last while native ones were merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    /// None yet.
    Nothing,
    /// One whose caller is managed, too.
    Fragment,
    /// One that native code may have called.
    Edge,
}

/// A callchain in the making.
pub(super) struct Chain<'a> {
    pub process: &'a mut ManagedProcess,
    remap: &'a mut RemapTable,
    /// When it was sampled.
    time: MonotonicNs,
    /// The user's instruction.
    at: FrameAddress,
    /// The next frame is the sampled instruction itself.
    pub leaf: bool,
    /// Native frames that are left out lie before the next one.
    pub native_stretch: bool,
    user: &'a mut Vec<Address>,
    /// Where a frame is whose method is not known yet, because others have the same instructions.
    shared: Option<usize>,
    /// Which addresses stand for frames that were seen before.
    pub known: Range<usize>,
    /// Where the first frame lies that is kept as compiled code keeps its own.
    pub quick: Option<u64>,
    /// How well the instruction of the innermost managed frame is known.
    pub precision: Precision,
}

impl<'a> Chain<'a> {
    /// The chain of a record whose user part was interrupted at `at`: its addresses become those
    /// of `user`, leaf first.
    pub fn new(
        record: &CapturedSample,
        at: FrameAddress,
        process: &'a mut ManagedProcess,
        remap: &'a mut RemapTable,
        user: &'a mut Vec<Address>,
    ) -> Self {
        user.clear();
        Self {
            process,
            remap,
            time: record.time,
            at,
            // A kernel sample's user frames are all callers of the kernel's.
            leaf: !record.has(flags::IN_KERNEL),
            native_stretch: false,
            user,
            shared: None,
            known: 0..0,
            quick: None,
            precision: Precision::Exact,
        }
    }

    /// Native frames, and the managed ones that lie within them.
    pub fn merge_by_address(
        &mut self,
        record: &CapturedSample,
        native: &NativeStack,
        managed: &[ManagedFrame],
        vm: Option<&dyn Vm>,
        stack: Stack,
    ) {
        let mut rest = managed;
        // Frames beyond what is copied of the stack may be managed ones.
        let is_unwound =
            record.has(flags::LINKED_ONLY) || vm.is_some_and(Vm::unwinds_compiled_code);
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
            let kind = vm.and_then(|vm| vm.code_at(frame.lookup(), &self.process.process));
            enclosing = kind;
            is_bridged |= kind == Some(CodeKind::Bridge);
            if let (Some(CodeKind::NativeFrames | CodeKind::Compiled), Some(vm)) = (kind, vm) {
                if is_bridged && !interprets_detached && positions.is_detached(innermost(rest)) {
                    // Before the interpreter's loop is entered nobody tells whether it is for them or for what this code has called.
                    while positions.is_detached(innermost(rest)) {
                        rest = rest.get(1..).unwrap_or_default();
                    }
                    self.leaf_at_least();
                    self.marker(Marker::Reason(Reason::TornFrames));
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
                && !vm.is_some_and(|vm| vm.facts().is_at_sp(frame.lookup().get()));
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
                && lacks_own_frame(record, vm.facts(), native, depth, rest.first())
            {
                self.native(frame.address);
                if !vm.facts().is_at_sp(frame.lookup().get()) {
                    self.marker(Marker::Reason(missing));
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
            self.marker(Marker::Reason(reason(error)));
        }
        self.callers(record.tid.get(), rest);
    }

    /// Managed frames whose callees are managed, or left out.
    pub fn callers(&mut self, tid: u32, frames: &[ManagedFrame]) {
        if frames.is_empty() {
            return;
        }
        let knowledge = self.process.knowledge();
        let mut stack = self.process.callchains.take(tid);
        let known = stack.retain_common(frames, self.native_stretch, knowledge);
        let (inner, outer) = frames.split_at(frames.len().saturating_sub(known));
        for (at, frame) in inner.iter().enumerate() {
            let start = self.user.len();
            let next = frames.get(at.saturating_add(1));
            stack.starts.push(self.caller(frame, next).then_some(start));
        }
        if let Some(caller) = stack.addresses().next() {
            self.name_callee(caller, self.user.len());
        }
        if self.process.knowledge() != knowledge {
            // More of the process has been read to resolve one of them; it may concern the others, too.
            for (at, frame) in outer.iter().enumerate() {
                self.caller(frame, outer.get(at.saturating_add(1)));
            }
            return;
        }
        let start = self.user.len();
        self.user.extend(stack.addresses());
        self.known = start..self.user.len();
        stack.add(inner, self.user.get(..start).unwrap_or_default());
        self.process.callchains.put(tid, stack);
    }

    /// A managed frame that has called the one before, and has been called by `next`; whether it is known for certain.
    fn caller(&mut self, frame: &ManagedFrame, next: Option<&ManagedFrame>) -> bool {
        let is_known = self.managed(frame);
        // Who called the outermost frame of a fragment is native; the next one out called that.
        // Whoever called a quick frame may have been nterp, which only an unwinder sees; but compiled code that has called it has been walked.
        let by_compiled = next.is_some_and(|next| matches!(next.pc(), FramePc::Compiled { .. }));
        self.native_stretch |= frame.is_outermost() || (frame.is_quick() && !by_compiled);
        is_known
    }

    /// A chain has its leaf, whatever is known of it.
    pub fn leaf_at_least(&mut self) {
        if self.leaf {
            self.native(self.at);
        }
    }

    /// Appends a marker with the reason if managed frames are missing.
    pub fn finish(
        &mut self,
        record: &CapturedSample,
        native: &NativeStack,
        managed: &[ManagedFrame],
        in_interpreter: bool,
        incomplete: Option<Reason>,
    ) {
        if in_interpreter && managed.is_empty() {
            let reason = match &self.process.vm_problem {
                Some(_) => Reason::UnknownVm,
                None if record.has(flags::NOT_READY) => Reason::VmNotReady,
                None if native.stopped == Some(UnwindError::NoStack) => Reason::Truncated,
                None => Reason::TornFrames,
            };
            self.marker(Marker::Reason(reason));
        } else if let Some(reason) = incomplete.filter(|reason| !self.ends_with(*reason)) {
            self.marker(Marker::Reason(reason));
        }
    }

    fn push(&mut self, frame: FrameAddress) {
        let frame = match frame {
            // Of what a signal interrupted: in a callchain it is looked up as a caller, one byte back.
            FrameAddress::Instruction(at) if !self.user.is_empty() => FrameAddress::calling_at(at),
            known => known,
        };
        self.user.push(frame.recorded());
        self.leaf = false;
    }

    /// A frame at an instruction, which is what the leaf executes, and a call of any other.
    fn push_executed(&mut self, instruction: u64) {
        let instruction = Address::new(instruction);
        self.push(match self.leaf {
            true => FrameAddress::Instruction(instruction),
            false => FrameAddress::calling_at(instruction),
        });
    }

    /// A frame of a method, at this instruction.
    fn executed(&mut self, instruction: u64) {
        self.push_executed(instruction);
        let Some((&frame, callees)) = self.user.split_last() else {
            return;
        };
        let at = callees.len();
        self.name_callee(frame, at);
        let is_shared = is_shared(self.process.space(), Address::new(instruction));
        self.shared = is_shared.then_some(at);
    }

    /// The frame at this place of the callchain may tell which method the frame inside it is of.
    fn name_callee(&mut self, caller: Address, place: usize) {
        let Some(shared) = self.shared.take() else {
            return;
        };
        // Else there is something between the two.
        if shared.checked_add(1) == Some(place)
            && let Some(callee) = self.user.get_mut(shared)
        {
            let space = &mut self.process.process.space;
            *callee = address_by_caller(*callee, caller, space).unwrap_or(*callee);
        }
    }

    /// A native frame.
    pub fn native(&mut self, frame: FrameAddress) {
        let unmapped = self.leaf && self.process.space().at(frame.recorded().get()).is_none();
        self.push(frame);
        if unmapped {
            self.marker(Marker::Reason(Reason::UnknownMapping));
        }
    }

    /// What stands where frames are missing.
    pub fn marker(&mut self, marker: Marker) {
        self.push(marker_frame(marker));
    }

    /// Whether it is said already that the outermost frames are missing for this reason.
    fn ends_with(&self, reason: Reason) -> bool {
        let marker = marker_frame(Marker::Reason(reason));
        self.user.last() == Some(&marker.recorded())
    }

    /// A frame of compiled code: the frames of the methods that it executes; whether their places are known.
    fn compiled(&mut self, sp: Address, method: Address, returns: Address) -> bool {
        let vm = self.process.vm.clone();
        let frames = vm
            .ok_or(Reason::ArtQuick)
            .and_then(|vm| vm.compiled_frame(sp, method, returns, self.time, self.process))
            .and_then(with_noted_call);
        let Ok(frames) = frames.map_err(|reason| self.method(Err(reason))) else {
            return false;
        };
        let mut all_known = true;
        for frame in &frames.frames {
            all_known &= self.managed(frame);
        }
        all_known
    }

    /// A managed frame; whether its place is known.
    pub fn managed(&mut self, frame: &ManagedFrame) -> bool {
        if let FramePc::Compiled { method, returns } = frame.pc() {
            return self.compiled(frame.address(), method, returns);
        }
        let place = self.place(frame);
        match place {
            Ok(Some(address)) => self.method(Ok(address)),
            Ok(None) => {}
            Err(reason) => self.method(Err(reason)),
        }
        place.is_ok()
    }

    /// A managed frame: the address of its bytecode, or why that is not known.
    pub fn method(&mut self, place: Result<u64, Reason>) {
        if std::mem::take(&mut self.native_stretch) && !self.leaf {
            self.marker(Marker::Native);
        }
        match place {
            Ok(address) => self.executed(address),
            Err(reason) => {
                // Nothing but the instruction itself says where it was, also below the kernel.
                if self.leaf || self.user.is_empty() {
                    self.push(self.at);
                }
                self.marker(Marker::Reason(reason));
            }
        }
    }

    /// A native frame that is a method's own; `inside`: what lies inside it.
    fn native_frame(
        &mut self,
        frame: &NativeFrame,
        inside: Inside,
        vm: &dyn Vm,
        record: &CapturedSample,
    ) {
        let methods = vm.native_frame(frame, record, self.process);
        let methods = match inside {
            Inside::Nothing => methods,
            Inside::Fragment | Inside::Edge => methods.and_then(with_noted_call),
        };
        match methods {
            Ok(methods) => {
                for frame in &methods.frames {
                    self.managed(frame);
                }
                self.quick.get_or_insert(frame.sp.get());
                if inside == Inside::Nothing {
                    self.precision = methods.precision;
                }
            }
            Err(reason) => {
                self.native(frame.address);
                self.marker(Marker::Reason(reason));
            }
        }
    }

    /// The address that stands for a managed frame; None: the VM's own method.
    fn place(&mut self, frame: &ManagedFrame) -> Result<Option<u64>, Reason> {
        let (method, pc) = match frame.pc() {
            FramePc::Absolute(pc) => {
                return match self.process.process.has_bytecode_at(pc.get()) {
                    true => Ok(Some(pc.get())),
                    false => Err(Reason::UnknownMapping),
                };
            }
            FramePc::Relative { method, .. }
            | FramePc::Exported { method, .. }
            | FramePc::Compiled { method, .. }
            | FramePc::Native { method } => (method.get(), frame.pc()),
        };
        let method = self.process.method(method);
        let address = match &method {
            Method::Runtime => return Ok(None),
            Method::Unknown => return Err(Reason::UnknownMethod),
            Method::Gone => return Err(Reason::VmGone),
            Method::Known {
                code: Some(code), ..
            } => {
                let pc = match pc {
                    FramePc::Relative { offset, .. } => {
                        method.instruction(offset).ok_or(Reason::TornFrames)?
                    }
                    FramePc::Exported { pc, .. } if code.contains(&pc.get()) => pc.get(),
                    // Compiled code of a method that has bytecode, or one that has not yet told where it is: its entry stands for it.
                    _ => code.start,
                };
                method.own_address(pc, &mut self.process.process.space)
            }
            Method::Known {
                image,
                index,
                code: None,
            } => {
                let slot = self.remap.slot(image, *index);
                slot.ok_or(Reason::UnknownMethod)?
            }
        };
        Ok(Some(address))
    }
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

/// The frame that a callchain has for a marker: looked up as a caller, one byte back.
const fn marker_frame(marker: Marker) -> FrameAddress {
    FrameAddress::calling_at(address_of(marker))
}

/// The methods of a frame that has called another method, or the VM to be seen by it: the compiler notes down each place that it does so.
fn with_noted_call(methods: FrameMethods) -> Result<FrameMethods, Reason> {
    match methods.precision {
        Precision::Exact => Ok(methods),
        Precision::Approximate => Err(Reason::ArtQuick),
    }
}
