//! Which managed frames does a sample of ART have?

use crate::code_kind::CodeKind;
use crate::facts::VmFacts;
use crate::interpreter_loop::{
    Walked, drop_repeated, exact_pcs, frame_at_sp, registers, walk_copy,
};
use crate::kind::{LeafMethod, ManagedStack, Unwound};
use std::borrow::Cow;
use varid_model::Reason;
use varid_process::AddressSpace;
use varid_shim::{CapturedSample, ManagedFrame, Step, Walk, flags};
use varid_tunnel::abi::RULE_AT_SP;
use varid_unwind::NativeFrame;

/// The frames that the shim walked, or those of the copy of the stack where it could not.
pub(super) fn frames<'r>(
    facts: &VmFacts,
    sample: &Unwound<'r>,
    walked: ManagedStack<'r>,
    space: &AddressSpace,
) -> ManagedStack<'r> {
    let record = sample.record;
    let mut found = walked;
    let from_copy = if record.has(flags::NO_WALK) || record.has(flags::NOT_READY) {
        Some(copied(facts, sample, &sample.native.frames, space))
    } else if found.frames.is_empty() && !record.has(flags::TORN) {
        lost(facts, sample, space)
    } else {
        None
    };
    if let Some((frames, incomplete)) = from_copy {
        (found.frames, found.incomplete) = (Cow::Owned(frames), incomplete);
    }
    if facts.is_on_native_stack() {
        drop_repeated(&mut found.frames);
    }
    if facts.layout.has_rule(RULE_AT_SP) {
        add_unwound(facts, sample, &mut found.frames, space);
    }
    exact_pcs(&mut found.frames, facts, sample.native, space, |_| true);
    if sample.leaf == Some(CodeKind::Interpreter) {
        found.leaf = LeafMethod::Transition;
    }
    found
}

/// Adds the frames of nterp that unwinding has found and the walk has not: the thread's note of its top frame is of an earlier call while
/// nterp calls a function of the VM directly. A frame that such a note led to, and that lies within one of them, is no more.
fn add_unwound(
    facts: &VmFacts,
    sample: &Unwound<'_>,
    managed: &mut Cow<'_, [ManagedFrame]>,
    space: &AddressSpace,
) {
    let native = &sample.native.frames;
    for (depth, frame) in native.iter().enumerate() {
        let ip = frame.lookup().get();
        if !facts.is_at_sp(ip) {
            continue;
        }
        let Some((address, pc)) = registers(facts, ip, &frame.regs, space) else {
            continue;
        };
        let above = managed.partition_point(|managed| managed.address().get() < address);
        let known = managed.get(above).map(|managed| managed.address().get());
        let caller = native.get(depth.saturating_add(1));
        let end = caller.map(|caller| caller.sp).or(sample.native.end);
        if known != Some(address) {
            let added = frame_at_sp(facts, caller, (address, pc));
            managed.to_mut().insert(above, added);
        }
        let is_within = |other: &ManagedFrame| {
            other.address().get() > address && end.is_some_and(|end| other.address() < end)
        };
        if managed.iter().any(is_within) {
            managed.to_mut().retain(|other| !is_within(other));
        }
    }
}

/// The frames that the copy of the stack holds, from the registers of each of some native frames; and why some may be missing.
fn copied(
    facts: &VmFacts,
    sample: &Unwound<'_>,
    frames: &[NativeFrame],
    space: &AddressSpace,
) -> (Vec<ManagedFrame>, Option<Reason>) {
    let walk = |address, pc, managed: &mut Vec<ManagedFrame>| {
        walk_list(facts, sample.record, address, pc, managed)
    };
    walk_copy(sample.record, facts, frames, sample.native, space, &walk)
}

/// The linked frames of a loop, as far as the copy of the stack reaches.
fn walk_list(
    facts: &VmFacts,
    record: &CapturedSample,
    address: u64,
    pc: u64,
    managed: &mut Vec<ManagedFrame>,
) -> Walked {
    let read = |address: u64, to: &mut [u8]| -> bool {
        record
            .stack_at(address, to.len())
            .map(|bytes| to.copy_from_slice(bytes))
            .is_some()
    };
    let mut walk = Walk::from_frame(&facts.layout, address, pc, read);
    loop {
        match walk.step() {
            Step::Frame(found) => managed.push(found),
            Step::End => return Walked::Whole,
            Step::Torn => return Walked::Cut,
        }
    }
}

/// While the VM begins a new fragment, for a moment the last one can be reached from nowhere: it executes methods, and
/// has no frames. None: it executes none. The copy of the stack has those of the innermost stretch of interpreters;
/// beyond native code that this has called there are frames that only the VM's list has.
fn lost(
    facts: &VmFacts,
    sample: &Unwound<'_>,
    space: &AddressSpace,
) -> Option<(Vec<ManagedFrame>, Option<Reason>)> {
    let native = sample.native;
    let kind = |frame: &NativeFrame| facts.code_at(frame.lookup().get());
    let executes = |frame: &NativeFrame| kind(frame).is_some_and(CodeKind::executes);
    let first = native.frames.iter().position(executes)?;
    let mut outer = native.frames.iter().enumerate().skip(first);
    let end = outer
        .by_ref()
        .find(|(_, frame)| kind(frame).is_none())
        .and_then(|_| outer.find(|(_, frame)| executes(frame)));
    let end = end.map(|(at, _)| at);
    let inner = native.frames.get(..end.unwrap_or(native.frames.len()))?;
    let (walked, cut) = copied(facts, sample, inner, space);
    Some((walked, cut.or(end.map(|_| Reason::TornFrames))))
}
