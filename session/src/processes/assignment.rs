//! Assigns processes to the recording, to services and to patterns of methods, after a change of the configuration or a name.

use super::Processes;
use super::selection::Selection;
use super::tracked::Names;
use crate::SessionError;
use crate::config::Config;
use crate::filter::Gate;
use crate::output::Output;
use crate::request::TargetSpec;
use crate::sampling::Sampling;
use crate::tasks;
use varid_model::{MonotonicNs, Pid};

impl Processes {
    /// Applies another configuration. Returns the new target if it consists of names, which may have changed.
    pub fn configure(&mut self, config: &Config) -> Option<String> {
        self.options.limit = config.settings.limits.processes;
        self.tracker.select(Selection::of(config));
        let target = TargetSpec::named(config).filter(|_| self.tracker.selects_by_name())?;
        let shown = target.to_string();
        self.tracker.rename_target(target);
        Some(shown)
    }

    /// From a time on, records the processes, and those of their methods, that the configuration selects.
    pub fn reassign(
        &mut self,
        time: MonotonicNs,
        sampling: &Sampling,
        output: &mut Output,
    ) -> Result<(), SessionError> {
        let named = self.tracked.iter();
        let named = named.filter(|(_, one)| !one.awaits_name() && !one.lifetime.has_ended());
        let pids: Vec<Pid> = named.map(|(pid, _)| *pid).collect();
        for pid in pids {
            let Some(tracked) = self.tracked.get(&pid) else {
                continue;
            };
            match (
                self.is_selected(&tracked.names),
                tracked.lifetime.has_left(),
            ) {
                (true, false) => self.assign(pid, time, output),
                (false, false) => self.leave(pid, time, sampling, output)?,
                (true, true) => {
                    let names = tracked.names.clone();
                    let started = self.start_recording(pid, names, sampling, output);
                    self.refuse_on_error(pid, started, output)?;
                }
                (false, true) => {}
            }
        }
        for (pid, names) in std::mem::take(&mut self.refused) {
            sampling.remove_target(pid)?;
            // If all processes are recorded, its next sample starts it again.
            let all = self.tracker.selects_all();
            if !all && self.is_selected(&names) && tasks::is_alive(pid) {
                let started = self.start_recording(pid, names, sampling, output);
                self.refuse_on_error(pid, started, output)?;
            }
        }
        if self.tracker.selects_by_name() {
            self.find_running(sampling, output)?;
        }
        Ok(())
    }

    fn is_selected(&self, names: &Names) -> bool {
        !self.tracker.selects_by_name() || names.are_in(self.tracker.selection())
    }

    /// From a time on, assigns a process to the service and the patterns that the configuration has for its names. The time is not
    /// before its first sample or its last assignment.
    pub(super) fn assign(&mut self, pid: Pid, time: MonotonicNs, output: &mut Output) {
        let tracked = self.tracked.get_mut(&pid);
        let Some(tracked) = tracked.filter(|tracked| !tracked.lifetime.has_left()) else {
            return;
        };
        let time = time.max(tracked.since);
        tracked.since = time;
        let selection = self.tracker.selection();
        let terms = selection.terms(&tracked.names.own, &tracked.names.selected_by);
        self.calls.restrict(pid, terms.methods.prefixes());
        if tracked.gate.is_some() || !terms.methods.is_empty() {
            let gate = tracked.gate.get_or_insert_with(|| Box::new(Gate::open()));
            gate.change(time, &terms.methods, &mut tracked.managed);
        }
        self.memberships
            .assign(pid, time, terms.service.as_ref(), output);
    }
}
