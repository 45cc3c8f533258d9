//! Do the VM's threads have the ids of the process's threads?
//!
//! This is the check of what leads from a thread to its Java frames. The process runs meanwhile: threads come and go, and the memory of
//! one that has ended is used again.

use super::error::{JvmError, Result};
use super::layout::{ThreadLayout, ThreadListLayout};
use super::memory::PagedMemory;
use std::collections::HashSet;
use varid_model::{Address, Tid};

/// How often a list that changes is read again.
const ATTEMPTS: usize = 3;
/// The most threads of a list.
const MAX_THREADS: u64 = 1 << 20;
/// The most threads that are checked.
const MAX_CHECKED: u64 = 16;

/// What leads to the VM's threads.
#[derive(Debug, Clone, Copy)]
pub(super) struct ThreadPlace<'a> {
    /// Where the pointer to the list is: `ThreadsSMRSupport::_java_thread_list`.
    pub(super) list: Address,
    pub(super) list_layout: &'a ThreadListLayout,
    pub(super) layout: &'a ThreadLayout,
}

/// Checks the threads. `tids`: returns the ids of the process's threads in its own pid namespace.
pub(super) fn check(
    place: ThreadPlace<'_>,
    tids: &dyn Fn() -> HashSet<Tid>,
    memory: &PagedMemory<'_>,
) -> Result<()> {
    let mut outcome = Ok(());
    for _ in 0..ATTEMPTS {
        memory.forget();
        let seen = vm_threads(place, memory);
        outcome = seen.and_then(|seen| are_known(&seen, &tids()));
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

/// Returns the ids of the VM's first threads.
fn vm_threads(place: ThreadPlace<'_>, memory: &PagedMemory<'_>) -> Result<Vec<Tid>> {
    const LIST: &str = "ThreadsSMRSupport::_java_thread_list";
    const NONE: JvmError = JvmError::NotStarted("it has no thread yet");
    let list = memory.pointer(LIST, place.list)?;
    if list.get() == 0 {
        return Err(NONE);
    }
    let count = memory.member(LIST, list, place.list_layout.length)?;
    let threads = memory.pointer_in(LIST, list, place.list_layout.threads)?;
    if count == 0 {
        return Err(NONE);
    }
    if count > MAX_THREADS {
        let why = "no VM has as many threads";
        return Err(JvmError::implausible("ThreadsList::_length", count, why));
    }
    let mut found = Vec::new();
    for index in 0..count.min(MAX_CHECKED) {
        let thread = memory.pointer(LIST, threads.wrapping_add(index.wrapping_mul(8)))?;
        let os_thread = memory.pointer_in("a JavaThread", thread, place.layout.os_thread)?;
        // Not started, or ended.
        if os_thread.get() != 0 {
            let tid = memory.member("an OSThread", os_thread, place.layout.thread_id)?;
            found.extend(
                u32::try_from(tid)
                    .ok()
                    .filter(|tid| *tid != 0)
                    .map(Tid::new),
            );
        }
    }
    match found.is_empty() {
        true => Err(NONE),
        false => Ok(found),
    }
}

/// Most of the VM's threads must be threads of the process: some may have just ended.
fn are_known(seen: &[Tid], tids: &HashSet<Tid>) -> Result<()> {
    let unknown: Vec<_> = seen.iter().filter(|tid| !tids.contains(tid)).collect();
    match unknown.first() {
        Some(tid) if unknown.len().saturating_mul(2) >= seen.len() => {
            let tid = tid.get().into();
            let why = "the process has no such thread";
            Err(JvmError::implausible("OSThread::_thread_id", tid, why))
        }
        _ => Ok(()),
    }
}
