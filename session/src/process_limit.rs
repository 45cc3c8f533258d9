//! How many processes are recorded at once, and what happens to others when that limit is reached?

use super::Session;
use super::tracked::Names;
use crate::request::TargetSpec;

impl Session {
    /// As many of all processes are recorded as may be: the first that do anything.
    pub(super) fn waits_for_samples(&self) -> bool {
        let limited = self.options.configured.config.limits.processes.is_some();
        limited && matches!(self.options.target, TargetSpec::All)
    }

    /// As many processes are recorded as may be.
    pub(super) fn is_at_process_limit(&self) -> bool {
        let most = self.options.configured.config.limits.processes;
        most.is_some_and(|most| {
            let here = self.tracked.values().filter(|one| one.is_here());
            here.filter(|one| one.held.is_none()).count() as u64 >= most
        })
    }

    /// A process comes that is not recorded because others are.
    pub(super) fn turn_away(&mut self, pid: u32, names: Names) {
        self.tracked.remove(&pid);
        self.refused.insert(pid, names);
        let most = self.options.configured.config.limits.processes;
        self.note(format!(
            "more than the {} processes of limits.processes ran: those that came later were not recorded",
            most.unwrap_or_default()
        ));
        self.ignore(pid);
    }
}
