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

/// A copy of the stack, and what leads to the managed frames in it.
pub(crate) struct StackCopy<'a> {
    pub(crate) record: &'a CapturedSample,
    pub(crate) description: &'a Description,
    /// The native frames whose registers lead to managed frames.
    pub(crate) frames: &'a [NativeFrame],
    pub(crate) native: &'a NativeStack,
    /// Frames that were found by other means.
    pub(crate) called: &'a CalledFrames,
    pub(crate) space: &'a AddressSpace,
}

/// What a native frame leads to.
enum Lead {
    /// Nothing, or a managed frame that has been found.
    Nothing,
    /// A managed frame that cannot be found.
    Lost(Reason),
    /// The managed frame that is also this native frame.
    Own { address: u64, pc: u64 },
    /// The first managed frame of a loop. Its bytecode pc is 0 if the frame contains it.
    Loop { address: u64, pc: u64 },
}

/// The managed frames in a copy of the stack.
pub(crate) struct CopiedFrames {
    pub(crate) frames: Vec<ManagedFrame>,
    /// Why some may be missing. None: these are all.
    pub(crate) incomplete: Option<Reason>,
}

impl StackCopy<'_> {
    /// Returns the managed frames in the copy. `walk` adds the managed frames of a loop, given its frame's
    /// address and its bytecode pc, which is 0 if the frame contains it.
    pub(crate) fn walk(
        &self,
        walk: &dyn Fn(u64, u64, &mut Vec<ManagedFrame>) -> Walked,
    ) -> CopiedFrames {
        let mut managed: Vec<ManagedFrame> = Vec::new();
        let mut lost = None;
        for (depth, frame) in self.frames.iter().enumerate() {
            let last = managed.last().map(ManagedFrame::address);
            match self.lead(depth, frame, last) {
                Lead::Nothing => {}
                Lead::Lost(why) => lost = Some(why),
                Lead::Own { address, pc } => {
                    let found = (address, pc);
                    managed.push(frame_at_sp(self.description, self.native, depth, found));
                }
                Lead::Loop { address, pc } => match walk(address, pc, &mut managed) {
                    Walked::Whole => {}
                    Walked::Cut => {
                        return CopiedFrames {
                            frames: managed,
                            incomplete: Some(Reason::Truncated),
                        };
                    }
                },
            }
        }
        let cut = match managed.is_empty() {
            false => Some(Reason::Truncated),
            // There may be managed frames beyond the cut, or none.
            true => Some(self.unknown()).filter(|unknown| *unknown == Reason::VmNotReady),
        };
        let cut = cut.filter(|_| self.native.stopped == Some(UnwindError::NoStack));
        CopiedFrames {
            frames: managed,
            incomplete: lost.or(cut),
        }
    }

    /// Returns what the native frame at `depth` leads to. `last`: the outermost managed frame that has been found.
    fn lead(&self, depth: usize, frame: &NativeFrame, last: Option<Address>) -> Lead {
        let ip = frame.lookup().get();
        match self.description.code_at(ip) {
            Some(CodeKind::Loop) => self.lead_of_loop(ip, &frame.regs, last),
            // It is making or leaving its frame. Its callers' frames are native ones.
            Some(CodeKind::Interpreter) if self.description.is_at_sp(ip) => Lead::Nothing,
            Some(CodeKind::Interpreter) => match self.called.get(&depth) {
                Some(Ok(address)) if last.is_none_or(|last| last < *address) => {
                    let address = address.get();
                    Lead::Loop { address, pc: 0 }
                }
                Some(Ok(_)) => Lead::Nothing,
                // Its caller leads to its frame.
                None if self.called.contains_key(&depth.saturating_add(1)) => Lead::Nothing,
                // If a frame is known, its callers need not be found.
                _ if last.is_some_and(|last| last >= frame.sp) => Lead::Nothing,
                Some(Err(why)) if self.unknown() == Reason::TornFrames => Lead::Lost(*why),
                _ => Lead::Lost(self.unknown()),
            },
            _ => Lead::Nothing,
        }
    }

    /// Returns what the registers of a loop lead to.
    fn lead_of_loop(&self, ip: u64, regs: &Regs, last: Option<Address>) -> Lead {
        let is_known = |(_, address)| last.is_some_and(|last| last.get() >= address);
        // Usually it is: a walk finds all frames of a list.
        if loop_frame(self.description, ip, regs).is_some_and(is_known) {
            return Lead::Nothing;
        }
        match registers(self.description, ip, regs, self.space) {
            // Its callee has no unwind information: a frame pointer leads past the callee, and the registers are lost.
            None => Lead::Lost(Reason::NoUnwindInfo),
            // Each of these frames is also a native frame, and has been unwound.
            Some((address, pc)) if self.description.is_at_sp(ip) => Lead::Own { address, pc },
            Some((address, pc)) => Lead::Loop { address, pc },
        }
    }

    /// The reason for a managed frame that is not found.
    fn unknown(&self) -> Reason {
        match self.record.has(flags::NOT_READY) {
            true => Reason::VmNotReady,
            false => Reason::TornFrames,
        }
    }
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
