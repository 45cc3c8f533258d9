//! Starts the recording of processes.

use super::target::{probe_libjvm, target_of};
use super::tracked::{Names, Stage, Tracked};
use super::tracker::Role;
use super::{Processes, SEARCH_INTERVAL};
use crate::SessionError;
use crate::output::Output;
use crate::request::TargetSpec;
use crate::sampling::Sampling;
use crate::tasks;
use std::time::Instant;
use varid_model::{MonotonicNs, Pid};
use varid_recording::{SessionRecord, TargetKind};
use varid_shim::target_flags;

impl Processes {
    /// Returns true if a process of the target, or one whose children may belong to it, has mapped a VM's library.
    pub fn vm_runs(&mut self) -> bool {
        let kinds = self.options.vms;
        let may_be_sampled = |pid: &Pid| self.tracker.role(*pid) != Role::Other;
        let pids = tasks::all_pids().into_iter().filter(may_be_sampled);
        pids.into_iter().any(|pid| kinds.are_mapped_by(pid))
    }

    /// Finds the processes of the target that are already running.
    pub fn find_running(
        &mut self,
        sampling: &Sampling,
        output: &mut Output,
    ) -> Result<(), SessionError> {
        let mut pids = tasks::all_pids();
        if self.tracker.selects_all() {
            let target = target_of(None, self.options.stack);
            sampling.with(|sampler| sampler.set_default_target(&target))?;
            pids.retain(|pid| pid.get() != std::process::id());
        }
        self.refused.retain(|pid, _| pids.contains(pid));
        if self.waits_for_samples() {
            return Ok(());
        }
        for pid in pids {
            match self.tracker.role(pid) {
                Role::Target if self.tracker.selects_by_pid() => {
                    self.track(pid, sampling, output)?;
                }
                Role::Target => self.track_or_refuse(pid, sampling, output)?,
                Role::Zygote => {
                    let followed = self.follow_zygote(pid, sampling);
                    self.refuse_on_error(pid, followed, output)?;
                }
                Role::Other => {}
            }
        }
        if self.tracked.is_empty()
            && !std::mem::replace(&mut self.search.waiting_logged, true)
            && let TargetSpec::Named(kind, names) = self.tracker.target()
        {
            match kind {
                TargetKind::Service => {
                    tracing::info!("no process of service '{names}' runs yet: waiting for one");
                }
                _ => tracing::info!("no process is called '{names}' yet: waiting for it"),
            }
        }
        Ok(())
    }

    /// Periodically searches for new processes, if the source does not report processes that are not tracked.
    pub fn find_new(
        &mut self,
        sampling: &Sampling,
        output: &mut Output,
    ) -> Result<(), SessionError> {
        let reports_all = sampling.with(|sampler| sampler.source().is_system_wide());
        let due = self.search.at.elapsed() >= SEARCH_INTERVAL;
        if reports_all || !self.tracker.selects_by_name() || !due {
            return Ok(());
        }
        self.search.at = Instant::now();
        self.find_running(sampling, output)
    }

    /// Checks the processes that may have taken a name of the target's.
    pub fn find_named(
        &mut self,
        sampling: &Sampling,
        output: &mut Output,
    ) -> Result<(), SessionError> {
        let decided = self.tracker.decide_candidates();
        for pid in decided.matched {
            self.track_or_refuse(pid, sampling, output)?;
        }
        for pid in decided.expired {
            if self.tracked.get(&pid).is_some_and(Tracked::awaits_name) {
                self.tracked.remove(&pid);
                sampling.ignore(pid);
            }
        }
        Ok(())
    }

    /// Tracks one of several processes of the target. If that fails, the session continues without it.
    pub fn track_or_refuse(
        &mut self,
        pid: Pid,
        sampling: &Sampling,
        output: &mut Output,
    ) -> Result<(), SessionError> {
        if self.refused.contains_key(&pid) {
            return Ok(());
        }
        let tracked = self.track(pid, sampling, output);
        self.refuse_on_error(pid, tracked, output)
    }

    /// Handles the result of an action for a process. If the source cannot sample the process, the others are still recorded.
    pub(super) fn refuse_on_error(
        &mut self,
        pid: Pid,
        result: Result<(), SessionError>,
        output: &mut Output,
    ) -> Result<(), SessionError> {
        match result {
            Err(error @ (SessionError::Sampler(_) | SessionError::NotOwn { .. })) => {
                let names = Names::of(pid);
                let note = format!("process {pid} ({}) is not profiled: {error}", names.own);
                tracing::warn!("{note}");
                output.note_unseen([note]);
                self.refused.insert(pid, names);
                self.tracked.remove(&pid);
                Ok(())
            }
            result => result,
        }
    }

    /// Refuses a process of the target, because the limit of recorded processes is reached.
    pub(super) fn refuse_beyond_limit(
        &mut self,
        pid: Pid,
        names: Names,
        sampling: &Sampling,
        output: &mut Output,
    ) {
        self.tracked.remove(&pid);
        self.refused.insert(pid, names);
        output.note(format!(
            "more than the {} processes of limits.processes ran: those that came later were not recorded",
            self.options.limit.unwrap_or_default()
        ));
        sampling.ignore(pid);
    }

    /// Follows a zygote: it is not sampled, but its children are, from their first instruction on.
    pub(super) fn follow_zygote(
        &mut self,
        pid: Pid,
        sampling: &Sampling,
    ) -> Result<(), SessionError> {
        let managed = self.read(pid);
        let mut target = target_of(Some(&managed), self.options.stack);
        target.flags |= target_flags::IGNORE | target_flags::FOLLOW;
        sampling.set_target(pid, &target)?;
        Ok(())
    }

    /// Starts recording a running process that matches the target, unless it is recorded already.
    fn track(
        &mut self,
        pid: Pid,
        sampling: &Sampling,
        output: &mut Output,
    ) -> Result<(), SessionError> {
        self.tracker.forget(pid);
        let names = Names::of(pid);
        let at_limit = self.is_at_limit();
        let tracked = self.tracked.get_mut(&pid);
        let Some(tracked) = tracked.filter(|tracked| !tracked.lifetime.has_left()) else {
            return self.start_recording(pid, names, sampling, output);
        };
        let Some(held) = tracked.take_held() else {
            return Ok(());
        };
        if at_limit {
            self.refuse_beyond_limit(pid, names, sampling, output);
            return Ok(());
        }
        tracked.names = names;
        self.assign(pid, MonotonicNs::ZERO, output);
        tracing::info!(
            "process {pid} has taken its name: {} samples were kept for it",
            held.len()
        );
        write_thread_names(pid, sampling.latest(), output)?;
        self.released.extend(held);
        Ok(())
    }

    /// Starts recording a running process, for the first time or again.
    pub(super) fn start_recording(
        &mut self,
        pid: Pid,
        names: Names,
        sampling: &Sampling,
        output: &mut Output,
    ) -> Result<(), SessionError> {
        let mut since = sampling.latest();
        if let Some(before) = self.tracked.get_mut(&pid) {
            since = since.max(before.lifetime.left().unwrap_or_default());
            // So that the code in its earlier samples keeps its names.
            let written = output.recorder.write_jit_names(&mut before.managed, true);
            output.tolerate(written)?;
        }
        if self.is_at_limit() {
            self.refuse_beyond_limit(pid, names, sampling, output);
            return Ok(());
        }
        let managed = self.read(pid);
        let command = self.tracker.command_line(pid);
        let message = (!self.tracker.selects_all()).then(|| {
            let name = match (command, names.own.as_str()) {
                // varid's own child, which will execute the command later.
                (Some(line), _) => line,
                (None, "") => "?",
                (None, name) => name,
            };
            format!("profiling process {pid} ({name})")
        });
        let awaits_exec = command.is_some();
        let stage = match awaits_exec {
            true => Stage::AwaitsExec,
            false => Stage::Recorded,
        };
        let mut tracked = Tracked::new(managed, names, since, stage, awaits_exec);
        let vm = tracked.new_vm();
        self.insert(tracked, sampling)?;
        self.assign(pid, MonotonicNs::ZERO, output);
        sampling.attach_threads(pid)?;
        write_thread_names(pid, sampling.latest(), output)?;
        if let Some(message) = message {
            let vm = vm.map(|vm| format!(": {vm}: its methods will have names"));
            tracing::info!("{message}{}", vm.unwrap_or_default());
        }
        Ok(())
    }

    /// Tracks a process and sets its target in the source.
    pub(super) fn insert(
        &mut self,
        tracked: Tracked,
        sampling: &Sampling,
    ) -> Result<(), SessionError> {
        let pid = tracked.pid();
        self.search.found = true;
        let target = target_of(Some(&tracked.managed), self.options.stack);
        probe_libjvm(&tracked.managed, sampling)?;
        sampling.set_target(pid, &target)?;
        self.tracked.insert(pid, tracked);
        Ok(())
    }
}

/// Writes the names of a process's threads, because the kernel reports only later changes. `time`: that of the latest record,
/// because samples of the process may be older than the present time.
fn write_thread_names(
    pid: Pid,
    time: MonotonicNs,
    output: &mut Output,
) -> Result<(), SessionError> {
    for tid in tasks::threads(pid) {
        let Some(mut name) = tasks::thread_name(pid, tid) else {
            continue;
        };
        if tid.is_main_thread_of(pid) {
            name = tasks::full_name(pid, name);
        }
        output.write(&SessionRecord::Comm {
            time,
            pid,
            tid,
            exec: false,
            name,
        })?;
    }
    Ok(())
}
