//! Is a thread's callchain the same as at its last sample?
//!
//! It mostly is: only the instruction that the interpreter executes has changed. The callers are reused then, and the leaf is
//! read from the registers.

use super::registers::registers;
use crate::ManagedProcess;
use varid_model::Stack;
use varid_process::Image;
use varid_shim::{Record, flags};
use varid_tunnel::abi::LAYOUT_LIST;

/// The user callchain of a record, as attribution would find it, if it is its thread's last one
/// again and all of it is recorded already. None: it is not, or nobody knows.
pub fn cached_callchain<'a>(record: &Record, process: &'a mut ManagedProcess) -> Option<&'a [u64]> {
    let changes = process.space().changes();
    let callers = process.callers.of(record.tid)?;
    if !callers.are_callers_of(record, changes) {
        return None;
    }
    let pc = executed(record, process)?;
    let mapped = process.space().at(pc)?;
    if !mapped.recorded || !matches!(mapped.image, Image::Dex(_)) {
        return None;
    }
    process.callers.with_leaf(record.tid, pc)
}

/// Keeps a record's callchain for those of its thread that follow, if nothing but its leaf and the
/// callers that are kept of it plays a part in it.
pub(super) fn remember(record: &Record, process: &mut ManagedProcess, stack: Stack, user: &[u64]) {
    let Some((leaf, callers)) = user.split_first() else {
        return;
    };
    let changes = process.space().changes();
    let kept = process.callers.of(record.tid);
    // Where all native frames are wanted, the stack tells of more of them.
    if stack != Stack::Full
        && executed(record, process) == Some(*leaf)
        && kept.is_some_and(|kept| kept.are_all(callers, changes))
    {
        process.callers.are_of(record, user);
    }
}

/// The instruction that a record's innermost frame executes, if that is the one that its leaf's
/// registers are of: nothing else of these plays a part in the callchain then.
fn executed(record: &Record, process: &ManagedProcess) -> Option<u64> {
    const OTHERWISE: u32 = flags::IN_KERNEL | flags::NO_WALK | flags::NOT_READY;
    let vm = process.vm.as_deref()?;
    // A shadow stack's frames are dropped by the stack pointer, and of save areas the leaf's pc
    // may have to be checked against its method.
    if record.flags & (flags::IN_BODY | OTHERWISE) != flags::IN_BODY
        || vm.layout.kind != LAYOUT_LIST
    {
        return None;
    }
    let innermost = record.innermost()?;
    let (address, pc) = registers(vm, record.regs.ip()?, &record.regs, process.space())?;
    (address == innermost.addr && !innermost.is_quick()).then_some(pc)
}
