//! Which frames of a sample are missing?

use super::steps::Step;
use crate::seam::CodeKind;
use varid_shim::{CapturedSample, ManagedFrame, flags};

/// For a stack whose unwinding stopped early: returns true if only linked frames were walked, and it stopped among them. The missing frames then
/// lie outside the next quick frame that the thread has noted: between linked frames there is only an invoke.
pub(super) fn stopped_among_linked_frames(record: &CapturedSample, steps: &[Step]) -> bool {
    let (Some(leaf), Some(outermost)) = (steps.first(), steps.last()) else {
        return false;
    };
    let is_passed = |frame: &&ManagedFrame| (leaf.sp..outermost.sp).contains(&frame.address());
    let last = record.frames.iter().rfind(is_passed);
    record.has(flags::LINKED_ONLY) && last.is_some_and(|last| !last.is_quick())
}

/// Returns true if the interpreter's native frame at `depth` has no managed frame: `next`, the innermost remaining one, lies beyond the next outer
/// native frame that has one or is not the VM's. Frames of an interpreter whose frames are native ones are in no list. If the lists were not
/// walked, a loop that native code is just entering has no frame, because no register leads to it yet.
pub(super) fn lacks_own_frame(
    record: &CapturedSample,
    steps: &[Step],
    depth: usize,
    next: Option<&ManagedFrame>,
) -> bool {
    let is_at_sp = |step: &&Step| step.is_at_sp;
    let mut callers = steps.iter().skip(depth.saturating_add(1)).peekable();
    // The other interpreter's own frames are made and left by its callers' side.
    if steps.get(depth).as_ref().is_some_and(is_at_sp) {
        return !callers.next().as_ref().is_some_and(is_at_sp);
    }
    let Some(next) = next else {
        return callers.any(|caller| is_at_sp(&caller));
    };
    // Assembly that calls an interpreter in C++ has no frame of its own.
    callers.next_if(|caller| caller.kind == Some(CodeKind::Interpreter) && !caller.is_at_sp);
    let is_copied = record.has(flags::NOT_READY) || record.has(flags::NO_WALK);
    let is_outside = |step: &&Step| {
        let executes = match step.kind {
            None | Some(CodeKind::Compiled) => true,
            Some(kind) => kind.executes(),
        };
        step.is_at_sp || (is_copied && executes)
    };
    let outside = callers.find(is_outside);
    outside.is_some_and(|outside| next.address() >= outside.sp)
}
