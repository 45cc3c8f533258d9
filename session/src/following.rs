//! Who comes and changes while a session runs, and what the shim is told of it.

use super::tracked::{Names, Tracked};
use super::tracker::{self, Role};
use super::{Session, SessionError, unseen};
use crate::request::TargetSpec;
use nix::unistd::{User, geteuid};
use std::collections::HashSet;
use std::time::{Duration, Instant};
use varid_model::{MonotonicNs, Pid, Stack, Tid};
use varid_process::{MappedFile, Status};
use varid_recording::SessionRecord;
use varid_sampler::decode::{Mmap, Samples};
use varid_sampler::monotonic_ns;
use varid_shim::target_flags;
use varid_vm::ManagedProcess;

/// How often processes are looked for where nobody tells of new ones.
const LOOK: Duration = Duration::from_millis(100);

impl Session {
    pub(super) fn find_those_that_run(&mut self) -> Result<(), SessionError> {
        if let TargetSpec::All = self.options.target {
            let target = self.target_of(None);
            self.sampler(|sampler| sampler.admit_everyone(&target))?;
        }
        let own = std::process::id();
        let mut pids = tracker::all_pids();
        pids.retain(|pid| *pid != own || !matches!(self.options.target, TargetSpec::All));
        self.refused.retain(|pid, _| pids.contains(pid));
        if self.waits_for_samples() {
            return Ok(());
        }
        for pid in pids {
            match self.tracker.role(pid) {
                Role::Target if self.has_one_target() => self.track(pid)?,
                Role::Target => self.track_one_of_many(pid)?,
                Role::Zygote => {
                    let followed = self.follow_zygote(pid);
                    self.or_not_profiled(pid, followed)?;
                }
                Role::Stranger => {}
            }
        }
        if self.tracked.is_empty() && !self.waiting_said {
            self.waiting_said = true;
            if let TargetSpec::Named(_, names) = &self.options.target {
                tracing::info!("no process is called '{names}' yet: waiting for it");
            }
        }
        Ok(())
    }

    /// Only the shim's events tell of processes that are not tracked: without it they are looked for.
    pub(super) fn look_for_newcomers(&mut self) -> Result<(), SessionError> {
        let sees_everyone = self.sampler(|sampler| sampler.source().sees_everyone());
        if sees_everyone
            || !matches!(self.options.target, TargetSpec::Named(..))
            || self.looked.elapsed() < LOOK
        {
            return Ok(());
        }
        self.looked = Instant::now();
        self.find_those_that_run()
    }

    /// That another user's process has the app's name, or that there are too many, ends nothing.
    pub(super) fn track_one_of_many(&mut self, pid: u32) -> Result<(), SessionError> {
        if self.refused.contains_key(&pid) {
            return Ok(());
        }
        let tracked = self.track(pid);
        self.or_not_profiled(pid, tracked)
    }

    /// What the source cannot do for one process costs no other its samples.
    pub(super) fn or_not_profiled(
        &mut self,
        pid: u32,
        done: Result<(), SessionError>,
    ) -> Result<(), SessionError> {
        match done {
            Err(error @ (SessionError::Sampler(_) | SessionError::NotOwn { .. })) => {
                let names = Names::own(pid);
                let note = format!("process {pid} ({}) is not profiled: {error}", names.called);
                tracing::warn!("{note}");
                self.tell_unseen([note]);
                self.refused.insert(pid, names);
                self.tracked.remove(&pid);
                Ok(())
            }
            done => done,
        }
    }

    /// A zygote is not sampled; its children are, from their first instruction on.
    fn follow_zygote(&mut self, pid: u32) -> Result<(), SessionError> {
        let managed = ManagedProcess::running(pid, self.options.vms, &mut self.images);
        let mut target = self.target_of(Some(&managed));
        target.flags |= target_flags::IGNORE | target_flags::FOLLOW;
        self.sampler(|sampler| sampler.set_target(pid, &target))?;
        Ok(())
    }

    /// What the shim is told about a process, or about everyone.
    fn target_of(&self, managed: Option<&ManagedProcess>) -> varid_shim::Target {
        let stack = match self.options.stack {
            // What such a VM runs is seen only by unwinding it all.
            Stack::Vertical if managed.is_some_and(ManagedProcess::is_marked) => {
                target_flags::FULL_STACK
            }
            Stack::Vertical => 0,
            Stack::Full => target_flags::FULL_STACK,
            Stack::None => target_flags::NO_STACK,
        };
        let namespaced = if managed.is_some_and(|managed| managed.process.status.namespaced) {
            target_flags::NAMESPACED
        } else {
            0
        };
        let flags = stack | namespaced | target_flags::FOLLOW;
        match managed.and_then(|managed| managed.vm()) {
            Some(vm) => vm.facts().target(flags),
            None => varid_shim::Target {
                flags,
                ..varid_shim::Target::default()
            },
        }
    }

    /// A process that runs already becomes a target.
    pub(super) fn track(&mut self, pid: u32) -> Result<(), SessionError> {
        self.tracker.forget(pid);
        let names = Names::own(pid);
        let at_limit = self.is_at_process_limit();
        let here = self.tracked.get_mut(&pid);
        let Some(tracked) = here.filter(|tracked| tracked.left.is_none()) else {
            return self.begin(pid, names);
        };
        let Some(held) = tracked.held.take() else {
            return Ok(());
        };
        if at_limit {
            self.turn_away(pid, names);
            return Ok(());
        }
        tracked.names = names;
        self.assign(pid, 0);
        tracing::info!(
            "process {pid} has taken its name: {} samples were kept for it",
            held.len()
        );
        self.announce(pid)?;
        held.into_iter().try_for_each(|record| self.sample(record))
    }

    /// A process that runs already is recorded from now on, or again.
    pub(super) fn begin(&mut self, pid: u32, names: Names) -> Result<(), SessionError> {
        let mut since = self.handled;
        if let Some(before) = self.tracked.get_mut(&pid) {
            since = since.max(before.left.unwrap_or(0));
            // What it did before keeps its names.
            let kept = self.recorder.keep_code(&mut before.managed, true);
            self.tolerate(kept)?;
        }
        if self.is_at_process_limit() {
            self.turn_away(pid, names);
            return Ok(());
        }
        let managed = ManagedProcess::running(pid, self.options.vms, &mut self.images);
        let is_asked_for = !matches!(self.options.target, TargetSpec::All);
        let command = match &self.options.target {
            TargetSpec::Command(command, line) if *command == pid => Some(line),
            _ => None,
        };
        let profiling = is_asked_for.then(|| {
            format!(
                "profiling process {pid} ({}){}",
                match (command, names.called.as_str()) {
                    // It waits to become the command.
                    (Some(line), _) => line,
                    (None, "") => "?",
                    (None, called) => called,
                },
                managed.vm().map_or(String::new(), |vm| format!(
                    ", its VM known by {}",
                    vm.facts().known_by
                ))
            )
        });
        let awaits_exec = command.is_some();
        self.admit(managed, names, since, None, awaits_exec, awaits_exec)?;
        self.assign(pid, 0);
        self.sample_threads(pid)?;
        self.announce(pid)?;
        // From here on it is sampled.
        if let Some(profiling) = profiling {
            tracing::info!("{profiling}");
        }
        Ok(())
    }

    /// Where the source does not see everyone, it samples the threads of a process.
    pub(super) fn sample_threads(&mut self, pid: u32) -> Result<(), SessionError> {
        if self.sampler(|sampler| sampler.source().samples(pid)) {
            return Ok(());
        }
        // While some are attached, those that are not yet may start others.
        let mut attached = HashSet::new();
        while let Some(tid) = tracker::threads(pid)
            .into_iter()
            .find(|tid| !attached.contains(tid))
        {
            if let Err(error) = self.sampler(|sampler| sampler.add_thread(pid, tid)) {
                self.sampler(|sampler| sampler.let_go(pid));
                return Err(match tracker::owner(pid) {
                    Some(owner) if error.is_refusal() && owner != geteuid() => {
                        let user = User::from_uid(owner).ok().flatten();
                        let owner = user.map_or_else(|| format!("user {owner}"), |user| user.name);
                        SessionError::NotOwn { pid, owner }
                    }
                    _ => error.into(),
                });
            }
            attached.insert(tid);
        }
        Ok(())
    }

    pub(super) fn admit(
        &mut self,
        managed: ManagedProcess,
        names: Names,
        since: u64,
        held: Option<Samples>,
        awaits_exec: bool,
        born: bool,
    ) -> Result<(), SessionError> {
        let pid = managed.process.pid;
        self.ever_tracked = true;
        self.sampler(|sampler| sampler.set_target(pid, &self.target_of(Some(&managed))))?;
        self.tracked.insert(
            pid,
            Tracked {
                managed,
                names,
                since,
                gate: None,
                held,
                awaits_exec,
                copied: None,
                born: born.then(Instant::now),
                trials: (0, 0),
                main_thread_gone: false,
                dead_since: None,
                ended: None,
                left: None,
            },
        );
        Ok(())
    }

    /// Threads that have their names already will not say them again.
    fn announce(&mut self, pid: u32) -> Result<(), SessionError> {
        // Its samples may be of before now.
        let time = self.handled;
        for tid in tracker::threads(pid) {
            let Some(mut name) = tracker::thread_name(pid, tid) else {
                continue;
            };
            if tid == pid {
                name = tracker::full_name(pid, name);
            }
            self.record(&SessionRecord::Comm {
                time: MonotonicNs::new(time),
                pid: Pid::new(pid),
                tid: Tid::new(tid),
                exec: false,
                name,
            })?;
        }
        Ok(())
    }

    /// Records were lost: every process is looked at as if it had just been found.
    pub(super) fn look_again(&mut self) -> Result<(), SessionError> {
        let here = self.tracked.iter().filter(|(_, tracked)| tracked.is_here());
        let pids: Vec<u32> = here.map(|(pid, _)| *pid).collect();
        for pid in pids {
            let Some(tracked) = self.tracked.get_mut(&pid) else {
                continue;
            };
            tracked.managed.look_again(&mut self.images);
            tracked.gate.iter_mut().for_each(|gate| gate.forget());
            tracked.awaits_exec = false;
            tracked.trials = (0, 0);
            self.retarget(pid)?;
        }
        self.forget_the_dead()
    }

    pub(super) fn look_for_names(&mut self) -> Result<(), SessionError> {
        let (found, given_up) = self.tracker.look();
        for pid in found {
            self.track_one_of_many(pid)?;
        }
        for pid in given_up {
            if self
                .tracked
                .get(&pid)
                .is_some_and(|tracked| tracked.held.is_some())
            {
                self.tracked.remove(&pid);
                self.ignore(pid);
            }
        }
        Ok(())
    }

    pub(super) fn look_for_vms(&mut self) -> Result<(), SessionError> {
        let mut changed = Vec::new();
        for (pid, tracked) in &mut self.tracked {
            if tracked.managed.awaits_vm() && tracked.managed.find_vm() {
                changed.push(*pid);
            }
        }
        changed.into_iter().try_for_each(|pid| self.retarget(pid))
    }

    /// What is known of a process has changed: the shim is told.
    pub(super) fn retarget(&mut self, pid: u32) -> Result<(), SessionError> {
        let here = self.tracked.get(&pid).filter(|one| one.is_here());
        let Some(tracked) = here else {
            return Ok(());
        };
        if let Some(vm) = tracked.managed.vm() {
            tracing::info!(
                "process {pid}: its VM's frames are known by {}",
                vm.facts().known_by
            );
        }
        let is_known = tracked.managed.vm().is_some();
        let target = self.target_of(Some(&tracked.managed));
        self.sampler(|sampler| sampler.set_target(pid, &target))?;
        if is_known {
            tracing::debug!(pid, since = monotonic_ns(), "frames are walked");
        }
        Ok(())
    }

    pub(super) fn mmap(&mut self, mmap: &Mmap) -> Result<(), SessionError> {
        let Some(tracked) = self.tracked.get_mut(&mmap.pid) else {
            return Ok(());
        };
        let may_be_vm = tracked.managed.map(
            &mut self.images,
            &MappedFile {
                pid: mmap.pid,
                start: mmap.start,
                end: mmap.start.saturating_add(mmap.len),
                pgoff: mmap.pgoff,
                device: mmap.device,
                inode: mmap.inode,
                mode: mmap.mode,
                path: &mmap.path,
            },
        );
        if may_be_vm && tracked.managed.find_vm() {
            self.retarget(mmap.pid)?;
        }
        Ok(())
    }

    pub(super) fn comm(
        &mut self,
        time: u64,
        pid: u32,
        tid: u32,
        exec: bool,
        name: String,
    ) -> Result<(), SessionError> {
        if let Some(tracked) = self.tracked.get_mut(&pid) {
            if exec {
                self.calls.forget(pid);
                let kept = self.recorder.keep_code(&mut tracked.managed, true);
                let unseen = tracked.unseen();
                tracked.managed.exec();
                tracked.gate.iter_mut().for_each(|gate| gate.forget());
                tracked.awaits_exec = false;
                tracked.copied = None;
                tracked.born = Some(Instant::now());
                tracked.trials = (0, 0);
                self.tell_unseen(unseen);
                self.tolerate(kept)?;
                self.retarget(pid)?;
            } else if tid == pid {
                // A Zygote's child has become an app's, which is another user's.
                tracked.managed.process.status = Status::of(pid);
            }
            let name = if tid == pid {
                let name = tracker::full_name(pid, name);
                self.call(time, pid, &name, exec);
                name
            } else {
                name
            };
            self.record(&SessionRecord::Comm {
                time: MonotonicNs::new(time),
                pid: Pid::new(pid),
                tid: Tid::new(tid),
                exec,
                name,
            })?;
            let decided = |tracked: &Tracked| tracked.held.is_none() && tracked.left.is_none();
            if self.tracked.get(&pid).is_none_or(decided) {
                return Ok(());
            }
        }
        if self.tracker.role(pid) == Role::Zygote {
            let followed = self.follow_zygote(pid);
            return self.or_not_profiled(pid, followed);
        }
        self.tracker.watch(pid);
        Ok(())
    }

    /// A process is called so now, as another program if that is `new`.
    fn call(&mut self, time: u64, pid: u32, name: &str, new: bool) {
        let Some(tracked) = self.tracked.get_mut(&pid) else {
            return;
        };
        let renamed = tracked.names.called != name;
        if tracked.held.is_some() || !(renamed || new) {
            return;
        }
        if renamed {
            tracked.names.called = name.to_owned();
            let selection = &self.tracker.selection;
            if selection.names(name) || selection.terms(name, name).service.is_some() {
                tracked.names.by = name.to_owned();
            }
        }
        self.assign(pid, time);
    }

    pub(super) fn fork(
        &mut self,
        time: u64,
        pid: u32,
        ppid: u32,
        tid: u32,
        ptid: u32,
    ) -> Result<(), SessionError> {
        if pid != ppid {
            // The id was another process's, whose end went unseen or was followed by samples; or it has been found before it was told of.
            self.calls.forget(pid);
            self.refused.remove(&pid);
            let other = self.tracked.remove(&pid);
            let other = other.filter(|other| other.ended.is_some());
            self.tell_unseen(other.as_ref().map(Tracked::unseen).unwrap_or_default());
            self.sampler(|sampler| sampler.forked(ppid, pid));
        }
        let parent = self.tracked.get(&ppid).filter(|one| one.left.is_none());
        if let Some(parent) = parent {
            let (child, held) = (parent.managed.fork(pid), parent.held.is_some());
            let copied = unseen::why(&child);
            let names = parent.names.clone();
            self.record(&SessionRecord::Fork {
                time: MonotonicNs::new(time),
                pid: Pid::new(pid),
                ppid: Pid::new(ppid),
                tid: Tid::new(tid),
                ptid: Tid::new(ptid),
            })?;
            if pid != ppid && self.is_at_process_limit() {
                self.turn_away(pid, names);
            } else if pid != ppid {
                let held = held.then(Vec::new);
                let admitted = self.admit(child, names, time, held, false, true);
                self.or_not_profiled(pid, admitted)?;
                if let Some(tracked) = self.tracked.get_mut(&pid) {
                    tracked.copied = copied;
                }
                self.assign(pid, 0);
            }
        } else if pid != ppid && self.tracker.is_child_of_zygote(ppid) {
            let managed = ManagedProcess::running(pid, self.options.vms, &mut self.images);
            let held = Some(Vec::new());
            let admitted = self.admit(managed, Names::default(), time, held, false, true);
            self.or_not_profiled(pid, admitted)?;
            self.tracker.watch_child(pid);
        } else if pid != ppid
            && matches!(self.options.target, TargetSpec::All)
            && !self.waits_for_samples()
        {
            self.track_one_of_many(pid)?;
        }
        Ok(())
    }
}
