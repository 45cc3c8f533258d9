//! What do the registers of an interpreter loop say of the frame that it executes?

use super::executed::executed;
use crate::Vm;
use std::borrow::Cow;
use varid_model::Reason;
use varid_model::{ADDRESS_MASK, Regs};
use varid_process::AddressSpace;
use varid_shim::{ManagedFrame, Record, Step, Walk, flags, frame_flags};
use varid_tunnel::abi::{RANGE_BODY, RANGE_INTERPRETER};
use varid_unwind::{NativeFrame, NativeStack, UnwindError};

/// The managed frames that the copy of the stack holds, from the registers of each of some native frames; and why some
/// may be missing.
pub(super) fn walk_copy(
    record: &Record,
    vm: &Vm,
    frames: &[NativeFrame],
    native: &NativeStack,
    space: &AddressSpace,
) -> (Vec<ManagedFrame>, Option<Reason>) {
    let read = |address: u64, to: &mut [u8]| -> bool {
        record
            .stack_at(address, to.len())
            .map(|bytes| to.copy_from_slice(bytes))
            .is_some()
    };
    let unknown = match record.has(flags::NOT_READY) {
        true => Reason::VmNotReady,
        false => Reason::TornFrames,
    };
    let mut managed: Vec<ManagedFrame> = Vec::new();
    let mut lost = None;
    for frame in frames {
        match vm.range(frame.lookup()) {
            Some(RANGE_BODY) => {}
            // No register leads to its frame; of the callers of one that is known they need not.
            Some(RANGE_INTERPRETER) if managed.last().is_none_or(|last| last.addr < frame.sp) => {
                lost = Some(unknown);
                continue;
            }
            _ => continue,
        }
        let Some((address, pc)) = registers(vm, frame.lookup(), &frame.regs, space) else {
            // What it called has no unwind information: a frame pointer leads past it without its registers.
            lost = Some(Reason::NoUnwindInfo);
            continue;
        };
        if managed.last().is_some_and(|last| last.addr >= address) {
            continue;
        }
        if vm.has_save_areas() {
            // The frames lie elsewhere; of this one its pc is known, whatever called it.
            managed.push(ManagedFrame {
                addr: address,
                method: 0,
                pc,
                flags: 0,
            });
            return (managed, Some(Reason::Truncated));
        }
        let mut walk = Walk::from_frame(&vm.layout, address, pc, read);
        loop {
            match walk.step() {
                Step::Frame(found) => managed.push(found),
                Step::End => break,
                Step::Torn => return (managed, Some(Reason::Truncated)),
            }
        }
    }
    let cut = match managed.is_empty() {
        false => Some(Reason::Truncated),
        // Behind the cut there may be managed frames, or none.
        true => Some(unknown).filter(|unknown| *unknown == Reason::VmNotReady),
    };
    let cut = cut.filter(|_| native.stopped == Some(UnwindError::NoStack));
    (managed, lost.or(cut))
}

/// The frame's address that an interpreter loop's registers hold, and the bytecode pc that they tell.
pub(super) fn registers(vm: &Vm, ip: u64, regs: &Regs, space: &AddressSpace) -> Option<(u64, u64)> {
    if vm.range(ip) != Some(RANGE_BODY) {
        return None;
    }
    let address = regs.get(u16::from(vm.layout.reg_frame))?;
    let pc = regs.get(u16::from(vm.layout.reg_pc))? & ADDRESS_MASK;
    let pc = match vm.handler(ip) {
        Some((opcode, moved)) => executed(space, pc, opcode, moved),
        None => pc,
    };
    let address = address.wrapping_add_signed(i64::from(vm.layout.reg_frame_bias));
    Some((address & ADDRESS_MASK, pc))
}

/// A loop that called a helper need not have stored its pc; its register, restored by
/// unwinding, is the exact one.
pub(super) fn exact_pcs(
    managed: &mut Cow<'_, [ManagedFrame]>,
    vm: &Vm,
    native: &NativeStack,
    space: &AddressSpace,
) {
    for frame in &native.frames {
        let Some((address, pc)) = registers(vm, frame.lookup(), &frame.regs, space) else {
            continue;
        };
        let found = managed
            .iter()
            .position(|managed| managed.addr == address && !managed.is_quick())
            // Another area's callee has kept its pc.
            .filter(|found| {
                !vm.has_save_areas() || managed.get(*found).is_some_and(ManagedFrame::is_exported)
            })
            .filter(|found| {
                let frame = managed.get(*found);
                frame.is_some_and(|frame| frame.pc != pc || frame.flags & frame_flags::PAIR != 0)
            });
        if let Some(found) = found.and_then(|found| managed.to_mut().get_mut(found)) {
            found.pc = pc;
            found.flags &= !frame_flags::PAIR;
        }
    }
}
