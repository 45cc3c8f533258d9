//! Caches the stacks that were unwound in the last samples of a process's threads.

use crate::managed_process::callchain_cache::Knowledge;
use varid_model::Tid;
use varid_unwind::UnwoundStack;

/// The number of slots, each with a copy of a stack. Threads that share one only lose time.
const SLOTS: usize = 4;

/// The last unwound stacks of a process's threads. An entry of another thread, or of another version of the knowledge about the process, is
/// never used.
#[derive(Debug, Default)]
pub(crate) struct UnwoundStacks([Option<Unwound>; SLOTS]);

#[derive(Debug)]
struct Unwound {
    tid: Tid,
    knowledge: Knowledge,
    stack: UnwoundStack,
}

impl UnwoundStacks {
    /// Returns a thread's last stack, without frames if there is none.
    pub(crate) fn take(&mut self, tid: Tid, knowledge: Knowledge) -> UnwoundStack {
        let kept = self.slot(tid).and_then(Option::take);
        let kept = kept.filter(|kept| kept.tid == tid && kept.knowledge == knowledge);
        kept.map(|kept| kept.stack).unwrap_or_default()
    }

    /// Keeps a thread's stack for its next sample.
    pub(crate) fn put(&mut self, tid: Tid, knowledge: Knowledge, stack: UnwoundStack) {
        if let Some(slot) = self.slot(tid) {
            *slot = Some(Unwound {
                tid,
                knowledge,
                stack,
            });
        }
    }

    fn slot(&mut self, tid: Tid) -> Option<&mut Option<Unwound>> {
        self.0.get_mut(tid.get() as usize % SLOTS)
    }
}
