//! Finds managed frames from the registers of interpreter loops.

use super::Description;
use super::executed::executed;
use crate::seam::CodeKind;
use std::borrow::Cow;
use std::collections::BTreeMap;
use varid_model::{ADDRESS_MASK, Address, Reason, Regs};
use varid_process::AddressSpace;
use varid_shim::{CapturedSample, FramePc, ManagedFrame, flags};
use varid_tunnel::abi::{RULE_AT_SP, Rule};
use varid_unwind::{NativeFrame, NativeStack, UnwindError};

/// Whether the walk of a copy of the stack continues with the next loop.
pub(crate) enum Walked {
    /// All frames of this loop were found.
    Whole,
    /// There may be a frame beyond the copy.
    Cut,
}

/// Frames of an interpreter to which no register leads, by the depth of the native frame that calls it, or why a frame is not known.
pub(crate) type CalledFrames = BTreeMap<usize, Result<Address, Reason>>;

/// Returns the managed frames in the copy of the stack, and why some may be missing. `frames`: the native frames whose registers lead to
/// them. `called`: frames that were found by other means. `walk` adds the managed frames of a loop, given its frame's address and its
/// bytecode pc, which is 0 if the frame contains it.
pub(crate) fn walk_copy(
    record: &CapturedSample,
    description: &Description,
    frames: &[NativeFrame],
    native: &NativeStack,
    called: &CalledFrames,
    space: &AddressSpace,
    walk: &dyn Fn(u64, u64, &mut Vec<ManagedFrame>) -> Walked,
) -> (Vec<ManagedFrame>, Option<Reason>) {
    let unknown = match record.has(flags::NOT_READY) {
        true => Reason::VmNotReady,
        false => Reason::TornFrames,
    };
    let mut managed: Vec<ManagedFrame> = Vec::new();
    let mut lost = None;
    for (depth, frame) in frames.iter().enumerate() {
        let ip = frame.lookup().get();
        let last = managed.last().map(ManagedFrame::address);
        let (address, pc) = match description.code_at(ip) {
            Some(CodeKind::Loop) => {
                let is_known = |(_, address)| last.is_some_and(|last| last.get() >= address);
                // Usually it is: a walk finds all frames of a list.
                if loop_frame(description, ip, &frame.regs).is_some_and(is_known) {
                    continue;
                }
                let Some(found) = registers(description, ip, &frame.regs, space) else {
                    // Its callee has no unwind information: a frame pointer leads past the callee, and the registers are lost.
                    lost = Some(Reason::NoUnwindInfo);
                    continue;
                };
                // Each of these frames is also a native frame, and has been unwound.
                if description.is_at_sp(ip) {
                    managed.push(frame_at_sp(description, native, depth, found));
                    continue;
                }
                found
            }
            // It is making or leaving its frame. Its callers' frames are native ones.
            Some(CodeKind::Interpreter) if description.is_at_sp(ip) => continue,
            Some(CodeKind::Interpreter) => match called.get(&depth) {
                Some(Ok(address)) if last.is_none_or(|last| last < *address) => (address.get(), 0),
                Some(Ok(_)) => continue,
                // Its caller leads to its frame.
                None if called.contains_key(&depth.saturating_add(1)) => continue,
                // If a frame is known, its callers need not be found.
                _ if last.is_some_and(|last| last >= frame.sp) => continue,
                Some(Err(why)) if unknown == Reason::TornFrames => {
                    lost = Some(*why);
                    continue;
                }
                _ => {
                    lost = Some(unknown);
                    continue;
                }
            },
            _ => continue,
        };
        match walk(address, pc, &mut managed) {
            Walked::Whole => {}
            Walked::Cut => return (managed, Some(Reason::Truncated)),
        }
    }
    let cut = match managed.is_empty() {
        false => Some(Reason::Truncated),
        // There may be managed frames beyond the cut, or none.
        true => Some(unknown).filter(|unknown| *unknown == Reason::VmNotReady),
    };
    let cut = cut.filter(|_| native.stopped == Some(UnwindError::NoStack));
    (managed, lost.or(cut))
}

/// Returns the managed frame of the native frame at `depth`. `(address, pc)`: the result of [`registers`]. If unwinding stopped there, its
/// caller is not known.
pub(crate) fn frame_at_sp(
    description: &Description,
    native: &NativeStack,
    depth: usize,
    (address, pc): (u64, u64),
) -> ManagedFrame {
    let is_outermost = match native.frames.get(depth.saturating_add(1)) {
        Some(caller) => !description.is_at_sp(caller.lookup().get()),
        None => native.stopped.is_none(),
    };
    let pc = FramePc::Absolute(Address::new(pc));
    ManagedFrame::new(Address::new(address), pc, is_outermost)
}

/// Returns the rule of the interpreter loop at an address, and the frame's address in its registers.
fn loop_frame<'f>(description: &'f Description, ip: u64, regs: &Regs) -> Option<(&'f Rule, u64)> {
    if description.code_at(ip) != Some(CodeKind::Loop) {
        return None;
    }
    let rule = description.rule_at(ip)?;
    let address = match rule.kind {
        RULE_AT_SP => regs.sp()?,
        _ => regs
            .get(u16::from(rule.reg_frame))?
            .wrapping_add_signed(i64::from(rule.frame_bias)),
    };
    Some((rule, address & ADDRESS_MASK))
}

/// Returns the frame's address and the bytecode pc in an interpreter loop's registers.
pub(crate) fn registers(
    description: &Description,
    ip: u64,
    regs: &Regs,
    space: &AddressSpace,
) -> Option<(u64, u64)> {
    let (rule, address) = loop_frame(description, ip, regs)?;
    let pc = regs.get(u16::from(rule.reg_pc))? & ADDRESS_MASK;
    let pc = match description.handler(ip) {
        Some((opcode, state)) => executed(space, pc, opcode, state),
        None => pc,
    };
    Some((address, pc))
}

/// Takes the bytecode pcs of frames from the registers of their loops: a loop that called a helper need not have stored its pc, and
/// unwinding restores the register. `may_take` selects frames whose pc is not already known better.
pub(crate) fn exact_pcs(
    managed: &mut Cow<'_, [ManagedFrame]>,
    description: &Description,
    native: &NativeStack,
    space: &AddressSpace,
    may_take: impl Fn(&ManagedFrame) -> bool,
) {
    let mut next = 0;
    for frame in &native.frames {
        let Some((address, pc)) = registers(description, frame.lookup().get(), &frame.regs, space)
        else {
            continue;
        };
        let is_its =
            |managed: &ManagedFrame| managed.address().get() == address && !managed.is_quick();
        // Both lists usually ascend.
        let after = managed
            .get(next..)
            .unwrap_or_default()
            .iter()
            .position(is_its);
        let found = after
            .map(|after| next.saturating_add(after))
            .or_else(|| managed.iter().position(is_its));
        next = found.map_or(next, |found| found.saturating_add(1));
        let found = found
            .filter(|found| managed.get(*found).is_some_and(&may_take))
            .filter(|found| {
                let frame = managed.get(*found);
                frame.is_some_and(|frame| frame.absolute_pc() != Some(Address::new(pc)))
            });
        if let Some(found) = found.and_then(|found| managed.to_mut().get_mut(found)) {
            found.set_pc(FramePc::Absolute(Address::new(pc)));
        }
    }
}

/// Removes repeated frames. While a VM begins a new fragment, the frames of the previous one are in both. A caller's frame lies above its
/// callee's, so a frame that does not is a repetition.
pub(crate) fn drop_repeated(managed: &mut Cow<'_, [ManagedFrame]>) {
    let above = managed.iter().zip(managed.get(1..).unwrap_or_default());
    let ascend = above.fold(true, |all, (frame, caller)| {
        all & (frame.address() < caller.address())
    });
    if ascend
        && managed
            .first()
            .is_none_or(|frame| frame.address().get() > 0)
    {
        return;
    }
    let mut last = Address::new(0);
    managed.to_mut().retain(|frame| {
        let above = frame.address() > last;
        last = last.max(frame.address());
        above
    });
}
