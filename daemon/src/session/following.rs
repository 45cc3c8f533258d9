//! Who comes, changes and goes while a session runs, and what the shim is told of it.

use super::tracker::{self, Role, TargetSpec};
use super::{Session, SessionError, Tracked};
use crate::process::{MappedFile, Process};
use crate::sampler::decode::{Mmap, Samples};
use crate::sampler::monotonic_ns;
use std::collections::HashSet;
use std::time::{Duration, Instant};
use varid_recording::{Record, Stack};
use varid_shim::target_flags;

/// How often processes are looked for where nobody tells of new ones.
const LOOK: Duration = Duration::from_millis(100);

/// For so long the last records of a process that has ended may come.
const MOURNING: Duration = Duration::from_secs(2);

impl Session {
    pub(super) fn find_those_that_run(&mut self) -> Result<(), SessionError> {
        if let TargetSpec::All = self.options.target {
            let target = self.target_of(None);
            self.sampler.admit_everyone(&target)?;
        }
        let own = std::process::id();
        let mut pids = tracker::all_pids();
        pids.retain(|pid| *pid != own || !matches!(self.options.target, TargetSpec::All));
        self.refused.retain(|pid| pids.contains(pid));
        for pid in pids {
            match self.tracker.role(pid) {
                Role::Target if matches!(self.options.target, TargetSpec::App(_)) => {
                    self.track_one_of_many(pid)
                }
                Role::Target => self.track(pid)?,
                Role::Zygote => self.follow_zygote(pid)?,
                Role::Stranger => {}
            }
        }
        if self.tracked.is_empty() && !self.waiting_said {
            self.waiting_said = true;
            if let TargetSpec::App(package) = &self.options.target {
                tracing::info!("no process is called '{package}' yet: waiting for it");
            }
        }
        Ok(())
    }

    /// Only the shim's events tell of processes that are not tracked: without it they are looked for.
    pub(super) fn look_for_newcomers(&mut self) -> Result<(), SessionError> {
        let told = self.sampler.source().sees_everyone();
        if told
            || !matches!(self.options.target, TargetSpec::App(_))
            || self.looked.elapsed() < LOOK
        {
            return Ok(());
        }
        self.looked = Instant::now();
        self.find_those_that_run()
    }

    /// That another user's process has the app's name ends nothing.
    fn track_one_of_many(&mut self, pid: u32) {
        if self.refused.contains(&pid) {
            return;
        }
        if let Err(error) = self.track(pid) {
            tracing::warn!("process {pid} is not profiled: {error}");
            self.refused.insert(pid);
            self.tracked.remove(&pid);
        }
    }

    /// A zygote is not sampled; its children are, from their first instruction on.
    fn follow_zygote(&mut self, pid: u32) -> Result<(), SessionError> {
        let process = Process::running(pid, &mut self.images);
        let mut target = self.target_of(Some(&process));
        target.flags |= target_flags::IGNORE | target_flags::FOLLOW;
        self.sampler.set_target(pid, &target)?;
        Ok(())
    }

    /// What the shim is told about a process, or about everyone.
    fn target_of(&self, process: Option<&Process>) -> varid_shim::Target {
        let stack = match self.options.stack {
            // What such a VM runs is seen only by unwinding it all.
            Stack::Vertical if process.is_some_and(Process::is_marked) => target_flags::FULL_STACK,
            Stack::Vertical => 0,
            Stack::Full => target_flags::FULL_STACK,
            Stack::None => target_flags::NO_STACK,
        };
        let namespaced = if process.is_some_and(|process| process.namespaced) {
            target_flags::NAMESPACED
        } else {
            0
        };
        let flags = stack | namespaced | target_flags::FOLLOW;
        match process.and_then(|process| process.vm.as_ref()) {
            Some(vm) => vm.target(flags),
            None => varid_shim::Target {
                flags,
                ..varid_shim::Target::default()
            },
        }
    }

    /// A process that runs already becomes a target.
    pub(super) fn track(&mut self, pid: u32) -> Result<(), SessionError> {
        self.tracker.forget(pid);
        if let Some(tracked) = self.tracked.get_mut(&pid) {
            let Some(held) = tracked.held.take() else {
                return Ok(());
            };
            tracing::info!(
                "process {pid} has taken its name: {} samples were kept for it",
                held.len()
            );
            self.announce(pid)?;
            return held.into_iter().try_for_each(|record| self.sample(record));
        }
        let process = Process::running(pid, &mut self.images);
        if !matches!(self.options.target, TargetSpec::All) {
            tracing::info!(
                "profiling process {pid} ({}){}",
                tracker::command_name(pid).unwrap_or_else(|| "?".to_owned()),
                process.vm.as_ref().map_or(String::new(), |vm| format!(
                    ", its VM known by {}",
                    vm.known_by
                ))
            );
        }
        let awaits_exec =
            matches!(&self.options.target, TargetSpec::Command(command, _) if *command == pid);
        self.admit(process, None, awaits_exec, awaits_exec)?;
        // While some are attached, those that are not yet may start others.
        let mut attached = HashSet::new();
        while let Some(tid) = tracker::threads(pid)
            .into_iter()
            .find(|tid| !attached.contains(tid))
        {
            self.sampler.add_thread(tid)?;
            attached.insert(tid);
        }
        self.announce(pid)
    }

    pub(super) fn admit(
        &mut self,
        process: Process,
        held: Option<Samples>,
        awaits_exec: bool,
        born: bool,
    ) -> Result<(), SessionError> {
        let pid = process.pid;
        self.sampler
            .set_target(pid, &self.target_of(Some(&process)))?;
        self.tracked.insert(
            pid,
            Tracked {
                process,
                held,
                awaits_exec,
                born: born.then(Instant::now),
                trials: (0, 0),
                main_thread_gone: false,
                dead_since: None,
                departed: None,
            },
        );
        Ok(())
    }

    /// Threads that have their names already will not say them again.
    fn announce(&mut self, pid: u32) -> Result<(), SessionError> {
        let time = monotonic_ns();
        for tid in tracker::threads(pid) {
            let Some(mut name) = tracker::thread_name(pid, tid) else {
                continue;
            };
            if tid == pid {
                name = tracker::full_name(pid, name);
            }
            self.record(&Record::Comm {
                time,
                pid,
                tid,
                exec: false,
                name,
            })?;
        }
        Ok(())
    }

    /// Records were lost: every process is looked at as if it had just been found.
    pub(super) fn look_again(&mut self) -> Result<(), SessionError> {
        let here = self
            .tracked
            .iter()
            .filter(|(_, tracked)| tracked.departed.is_none());
        let pids: Vec<u32> = here.map(|(pid, _)| *pid).collect();
        for pid in pids {
            let Some(tracked) = self.tracked.get_mut(&pid) else {
                continue;
            };
            let jit = std::mem::take(&mut tracked.process.jit);
            tracked.process = Process::running(pid, &mut self.images);
            tracked.process.jit = jit;
            tracked.awaits_exec = false;
            tracked.trials = (0, 0);
            self.retarget(pid)?;
        }
        self.forget_the_dead()
    }

    /// Ends that nobody told of, and those that have been told of long enough ago: what a
    /// process did last may still be in the rings for a while.
    pub(super) fn forget_the_dead(&mut self) -> Result<(), SessionError> {
        self.tracked.retain(|_, tracked| {
            tracked
                .departed
                .is_none_or(|since| since.elapsed() < MOURNING)
        });
        let mut untold = Vec::new();
        for (pid, tracked) in self
            .tracked
            .iter_mut()
            .filter(|(_, tracked)| tracked.departed.is_none())
        {
            if tracker::is_alive(*pid) {
                tracked.dead_since = None;
            } else if tracked
                .dead_since
                .get_or_insert_with(Instant::now)
                .elapsed()
                > MOURNING
            {
                untold.push(*pid);
            }
        }
        untold.into_iter().try_for_each(|pid| self.exit(pid, pid))
    }

    pub(super) fn look_for_names(&mut self) -> Result<(), SessionError> {
        let (found, given_up) = self.tracker.look();
        for pid in found {
            self.track(pid)?;
        }
        for pid in given_up {
            if self
                .tracked
                .get(&pid)
                .is_some_and(|tracked| tracked.held.is_some())
            {
                self.tracked.remove(&pid);
                let stranger = varid_shim::Target {
                    flags: target_flags::IGNORE,
                    ..Default::default()
                };
                self.sampler.set_target(pid, &stranger)?;
            }
        }
        Ok(())
    }

    pub(super) fn look_for_vms(&mut self) -> Result<(), SessionError> {
        let mut changed = Vec::new();
        for (pid, tracked) in &mut self.tracked {
            if tracked.process.awaits_vm() && tracked.process.find_vm() {
                changed.push(*pid);
            }
        }
        changed.into_iter().try_for_each(|pid| self.retarget(pid))
    }

    /// What is known of a process has changed: the shim is told.
    pub(super) fn retarget(&mut self, pid: u32) -> Result<(), SessionError> {
        let Some(tracked) = self.tracked.get(&pid) else {
            return Ok(());
        };
        if let Some(vm) = &tracked.process.vm {
            tracing::info!(
                "process {pid}: its VM's frames are known by {}",
                vm.known_by
            );
        }
        let target = self.target_of(Some(&tracked.process));
        Ok(self.sampler.set_target(pid, &target)?)
    }

    pub(super) fn mmap(&mut self, mmap: &Mmap) -> Result<(), SessionError> {
        let Some(tracked) = self.tracked.get_mut(&mmap.pid) else {
            return Ok(());
        };
        let may_be_vm = tracked.process.map(
            &mut self.images,
            &MappedFile {
                pid: mmap.pid,
                start: mmap.start,
                end: mmap.start.saturating_add(mmap.len),
                pgoff: mmap.pgoff,
                inode: mmap.inode,
                executable: mmap.prot & libc::PROT_EXEC as u32 != 0,
                path: &mmap.path,
            },
        );
        if may_be_vm && tracked.process.find_vm() {
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
                let kept = self.recorder.keep_code(&mut tracked.process, true);
                tracked.process.exec();
                tracked.awaits_exec = false;
                tracked.born = Some(Instant::now());
                tracked.trials = (0, 0);
                self.tolerate(kept)?;
                self.retarget(pid)?;
            }
            let name = if tid == pid {
                tracker::full_name(pid, name)
            } else {
                name
            };
            self.record(&Record::Comm {
                time,
                pid,
                tid,
                exec,
                name,
            })?;
            if self
                .tracked
                .get(&pid)
                .is_none_or(|tracked| tracked.held.is_none())
            {
                return Ok(());
            }
        }
        if self.tracker.role(pid) == Role::Zygote {
            return self.follow_zygote(pid);
        }
        self.tracker.watch(pid);
        Ok(())
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
            // The id was another process's, whose end went unseen or was followed by samples.
            self.tracked.remove(&pid);
        }
        if let Some(parent) = self.tracked.get(&ppid) {
            let (child, held) = (parent.process.fork(pid), parent.held.is_some());
            self.record(&Record::Fork {
                time,
                pid,
                ppid,
                tid,
                ptid,
            })?;
            if pid != ppid {
                self.admit(child, held.then(Vec::new), false, true)?;
            }
        } else if pid != ppid && self.tracker.is_child_of_zygote(ppid) {
            let process = Process::running(pid, &mut self.images);
            self.admit(process, Some(Vec::new()), false, true)?;
            self.tracker.watch_child(pid);
        } else if pid != ppid && matches!(self.options.target, TargetSpec::All) {
            self.track(pid)?;
        }
        Ok(())
    }

    pub(super) fn exit(&mut self, pid: u32, tid: u32) -> Result<(), SessionError> {
        let Some(tracked) = self.tracked.get_mut(&pid) else {
            if pid == tid {
                self.tracker.forget(pid);
                // It may have been known as one to ignore.
                self.sampler.remove_target(pid)?;
            }
            return Ok(());
        };
        tracked.main_thread_gone |= pid == tid;
        if tracked.departed.is_none() && tracked.main_thread_gone && !tracker::is_alive(pid) {
            if tracked.held.is_none() && !matches!(self.options.target, TargetSpec::All) {
                tracing::info!("process {pid} has ended");
            }
            // On its way out it is sampled still: it is forgotten a little later.
            tracked.departed = Some(Instant::now());
            self.tracker.forget(pid);
            self.sampler.remove_target(pid)?;
        }
        Ok(())
    }
}
