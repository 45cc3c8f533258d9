//! A profiling session: from the kernel's records to the recording, in one loop.

mod recorder;
mod tracker;

pub use recorder::RecorderError;
pub use tracker::TargetSpec;

use crate::attribution::{Attributed, attribute};
use crate::process::{Images, MappedFile, Process};
use crate::sampler::decode::{Mmap, RingEvent, Stamped};
use crate::sampler::event::{Event, Rate};
use crate::sampler::{Sampler, SamplerError, SamplerOptions, Source, monotonic_ns};
use recorder::Recorder;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use thiserror::Error;
use tracker::{Role, Tracker};
use varid_recording::{CpuMode, EventDesc, Manifest, Record, Sample, Stack, State, Target, TargetKind};
use varid_shim::{Shim, flags, target_flags};

/// What a session is asked to do.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// Who is profiled.
    pub target: TargetSpec,
    /// The event that is sampled.
    pub event: Event,
    /// How often.
    pub rate: Rate,
    /// How much of each stack.
    pub stack: Stack,
    /// Which source; none: the best that works here.
    pub shim: Option<ShimKind>,
    /// Keep the kernel's own samples beside ours.
    pub keep_raw: bool,
    /// The session's folder.
    pub output: PathBuf,
    /// Stop by itself after this long.
    pub duration: Option<Duration>,
    /// Pages of each CPU's ring.
    pub ring_pages: usize,
}

/// Where frames are walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShimKind {
    /// In the kernel, by a BPF program.
    Bpf,
    /// Later, over perf's copy of the stack.
    Perf,
}

/// Why a session failed.
#[derive(Debug, Error)]
pub enum SessionError {
    /// Sampling.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    /// Recording.
    #[error(transparent)]
    Recorder(#[from] RecorderError),
    /// The unprivileged source cannot do that.
    #[error("profiling {0} needs the BPF shim (root, or CAP_BPF and CAP_PERFMON); without it name one process with --pid or start it with 'varid record'")]
    NeedsPrivilege(&'static str),
    /// There is no such process.
    #[error("no process has the id {0}")]
    NoProcess(u32),
    /// The kernel's own samples cannot be kept.
    #[error("--keep-raw needs the BPF shim: the other source has no samples but the kernel's own")]
    NoRaw,
    /// The raw samples' file.
    #[error("cannot write {path}: {source}")]
    Raw {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// What others may see of a running session, and how they stop it.
#[derive(Debug, Default)]
pub struct SessionControl {
    /// Set to end the session.
    pub stop: Arc<AtomicBool>,
    /// Samples recorded.
    pub samples: AtomicU64,
    /// Processes that are profiled now.
    pub processes: AtomicU64,
    /// Records lost.
    pub lost: AtomicU64,
    /// Bytes of perf.data.
    pub bytes: AtomicU64,
}

/// How long the loop sleeps at most: the delay of what `status` shows.
const IDLE_MS: u16 = 50;
/// The same while a VM or a name is awaited: what it does before it is found cannot be named.
const AWAKE_MS: u16 = 2;
/// A VM that a process has comes up within this time.
const YOUTH: Duration = Duration::from_secs(2);
/// How often everything is brought to the disk.
const FLUSH: Duration = Duration::from_millis(500);
/// How often processes are looked for where nobody tells of new ones.
const LOOK: Duration = Duration::from_millis(100);
/// Samples of a process without a name that are kept until it has one.
const MAX_HELD: usize = 100_000;
/// Samples in the loop's body after which a layout that was never right is refused.
const LAYOUT_TRIALS: u32 = 50;

/// A process that the session looks at.
#[derive(Debug)]
struct Tracked {
    process: Process,
    /// Its samples wait for its name.
    held: Option<Vec<varid_shim::Record>>,
    /// It is varid's own child, and has not become the command yet.
    awaits_exec: bool,
    /// When it was forked or became another program: a VM may come up in it.
    born: Option<Instant>,
    /// In-body samples: tried, walked.
    trials: (u32, u32),
    main_thread_gone: bool,
}

/// A running session.
pub struct Session {
    options: SessionOptions,
    sampler: Sampler,
    recorder: Recorder,
    raw: Option<crate::raw::RawFile>,
    tracker: Tracker,
    images: Images,
    tracked: HashMap<u32, Tracked>,
    control: Arc<SessionControl>,
    waiting_said: bool,
    throttled: u64,
    transitions: u64,
    no_space: u64,
    started: Instant,
    flushed: Instant,
    looked: Instant,
    /// Processes of the app that may not be sampled.
    refused: HashSet<u32>,
    full: bool,
}

impl Session {
    /// Opens events, creates the recording, finds who is there already. Sampling is on when
    /// this returns.
    pub fn start(options: SessionOptions, control: Arc<SessionControl>) -> Result<Self, SessionError> {
        if let TargetSpec::Pid(pid) | TargetSpec::Command(pid, _) = &options.target {
            if !tracker::is_alive(*pid) {
                return Err(SessionError::NoProcess(*pid));
            }
        }
        let source = choose_source(options.shim)?;
        if matches!(source, Source::StackCopy) {
            match &options.target {
                TargetSpec::All => return Err(SessionError::NeedsPrivilege("all processes")),
                _ if options.keep_raw => return Err(SessionError::NoRaw),
                _ => {}
            }
        }
        let sampler = Sampler::open(
            SamplerOptions {
                event: options.event.clone(),
                rate: options.rate,
                keep_raw: options.keep_raw,
                stack_copy: 32768,
                ring_pages: options.ring_pages,
            },
            source,
        )?;
        let recorder = Recorder::create(&options.output, manifest(&options, sampler.source()))?;
        let raw = if options.keep_raw {
            let path = options.output.join("raw.data");
            let raw = crate::raw::RawFile::create(&path, &sampler.raw_attr());
            Some(raw.map_err(|source| SessionError::Raw { path, source })?)
        } else {
            None
        };
        let mut session = Self {
            tracker: Tracker::new(options.target.clone()),
            options,
            sampler,
            recorder,
            raw,
            images: Images::default(),
            tracked: HashMap::new(),
            control,
            waiting_said: false,
            throttled: 0,
            transitions: 0,
            no_space: 0,
            started: Instant::now(),
            flushed: Instant::now(),
            looked: Instant::now(),
            refused: HashSet::new(),
            full: false,
        };
        session.sampler.enable()?;
        session.find_those_that_run()?;
        // Whether it waits or records is known from here on.
        session.update_manifest();
        Ok(session)
    }

    /// Runs until it is told to stop, its time is over, or its only process has ended.
    pub fn run(mut self) -> Result<PathBuf, SessionError> {
        let result = self.run_loop();
        // What was recorded is kept whatever happened.
        let ended = self.end();
        result.and(ended)?;
        Ok(self.options.output)
    }

    fn run_loop(&mut self) -> Result<(), SessionError> {
        while !self.control.stop.load(Ordering::Relaxed) {
            if self.options.duration.is_some_and(|duration| self.started.elapsed() >= duration) {
                break;
            }
            self.sampler.wait(if self.awaits_something() { AWAKE_MS } else { IDLE_MS });
            self.turn(false)?;
            if self.only_target_is_gone() {
                // What it did last is still in the rings.
                break;
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), SessionError> {
        self.sampler.disable()?;
        self.turn(true)?;
        self.update_manifest();
        self.recorder.writer().manifest_mut().state = State::Complete;
        self.recorder.finish()?;
        Ok(())
    }

    /// One turn of the loop: drain, handle, look for newcomers, flush when it is time.
    fn turn(&mut self, last: bool) -> Result<(), SessionError> {
        let mut drained = Vec::new();
        self.sampler.drain(last, |stamped| drained.push(stamped));
        for stamped in drained {
            self.handle(stamped)?;
        }
        self.look_for_names()?;
        self.look_for_newcomers()?;
        self.look_for_vms()?;
        if last || self.flushed.elapsed() >= FLUSH {
            self.flush()?;
            self.flushed = Instant::now();
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SessionError> {
        self.update_manifest();
        if let Some(raw) = &mut self.raw {
            raw.flush().map_err(|source| SessionError::Raw { path: self.options.output.join("raw.data"), source })?;
        }
        match self.recorder.flush() {
            // A full disk: what was written stays readable, and the next flush tries again.
            Err(error) if !self.full => {
                tracing::error!("{error}; recording goes on and is written when there is room");
                self.full = true;
            }
            Err(_) => {}
            Ok(()) if self.full => {
                tracing::info!("there is room on the disk again; nothing that was kept is lost");
                self.full = false;
            }
            Ok(()) => {}
        }
        Ok(())
    }

    fn update_manifest(&mut self) {
        let elapsed = self.started.elapsed().as_nanos() as u64;
        let no_space = match self.sampler.source() {
            Source::Bpf(shim) => shim.counters().map_or(0, |counters| counters.no_space),
            Source::StackCopy => 0,
        };
        self.no_space = no_space;
        let writer = self.recorder.writer();
        let counts = writer.counts().clone();
        let bytes = writer.bytes_written();
        let manifest = writer.manifest_mut();
        manifest.duration_ns = elapsed;
        manifest.counts.throttled = self.throttled;
        manifest.counts.transitions = self.transitions;
        self.control.samples.store(counts.samples, Ordering::Relaxed);
        self.control.lost.store(counts.lost, Ordering::Relaxed);
        self.control.bytes.store(bytes, Ordering::Relaxed);
        let targets = self.tracked.values().filter(|tracked| tracked.held.is_none()).count();
        self.control.processes.store(targets as u64, Ordering::Relaxed);
    }

    /// A process is being waited for, or one has a VM that is not up yet.
    fn awaits_something(&self) -> bool {
        self.tracked.values().any(|tracked| {
            let young = tracked.born.is_some_and(|born| born.elapsed() < YOUTH);
            let may_become_a_vm = young && tracked.process.vm.is_none();
            tracked.held.is_some() || tracked.awaits_exec || tracked.process.awaits_vm() || may_become_a_vm
        })
    }

    fn only_target_is_gone(&self) -> bool {
        match self.tracker.spec() {
            TargetSpec::Pid(_) | TargetSpec::Command(..) => self.tracked.is_empty(),
            TargetSpec::App(_) | TargetSpec::All => false,
        }
    }

    fn find_those_that_run(&mut self) -> Result<(), SessionError> {
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
                Role::Target if matches!(self.options.target, TargetSpec::App(_)) => self.track_one_of_many(pid),
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
    fn look_for_newcomers(&mut self) -> Result<(), SessionError> {
        let told = matches!(self.sampler.source(), Source::Bpf(_));
        if told || !matches!(self.options.target, TargetSpec::App(_)) || self.looked.elapsed() < LOOK {
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
        let mut process = Process::new(pid);
        process.read_maps(&mut self.images);
        process.find_vm(&mut self.images);
        let mut target = self.target_of(Some(&process));
        target.flags |= target_flags::IGNORE | target_flags::FOLLOW;
        self.sampler.set_target(pid, &target)?;
        Ok(())
    }

    /// What the shim is told about a process, or about everyone.
    fn target_of(&self, process: Option<&Process>) -> varid_shim::Target {
        let stack = match self.options.stack {
            Stack::Vertical => 0,
            Stack::Full => target_flags::FULL_STACK,
            Stack::None => target_flags::NO_STACK,
        };
        let namespaced = if process.is_some_and(|process| process.namespaced) { target_flags::NAMESPACED } else { 0 };
        let flags = stack | namespaced | target_flags::FOLLOW;
        match process.and_then(|process| process.vm.as_ref()) {
            Some(vm) => vm.target(flags),
            None => varid_shim::Target { flags, ..varid_shim::Target::default() },
        }
    }

    /// A process that runs already becomes a target.
    fn track(&mut self, pid: u32) -> Result<(), SessionError> {
        self.tracker.forget(pid);
        if let Some(tracked) = self.tracked.get_mut(&pid) {
            let Some(held) = tracked.held.take() else { return Ok(()) };
            tracing::info!("process {pid} has taken its name: {} samples were kept for it", held.len());
            self.announce(pid)?;
            return held.into_iter().try_for_each(|record| self.sample(record));
        }
        let mut process = Process::new(pid);
        process.read_maps(&mut self.images);
        process.find_vm(&mut self.images);
        if !matches!(self.options.target, TargetSpec::All) {
            tracing::info!(
                "profiling process {pid} ({}){}",
                tracker::command_name(pid).unwrap_or_else(|| "?".to_owned()),
                process.vm.as_ref().map_or(String::new(), |vm| format!(", its VM known by {}", vm.known_by))
            );
        }
        let awaits_exec = matches!(&self.options.target, TargetSpec::Command(command, _) if *command == pid);
        self.admit(process, None, awaits_exec, awaits_exec)?;
        for tid in tracker::threads(pid) {
            self.sampler.add_thread(tid)?;
        }
        self.announce(pid)
    }

    fn admit(
        &mut self,
        process: Process,
        held: Option<Vec<varid_shim::Record>>,
        awaits_exec: bool,
        born: bool,
    ) -> Result<(), SessionError> {
        let pid = process.pid;
        self.sampler.set_target(pid, &self.target_of(Some(&process)))?;
        self.tracked
            .insert(pid, Tracked { process, held, awaits_exec, born: born.then(Instant::now), trials: (0, 0), main_thread_gone: false });
        Ok(())
    }

    /// Threads that have their names already will not say them again.
    fn announce(&mut self, pid: u32) -> Result<(), SessionError> {
        let time = monotonic_ns();
        for tid in tracker::threads(pid) {
            let Some(mut name) = tracker::thread_name(pid, tid) else { continue };
            if tid == pid {
                name = tracker::full_name(pid, name);
            }
            self.recorder.write(&Record::Comm { time, pid, tid, exec: false, name })?;
        }
        Ok(())
    }

    fn look_for_names(&mut self) -> Result<(), SessionError> {
        let (found, given_up) = self.tracker.look();
        for pid in found {
            self.track(pid)?;
        }
        for pid in given_up {
            if self.tracked.get(&pid).is_some_and(|tracked| tracked.held.is_some()) {
                self.tracked.remove(&pid);
                let stranger = varid_shim::Target { flags: target_flags::IGNORE, ..Default::default() };
                self.sampler.set_target(pid, &stranger)?;
            }
        }
        Ok(())
    }

    fn look_for_vms(&mut self) -> Result<(), SessionError> {
        let mut changed = Vec::new();
        for (pid, tracked) in &mut self.tracked {
            if tracked.process.awaits_vm() && tracked.process.find_vm(&mut self.images) {
                changed.push(*pid);
            }
        }
        changed.into_iter().try_for_each(|pid| self.retarget(pid))
    }

    /// What is known of a process has changed: the shim is told.
    fn retarget(&mut self, pid: u32) -> Result<(), SessionError> {
        let Some(tracked) = self.tracked.get(&pid) else { return Ok(()) };
        if let Some(vm) = &tracked.process.vm {
            tracing::info!("process {pid}: its VM's frames are known by {}", vm.known_by);
        }
        let target = self.target_of(Some(&tracked.process));
        Ok(self.sampler.set_target(pid, &target)?)
    }

    fn handle(&mut self, stamped: Stamped) -> Result<(), SessionError> {
        let time = stamped.time;
        match stamped.event {
            RingEvent::Sample(record) => self.sample(*record),
            RingEvent::Raw(bytes) => self.raw_record(&bytes),
            RingEvent::Mmap(mmap) => self.mmap(&mmap),
            RingEvent::Comm { pid, tid, exec, name } => self.comm(time, pid, tid, exec, name),
            RingEvent::Fork { pid, ppid, tid, ptid } => self.fork(time, pid, ppid, tid, ptid),
            RingEvent::Exit { pid, ppid, tid, ptid } => {
                if self.tracked.contains_key(&pid) {
                    self.recorder.write(&Record::Exit { time, pid, ppid, tid, ptid })?;
                }
                self.exit(pid, tid)
            }
            RingEvent::Lost(count) => {
                tracing::warn!("{count} records found no room in the ring: a larger --ring-pages or a lower rate helps");
                Ok(self.recorder.write(&Record::Lost { time, count })?)
            }
            RingEvent::Throttle => {
                self.throttled = self.throttled.saturating_add(1);
                Ok(())
            }
        }
    }

    fn raw_record(&mut self, bytes: &[u8]) -> Result<(), SessionError> {
        if let Some(raw) = &mut self.raw {
            raw.push(bytes).map_err(|source| SessionError::Raw { path: self.options.output.join("raw.data"), source })?;
        }
        Ok(())
    }

    fn mmap(&mut self, mmap: &Mmap) -> Result<(), SessionError> {
        let Some(tracked) = self.tracked.get_mut(&mmap.pid) else { return Ok(()) };
        let may_be_vm = tracked.process.map(&mut self.images, &MappedFile {
            pid: mmap.pid,
            start: mmap.start,
            end: mmap.start.saturating_add(mmap.len),
            pgoff: mmap.pgoff,
            inode: mmap.inode,
            executable: mmap.prot & libc::PROT_EXEC as u32 != 0,
            path: &mmap.path,
        });
        if may_be_vm && tracked.process.find_vm(&mut self.images) {
            self.retarget(mmap.pid)?;
        }
        Ok(())
    }

    fn comm(&mut self, time: u64, pid: u32, tid: u32, exec: bool, name: String) -> Result<(), SessionError> {
        if let Some(tracked) = self.tracked.get_mut(&pid) {
            if exec {
                tracked.process.exec();
                tracked.awaits_exec = false;
                tracked.born = Some(Instant::now());
                tracked.trials = (0, 0);
                self.retarget(pid)?;
            }
            let name = if tid == pid { tracker::full_name(pid, name) } else { name };
            self.recorder.write(&Record::Comm { time, pid, tid, exec, name })?;
            if self.tracked.get(&pid).is_none_or(|tracked| tracked.held.is_none()) {
                return Ok(());
            }
        }
        if self.tracker.role(pid) == Role::Zygote {
            return self.follow_zygote(pid);
        }
        self.tracker.watch(pid);
        Ok(())
    }

    fn fork(&mut self, time: u64, pid: u32, ppid: u32, tid: u32, ptid: u32) -> Result<(), SessionError> {
        if pid != ppid {
            // The id was another process's, whose end went unseen or was followed by samples.
            self.tracked.remove(&pid);
        }
        if let Some(parent) = self.tracked.get(&ppid) {
            let (child, held) = (parent.process.fork(pid), parent.held.is_some());
            self.recorder.write(&Record::Fork { time, pid, ppid, tid, ptid })?;
            if pid != ppid {
                self.admit(child, held.then(Vec::new), false, true)?;
            }
        } else if pid != ppid && self.tracker.is_child_of_zygote(ppid) {
            let mut process = Process::new(pid);
            process.read_maps(&mut self.images);
            process.find_vm(&mut self.images);
            self.admit(process, Some(Vec::new()), false, true)?;
            self.tracker.watch(pid);
        } else if pid != ppid {
            if matches!(self.options.target, TargetSpec::All) {
                self.track(pid)?;
            }
            self.tracker.watch(pid);
        }
        Ok(())
    }

    fn exit(&mut self, pid: u32, tid: u32) -> Result<(), SessionError> {
        let Some(tracked) = self.tracked.get_mut(&pid) else {
            if pid == tid {
                self.tracker.forget(pid);
            }
            return Ok(());
        };
        tracked.main_thread_gone |= pid == tid;
        if tracked.main_thread_gone && !tracker::is_alive(pid) {
            if tracked.held.is_none() && !matches!(self.options.target, TargetSpec::All) {
                tracing::info!("process {pid} has ended");
            }
            self.tracked.remove(&pid);
            self.tracker.forget(pid);
            self.sampler.remove_target(pid)?;
        }
        Ok(())
    }

    fn sample(&mut self, record: varid_shim::Record) -> Result<(), SessionError> {
        if !self.tracked.contains_key(&record.pid) {
            if !matches!(self.options.target, TargetSpec::All) || record.pid == std::process::id() {
                return Ok(());
            }
            if tracker::is_alive(record.pid) {
                self.track(record.pid)?;
            } else {
                // On its way out: nothing of it can be read any more.
                self.admit(Process::new(record.pid), None, false, false)?;
            }
        }
        let Some(tracked) = self.tracked.get_mut(&record.pid) else { return Ok(()) };
        if tracked.awaits_exec {
            return Ok(());
        }
        if let Some(held) = &mut tracked.held {
            if held.len() < MAX_HELD {
                held.push(record);
            }
            return Ok(());
        }
        if record.has(flags::IN_BODY) {
            tracked.trials.0 = tracked.trials.0.saturating_add(1);
            tracked.trials.1 = tracked.trials.1.saturating_add(u32::from(!record.frames.is_empty()));
            if tracked.trials == (LAYOUT_TRIALS, 0) {
                tracked.process.refuse_vm(LAYOUT_TRIALS);
                let pid = record.pid;
                self.retarget(pid)?;
                return self.sample(record);
            }
        }
        let Attributed { user, transition } =
            attribute(&record, &mut tracked.process, &mut self.recorder.remap, self.options.stack);
        self.transitions = self.transitions.saturating_add(u64::from(transition));
        let in_kernel = record.has(flags::IN_KERNEL);
        let sample = Sample {
            time: record.time,
            pid: record.pid,
            tid: record.tid,
            cpu: record.cpu,
            period: record.period,
            original_ip: record.ip,
            mode: if in_kernel { CpuMode::Kernel } else { CpuMode::User },
            kernel: if in_kernel && record.kernel.is_empty() { vec![record.ip] } else { record.kernel },
            user,
        };
        Ok(self.recorder.sample(sample, &mut tracked.process)?)
    }
}

fn choose_source(wanted: Option<ShimKind>) -> Result<Source, SamplerError> {
    if wanted == Some(ShimKind::Perf) {
        return Ok(Source::StackCopy);
    }
    match Shim::load() {
        Ok(shim) => Ok(Source::Bpf(Box::new(shim))),
        Err(error) if wanted == Some(ShimKind::Bpf) => Err(error.into()),
        Err(error) => {
            tracing::warn!("{error}. Falling back to perf's stack copies: frames that a copy does not hold are counted");
            Ok(Source::StackCopy)
        }
    }
}

fn manifest(options: &SessionOptions, source: &Source) -> Manifest {
    let event = EventDesc {
        name: options.event.name.clone(),
        rate: match options.rate {
            Rate::Frequency(hz) => varid_recording::Rate::Frequency(hz),
            Rate::Period(period) => varid_recording::Rate::Period(period),
        },
        kind: options.event.kind,
        config: options.event.config,
    };
    let source = match source {
        Source::Bpf(_) => varid_recording::Source::Bpf,
        Source::StackCopy => varid_recording::Source::Perf,
    };
    let (kind, value) = match &options.target {
        TargetSpec::App(package) => (TargetKind::App, package.clone()),
        TargetSpec::Pid(pid) => (TargetKind::Pid, pid.to_string()),
        TargetSpec::All => (TargetKind::All, String::new()),
        TargetSpec::Command(_, line) => (TargetKind::Command, line.clone()),
    };
    let mut manifest = Manifest::new(event, source, Target { kind, value }, monotonic_ns());
    manifest.stack = options.stack;
    manifest
}
