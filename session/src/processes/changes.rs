//! Handles mappings, names, execs and forks of processes, and VMs that start.

use super::Processes;
use super::target::{probe_libjvm, target_of};
use super::tracked::{Names, Stage, Tracked};
use super::tracker::Role;
use super::unseen::why_unseen;
use crate::SessionError;
use crate::output::Output;
use crate::sampling::Sampling;
use crate::tasks;
use varid_model::{MonotonicNs, Pid, Tid};
use varid_process::{KernelMapping, Status};
use varid_recording::SessionRecord;
use varid_sampler::decode::{Mmap, Samples};
use varid_vm::seam::Vm;

/// A thread changes its name.
#[derive(Debug, Clone)]
pub struct CommEvent {
    /// When it happened.
    pub time: MonotonicNs,
    /// The process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// True if the process has executed a new program, whose name this is.
    pub exec: bool,
    /// The name.
    pub name: String,
}

/// A process or a thread starts or ends.
#[derive(Debug, Clone, Copy)]
pub struct TaskEvent {
    /// When it happened.
    pub time: MonotonicNs,
    /// The process.
    pub pid: Pid,
    /// Its parent.
    pub ppid: Pid,
    /// The thread.
    pub tid: Tid,
    /// The thread that created it.
    pub ptid: Tid,
}

impl Processes {
    /// A process has mapped a file or memory.
    pub fn mmap(
        &mut self,
        mmap: &Mmap,
        sampling: &Sampling,
        output: &mut Output,
    ) -> Result<(), SessionError> {
        let pid = mmap.pid;
        let Some(tracked) = self.tracked.get_mut(&pid) else {
            return Ok(());
        };
        let may_be_vm = tracked.managed.map(
            &mut self.images,
            &KernelMapping {
                pid,
                start: mmap.start.get(),
                end: mmap.start.get().saturating_add(mmap.len),
                pgoff: mmap.pgoff,
                device: mmap.device,
                inode: mmap.inode,
                mode: mmap.mode,
                path: &mmap.path,
            },
        );
        if may_be_vm && let Err(error) = probe_libjvm(&tracked.managed, sampling) {
            output.note(format!("process {pid}: {error}"));
        }
        let is_code = |vm: &dyn Vm| {
            let compiler = vm.compiler();
            mmap.mode.execute && compiler.is_some_and(|compiler| compiler.may_be_in(&mmap.path))
        };
        let has_code = tracked.managed.vm().is_some_and(is_code);
        if may_be_vm && tracked.managed.find_vm() || has_code {
            self.retarget(pid, sampling)?;
        }
        Ok(())
    }

    /// Checks whether VMs that were starting are running now, and whether those that run have their first compiled code.
    pub fn find_vms(&mut self, sampling: &Sampling) -> Result<(), SessionError> {
        let mut changed = Vec::new();
        for (pid, tracked) in &mut self.tracked {
            let managed = &mut tracked.managed;
            if managed.awaits_vm() && managed.find_vm() || managed.finds_first_code() {
                changed.push(*pid);
            }
        }
        changed
            .into_iter()
            .try_for_each(|pid| self.retarget(pid, sampling))
    }

    /// Updates the process's target in the source after its VM or flags have changed.
    pub fn retarget(&mut self, pid: Pid, sampling: &Sampling) -> Result<(), SessionError> {
        let active = self.tracked.get_mut(&pid).filter(|one| one.is_active());
        let Some(tracked) = active else {
            return Ok(());
        };
        if let Some(vm) = tracked.new_vm() {
            tracing::info!("process {pid}: {vm}: its methods will have names");
        }
        if let Some(vm) = tracked.managed.vm() {
            tracing::debug!(
                "process {pid}: its VM's frames are known by {}",
                vm.layout_source()
            );
        }
        // A VM's compiler may be at work when the VM is found.
        tracked.managed.finds_first_code();
        let target = target_of(Some(&tracked.managed), self.options.stack);
        sampling.set_target(pid, &target)?;
        Ok(())
    }

    /// After a loss of records: reads every process's mappings as if it had just been found.
    pub fn reread_all(
        &mut self,
        sampling: &Sampling,
        output: &mut Output,
    ) -> Result<(), SessionError> {
        let active = self.tracked.iter().filter(|(_, one)| one.is_active());
        let pids: Vec<Pid> = active.map(|(pid, _)| *pid).collect();
        for pid in pids {
            let Some(tracked) = self.tracked.get_mut(&pid) else {
                continue;
            };
            tracked.managed.reread_mappings(&mut self.images);
            tracked.mappings_replaced();
            self.retarget(pid, sampling)?;
        }
        self.remove_ended(sampling, output)
    }

    /// Handles the new name of a thread.
    pub fn comm(
        &mut self,
        event: CommEvent,
        sampling: &Sampling,
        output: &mut Output,
    ) -> Result<(), SessionError> {
        let (time, pid, tid, exec) = (event.time, event.pid, event.tid, event.exec);
        if let Some(tracked) = self.tracked.get_mut(&pid) {
            let mut name = event.name;
            let is_main = tid.is_main_thread_of(pid);
            if exec {
                self.exec(pid, sampling, output)?;
            } else if is_main {
                // A zygote's child has become an app, which runs as another user.
                tracked.managed.process.status = Status::of(pid);
            }
            if is_main {
                name = tasks::full_name(pid, name);
                self.rename(pid, time, &name, exec, output);
            }
            output.write(&SessionRecord::Comm {
                time,
                pid,
                tid,
                exec,
                name,
            })?;
            // A process that has left the target, or has no name yet, may match it now.
            let decided = |one: &Tracked| !one.awaits_name() && !one.lifetime.has_left();
            if self.tracked.get(&pid).is_none_or(decided) {
                return Ok(());
            }
        }
        if self.tracker.role(pid) == Role::Zygote {
            let followed = self.follow_zygote(pid, sampling);
            return self.refuse_on_error(pid, followed, output);
        }
        self.tracker.add_candidate(pid);
        Ok(())
    }

    /// Handles an exec of a tracked process.
    fn exec(
        &mut self,
        pid: Pid,
        sampling: &Sampling,
        output: &mut Output,
    ) -> Result<(), SessionError> {
        self.calls.forget(pid);
        let Some(tracked) = self.tracked.get_mut(&pid) else {
            return Ok(());
        };
        let written = output.recorder.write_jit_names(&mut tracked.managed, true);
        output.note_unseen(tracked.unseen());
        tracked.exec();
        output.tolerate(written)?;
        self.retarget(pid, sampling)
    }

    /// Renames a tracked process. `exec`: it executes another program.
    fn rename(&mut self, pid: Pid, time: MonotonicNs, name: &str, exec: bool, output: &mut Output) {
        let Some(tracked) = self.tracked.get_mut(&pid) else {
            return;
        };
        let renamed = tracked.names.own != name;
        if tracked.awaits_name() || !(renamed || exec) {
            return;
        }
        if renamed {
            name.clone_into(&mut tracked.names.own);
            let selection = self.tracker.selection();
            if selection.names(name) || selection.terms(name, name).service.is_some() {
                name.clone_into(&mut tracked.names.selected_by);
            }
        }
        self.assign(pid, time, output);
    }

    /// Handles a fork or a new thread.
    pub fn fork(
        &mut self,
        event: TaskEvent,
        sampling: &Sampling,
        output: &mut Output,
    ) -> Result<(), SessionError> {
        let (pid, ppid) = (event.pid, event.ppid);
        let is_process = pid != ppid;
        if is_process {
            self.forget_earlier(pid, output);
            sampling.with(|sampler| sampler.forked(ppid, pid));
        }
        let parent = self.tracked.get(&ppid);
        let parent = parent.filter(|parent| !parent.lifetime.has_left());
        if let Some(parent) = parent {
            let child = is_process.then(|| parent.managed.fork(pid));
            let (names, awaits_name) = (parent.names.clone(), parent.awaits_name());
            let TaskEvent {
                time,
                pid,
                ppid,
                tid,
                ptid,
            } = event;
            output.write(&SessionRecord::Fork {
                time,
                pid,
                ppid,
                tid,
                ptid,
            })?;
            let Some(child) = child else {
                return Ok(());
            };
            if self.is_at_limit() {
                self.refuse_beyond_limit(pid, names, sampling, output);
            } else {
                let stage = match awaits_name {
                    true => Stage::AwaitsName(Samples::new()),
                    false => Stage::Recorded,
                };
                let problem = why_unseen(&child);
                let mut tracked = Tracked::new(child, names, time, stage, true);
                tracked.inherit_problem(problem);
                let inserted = self.insert(tracked, sampling);
                self.refuse_on_error(pid, inserted, output)?;
                self.assign(pid, MonotonicNs::ZERO, output);
            }
        } else if is_process && self.tracker.is_zygote(ppid) {
            let managed = self.read(pid);
            let stage = Stage::AwaitsName(Samples::new());
            let tracked = Tracked::new(managed, Names::default(), event.time, stage, true);
            let inserted = self.insert(tracked, sampling);
            self.refuse_on_error(pid, inserted, output)?;
            self.tracker.add_zygote_child(pid);
        } else if is_process && self.tracker.selects_all() && !self.waits_for_samples() {
            self.track_or_refuse(pid, sampling, output)?;
        }
        Ok(())
    }

    /// Handles the start of a process. State under its id belongs to an earlier process, or to this one if a scan of /proc found it
    /// before its fork record.
    fn forget_earlier(&mut self, pid: Pid, output: &mut Output) {
        self.calls.forget(pid);
        self.refused.remove(&pid);
        let earlier = self.tracked.remove(&pid);
        if let Some(earlier) = earlier.filter(|earlier| earlier.lifetime.has_ended()) {
            output.note_unseen(earlier.unseen());
        }
    }
}
