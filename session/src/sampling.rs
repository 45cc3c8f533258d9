//! The source of a session's records.
//!
//! Records come from the sampler, which is shared with the thread that drains the rings while the session is busy.

mod loading;

use super::SessionError;
use super::tasks;
use loading::Loading;
use nix::unistd::{User, geteuid};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use varid_model::{MonotonicNs, Pid};
use varid_sampler::decode::Stamped;
use varid_sampler::event::jvm::{Libjvm, LibjvmFile, LibjvmId};
use varid_sampler::{Drainer, Sampler, SamplerError, SamplerOptions, Source, monotonic_ns};
use varid_shim::{Target, target_flags};

/// The sampler, and how far its records have been handled.
#[derive(Debug)]
pub struct Sampling {
    sampler: Arc<Mutex<Sampler>>,
    drainer: Drainer,
    loading: Mutex<Loading>,
    /// The libraries of HotSpot that are probed, or cannot be. None if no event is sampled there.
    libraries: Option<Mutex<HashSet<LibjvmId>>>,
    /// Buffer for the records of a turn.
    records: Vec<Stamped>,
    latest: MonotonicNs,
}

impl Sampling {
    /// Opens the events. They are not enabled yet.
    pub fn open(options: SamplerOptions, source: Source) -> Result<Self, SamplerError> {
        let sampler = Sampler::open(options, source)?;
        let loading = Mutex::new(Loading::new(sampler.walkers()));
        let libraries = sampler.probes_libjvm().then(Mutex::default);
        let sampler = Arc::new(Mutex::new(sampler));
        Ok(Self {
            drainer: Drainer::of(&sampler)?,
            loading,
            libraries,
            sampler,
            records: Vec::new(),
            latest: MonotonicNs::ZERO,
        })
    }

    /// Calls `run` with the sampler. It must be short, because the drainer waits for it.
    pub fn with<R>(&self, run: impl FnOnce(&mut Sampler) -> R) -> R {
        run(&mut self.sampler.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Enables the events. From now on the drainer drains the rings whenever the session does not wait.
    pub fn start(&self) -> Result<(), SamplerError> {
        self.drainer.session_is_busy();
        self.with(|sampler| sampler.enable())
    }

    /// Waits for records, at most this many milliseconds.
    pub fn wait(&self, milliseconds: u16) {
        self.drainer.session_waits();
        self.with(|sampler| sampler.wait(milliseconds));
        self.drainer.session_is_busy();
    }

    /// Returns the records before which no other record can still arrive, in order of time. At the `last` turn, returns all of them.
    pub fn take_records(&mut self, last: bool) -> Vec<Stamped> {
        let mut records = std::mem::take(&mut self.records);
        self.with(|sampler| sampler.drain(last, |stamped| records.push(stamped)));
        records
    }

    /// Returns the buffer of handled records.
    pub fn reuse(&mut self, mut records: Vec<Stamped>) {
        records.clear();
        self.records = records;
    }

    /// Sets the time of the record that is handled now.
    pub fn advance(&mut self, time: MonotonicNs) {
        self.latest = self.latest.max(time);
    }

    /// The time of the latest record that has been handled. No later record is older.
    pub fn latest(&self) -> MonotonicNs {
        self.latest
    }

    /// Samples HotSpot's events in a library, unless it does already, or there are no such events.
    pub fn add_libjvm(&self, file: LibjvmFile<'_>) -> Result<(), SamplerError> {
        let Some(libraries) = &self.libraries else {
            return Ok(());
        };
        let mut known = libraries.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.insert(file.id) {
            return Ok(());
        }
        let library = Libjvm::read(file)?;
        self.with(|sampler| sampler.add_libjvm(&library))
    }

    /// Returns true if HotSpot's events are sampled, and no library of it was found.
    pub fn lacks_libjvm(&self) -> bool {
        let libraries = self.libraries.as_ref();
        libraries.is_some_and(|known| {
            known
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .is_empty()
        })
    }

    /// Makes a thread load the programs that walk the frames of VMs with other than basic rules, because a VM may start.
    pub fn expect_vm(&self) {
        self.loading().start();
    }

    /// Waits until these programs are loaded or refused.
    pub fn load_walkers(&self) {
        self.loading().finish();
    }

    /// Returns the reason why the kernel refuses a program that a process needs, once.
    pub fn take_refusal(&self) -> Option<String> {
        self.loading().take_refusal()
    }

    /// Sets how a process is sampled. While a thread loads the program that walks all of its frames, only linked frames are walked, and the
    /// others come from copies of its stack.
    pub fn set_target(&self, pid: Pid, target: &Target) -> Result<(), SamplerError> {
        let mut loading = self.loading();
        if target.needs_walker() {
            loading.need();
        }
        self.with(|sampler| sampler.set_target(pid, target))?;
        if target.rules != 0 && (!target.needs_walker() || loading.is_over()) {
            let (pid, since) = (pid.get(), monotonic_ns().get());
            tracing::debug!(pid, since, "frames are walked");
        }
        Ok(())
    }

    /// Removes the target of a process, which is sampled by the default target again.
    pub fn remove_target(&self, pid: Pid) -> Result<(), SamplerError> {
        self.with(|sampler| sampler.remove_target(pid))
    }

    fn loading(&self) -> MutexGuard<'_, Loading> {
        self.loading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the source ignore a process and its children.
    pub fn ignore(&self, pid: Pid) {
        let ignored = Target {
            flags: target_flags::IGNORE,
            ..Target::default()
        };
        if let Err(error) = self.set_target(pid, &ignored) {
            // In this case the session drops its samples.
            tracing::warn!("process {pid} is sampled although it is not recorded: {error}");
        }
    }

    /// Attaches the source to the threads of a process, if it does not sample every process.
    pub fn attach_threads(&self, pid: Pid) -> Result<(), SessionError> {
        if self.with(|sampler| sampler.source().samples(pid)) {
            return Ok(());
        }
        // Threads that are not attached yet may create others meanwhile.
        let mut attached = HashSet::new();
        while let Some(tid) = tasks::threads(pid)
            .into_iter()
            .find(|tid| !attached.contains(tid))
        {
            if let Err(error) = self.with(|sampler| sampler.add_thread(pid, tid)) {
                self.with(|sampler| sampler.detach(pid));
                return Err(match tasks::owner(pid) {
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
}
