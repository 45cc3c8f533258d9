//! Is a thread's callchain the same as at its last sample?
//!
//! Most often it is: only the instruction that the interpreter executes has changed. The callers are used again then, and the leaf is
//! read from the registers.

use super::shared_code::is_shared;
use crate::ManagedProcess;
use varid_model::{Address, Stack};
use varid_process::{MappingId, ProcessImage};
use varid_shim::CapturedSample;

/// The user callchain of a record, as [`super::attribute`] would find it, if it is its thread's last one with another leaf, and the
/// leaf is in bytecode whose mapping is `recorded`. The callers' mappings are those of the last callchain. None: it is another
/// callchain, or that is not known.
pub fn cached_callchain<'a>(
    record: &CapturedSample,
    process: &'a mut ManagedProcess,
    recorded: impl FnOnce(MappingId) -> bool,
) -> Option<&'a [Address]> {
    let knowledge = process.knowledge();
    let callers = process.callchains.of(record.tid.get())?;
    if !callers.are_callers_of(record, knowledge) {
        return None;
    }
    let pc = process
        .vm()?
        .leaf_pc_if_only_difference(record, process.space())?;
    let mapped = process.space().at(pc)?;
    if !recorded(mapped.id) || !matches!(mapped.image, ProcessImage::Code(_)) {
        return None;
    }
    // Which method's it is has to be found out.
    if is_shared(process.space(), Address::new(pc)) {
        return None;
    }
    process
        .callchains
        .with_leaf(record.tid.get(), Address::new(pc))
}

/// Caches a record's callchain if it follows from the leaf's pc and the cached callers alone.
pub(super) fn store(
    record: &CapturedSample,
    process: &mut ManagedProcess,
    stack: Stack,
    user: &[Address],
) {
    let Some((leaf, callers)) = user.split_first() else {
        return;
    };
    let knowledge = process.knowledge();
    let cached = process.callchains.of(record.tid.get());
    let pc = || {
        process
            .vm()?
            .leaf_pc_if_only_difference(record, process.space())
    };
    // Where all native frames are wanted, the stack tells of more of them.
    if stack != Stack::Full
        && pc() == Some(leaf.get())
        && cached.is_some_and(|cached| cached.are_all(callers, knowledge))
    {
        process.callchains.store(record, user);
    }
}
