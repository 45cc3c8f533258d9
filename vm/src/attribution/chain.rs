//! A callchain in the making: frames and markers, innermost first.

use super::RemapTable;
use super::merge::{Inside, Item};
use super::shared_code::{address_by_caller, bytecode_at, is_shared};
use crate::seam::{FrameMethods, Methods, WalkedCompiledFrame};
use crate::{ManagedProcess, Method};
use std::ops::Range;
use varid_model::{Address, FrameAddress, Marker, MonotonicNs, Precision, Reason};
use varid_process::AddressSpace;
use varid_recording::remap::{address_of, marker_at};
use varid_shim::{CapturedSample, FramePc, ManagedFrame, flags};
use varid_unwind::{NativeFrame, NativeStack, UnwindError};

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
    pub user: &'a mut Vec<Address>,
    /// Where a frame is whose method is not known yet, because others have the same instructions.
    shared: Option<usize>,
    /// Which addresses stand for frames that were seen before.
    pub known: Range<usize>,
    /// Where the first frame lies that is kept as compiled code keeps its own.
    pub quick: Option<u64>,
    /// How well the instruction of the innermost managed frame is known.
    pub precision: Precision,
    /// What the method pointer stands for that was asked for last.
    resolved: Option<(Address, Method)>,
}

impl<'a> Chain<'a> {
    /// The chain of a record whose user part was interrupted at `ip`: its addresses become those
    /// of `user`, leaf first.
    pub fn new(
        record: &CapturedSample,
        ip: u64,
        process: &'a mut ManagedProcess,
        remap: &'a mut RemapTable,
        user: &'a mut Vec<Address>,
    ) -> Self {
        user.clear();
        Self {
            process,
            remap,
            time: record.time,
            at: FrameAddress::Instruction(Address::new(ip)),
            // A kernel sample's user frames are all callers of the kernel's.
            leaf: !record.has(flags::IN_KERNEL),
            native_stretch: false,
            user,
            shared: None,
            known: 0..0,
            quick: None,
            precision: Precision::Exact,
            resolved: None,
        }
    }

    /// Appends the items of a merge of `native` and `managed`.
    pub fn extend(
        &mut self,
        items: &[Item],
        record: &CapturedSample,
        native: &NativeStack,
        managed: &[ManagedFrame],
    ) {
        for (at, item) in items.iter().enumerate() {
            match *item {
                Item::Native(frame) => self.native(frame),
                Item::Managed(at) | Item::Walked(at) => {
                    let Some(frame) = managed.get(at) else {
                        continue;
                    };
                    self.managed(frame);
                    if matches!(item, Item::Walked(_)) {
                        self.quick.get_or_insert(frame.address().get());
                    }
                }
                Item::MethodsOf { depth, inside } => {
                    if let Some(frame) = native.frames.get(depth) {
                        self.methods_of(frame, inside, record);
                    }
                }
                Item::Caller(at) => {
                    if let Some(frame) = managed.get(at) {
                        self.caller(frame, managed.get(at.saturating_add(1)));
                    }
                }
                Item::Callers(from) => {
                    let callers = managed.get(from..).unwrap_or_default();
                    self.callers(record.tid.get(), callers);
                }
                Item::NativeStretch => self.native_stretch = true,
                Item::Leaf => self.leaf_at_least(),
                Item::Missing(Reason::NoUnwindInfo)
                    if self.ends_in_unknown_code()
                        && ends_with_last_frame(items.get(..at), native, managed) => {}
                Item::Missing(reason) => self.missing(reason),
            }
        }
    }

    /// Returns true if a managed frame appears in the callchain: the VM's own methods do not.
    pub fn shows(&mut self, frame: &ManagedFrame) -> bool {
        match frame.pc() {
            FramePc::Absolute(_) | FramePc::Compiled { .. } => true,
            FramePc::Relative { method, .. }
            | FramePc::Exported { method, .. }
            | FramePc::Native { method } => {
                let resolved = self.process.method(method.get());
                let is_runtime = matches!(resolved, Method::Runtime);
                self.resolved = Some((method, resolved));
                !is_runtime
            }
        }
    }

    /// Managed frames whose callees are managed, or left out.
    fn callers(&mut self, tid: u32, frames: &[ManagedFrame]) {
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

    /// Appends the sampled instruction, whose callers are missing.
    pub fn leaf_alone(&mut self, reason: Reason) {
        self.native(self.at);
        self.missing(reason);
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
                None if record.has(flags::NOT_READY) || self.process.vm().is_none() => {
                    Reason::VmNotReady
                }
                None if native.stopped == Some(UnwindError::NoStack) => Reason::Truncated,
                None => Reason::TornFrames,
            };
            self.missing(reason);
            return;
        }
        if let Some(reason) = incomplete.filter(|reason| !self.ends_with(*reason)) {
            self.missing(reason);
        }
        // Without methods the native frames are all that there is. With them, the outermost ones are known when their files are read.
        let is_shown =
            |error: &&UnwindError| managed.is_empty() || matches!(error, UnwindError::NotRead(_));
        let stopped = native.stopped.as_ref().filter(is_shown);
        if let Some(error) = stopped.filter(|_| !self.ends_in_a_reason()) {
            self.missing(error.reason());
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
            self.missing(Reason::UnknownMapping);
        }
    }

    /// Says why frames are missing. Of a leaf that is missing there is the instruction itself, also below the kernel.
    pub fn missing(&mut self, reason: Reason) {
        if self.user.is_empty() {
            self.push(self.at);
        }
        self.marker(Marker::Reason(reason));
    }

    /// What stands where frames are missing, or are left out.
    fn marker(&mut self, marker: Marker) {
        self.push(marker_frame(marker));
    }

    /// Whether it is said already that the outermost frames are missing.
    fn ends_in_a_reason(&self) -> bool {
        let marker = self.user.last().copied().and_then(marker_at);
        matches!(marker, Some(Marker::Reason(_)))
    }

    /// Returns true if the callchain ends with the marker for unknown compiled code.
    fn ends_in_unknown_code(&self) -> bool {
        [Reason::UnknownCompiledCode, Reason::VmGone]
            .into_iter()
            .any(|reason| self.ends_with(reason))
    }

    /// Whether it is said already that the outermost frames are missing for this reason.
    fn ends_with(&self, reason: Reason) -> bool {
        let marker = marker_frame(Marker::Reason(reason));
        self.user.last() == Some(&marker.recorded())
    }

    /// A frame of compiled code: the frames of the methods that it executes; whether their places are known.
    fn compiled(&mut self, frame: WalkedCompiledFrame) -> bool {
        let vm = self.process.vm.clone();
        let compiler = vm.as_ref().and_then(|vm| vm.compiler());
        let frames = compiler
            .ok_or(Reason::UnknownCompiledCode)
            .and_then(|compiler| compiler.walked_frame(frame, self.process))
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
            return self.compiled(WalkedCompiledFrame {
                sp: frame.address(),
                method,
                returns,
                time: self.time,
            });
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
            Err(reason) => self.missing(reason),
        }
    }

    /// Appends the methods of a native frame. `inside`: the managed frame before it.
    fn methods_of(&mut self, frame: &NativeFrame, inside: Inside, record: &CapturedSample) {
        let Some(vm) = self.process.vm.clone() else {
            return;
        };
        let compiler = vm.compiler();
        let methods = compiler
            .and_then(|compiler| compiler.native_frame(frame, record, self.process))
            .unwrap_or_else(|| vm.native_frame(frame, record, self.process));
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
                self.missing(reason);
            }
        }
    }

    /// The address of the bytecode at `pc`, which a frame has recorded. A frame that is not complete may have any other value there.
    fn bytecode(&mut self, pc: u64) -> Result<u64, Reason> {
        if has_method_at(self.process.space(), pc) {
            return Ok(pc);
        }
        // A dex file in anonymous memory is mapped when it is asked for.
        match self.process.process.has_bytecode_at(pc) {
            true if has_method_at(self.process.space(), pc) => Ok(pc),
            true => Err(Reason::TornFrames),
            false => Err(Reason::UnknownMapping),
        }
    }

    /// The address that stands for a managed frame; None: the VM's own method.
    fn place(&mut self, frame: &ManagedFrame) -> Result<Option<u64>, Reason> {
        let (method, pc) = match frame.pc() {
            FramePc::Absolute(pc) => return self.bytecode(pc.get()).map(Some),
            FramePc::Relative { method, .. }
            | FramePc::Exported { method, .. }
            | FramePc::Compiled { method, .. }
            | FramePc::Native { method } => (method, frame.pc()),
        };
        let resolved = self.resolved.take_if(|(known, _)| *known == method);
        let method = match resolved {
            Some((_, resolved)) => resolved,
            None => self.process.method(method.get()),
        };
        let address = match &method {
            Method::Runtime => return Ok(None),
            Method::InMemory(method) => {
                let start = self.remap.method(method).ok_or(Reason::UnknownMethod)?;
                start.saturating_add(method.offset_of(pc).ok_or(Reason::TornFrames)?)
            }
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
                    // Compiled code of a method that has bytecode, or one that has not yet told where it is: its entry stands for it,
                    // and does not say what it has called.
                    _ => {
                        self.shared = None;
                        code.start
                    }
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

/// Whether the instructions of a method of a bytecode file are at this address.
fn has_method_at(space: &AddressSpace, address: u64) -> bool {
    bytecode_at(space, Address::new(address))
        .is_some_and(|(image, offset)| image.bytecode.method_at(offset).is_some())
}

/// Returns true if the last of these items that adds frames stands for the outermost native frame. If that is unknown compiled code, it has no
/// unwind information either, and one reason is enough.
fn ends_with_last_frame(
    items: Option<&[Item]>,
    native: &NativeStack,
    managed: &[ManagedFrame],
) -> bool {
    let adds_frames = |item: &&Item| !matches!(item, Item::Leaf | Item::NativeStretch);
    let last = items.unwrap_or_default().iter().rfind(adds_frames);
    match last {
        Some(Item::MethodsOf { depth, .. }) => depth.saturating_add(1) == native.frames.len(),
        Some(Item::Managed(at) | Item::Walked(at) | Item::Caller(at)) => {
            let outermost = native.frames.last().map(|frame| frame.sp);
            managed.get(*at).is_some_and(|frame| {
                matches!(frame.pc(), FramePc::Compiled { .. }) && outermost == Some(frame.address())
            })
        }
        _ => false,
    }
}

/// The frame that a callchain has for a marker: looked up as a caller, one byte back.
const fn marker_frame(marker: Marker) -> FrameAddress {
    FrameAddress::calling_at(address_of(marker))
}

/// The methods of a frame that has called another method, or the VM to be seen by it: the compiler notes down each place that it does so.
fn with_noted_call(methods: FrameMethods) -> Result<FrameMethods, Reason> {
    match methods.precision {
        Precision::Exact => Ok(methods),
        Precision::Approximate => Err(Reason::UnknownCompiledCode),
    }
}
