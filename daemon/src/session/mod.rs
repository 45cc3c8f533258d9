//! A profiling session: from the kernel's records to the recording, in one loop.

mod following;
mod kernel;
mod options;
mod recorder;
mod tracker;
mod vdso;

pub use options::{SessionControl, SessionError, SessionOptions};
pub use tracker::TargetSpec;

use crate::attribution::attribute;
use crate::by_id::ById;
use crate::process::{Images, Process};
use crate::sampler::decode::{RingEvent, Sampled, Samples, Stamped};
use crate::sampler::{Sampler, SamplerOptions, choose, monotonic_ns};
use options::manifest;
use recorder::{Recorder, RecorderError};
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tracker::Tracker;
use varid_recording::{CpuMode, RAW_DATA, Record, Sample, Stack, State};
use varid_shim::{STACK_FULL, flags};

/// How long the loop sleeps at most: the delay of what `status` shows.
const IDLE_MS: u16 = 100;
/// The same while a VM or a name is awaited: what it does before it is found cannot be named.
const AWAKE_MS: u16 = 2;
/// A VM that a process has comes up within this time.
const YOUTH: Duration = Duration::from_secs(2);
/// Bytes of stack that are copied with a sample where frames cannot be walked in the kernel.
const STACK_COPY: u32 = 32768;
/// How often everything is brought to the disk.
const FLUSH: Duration = Duration::from_millis(500);
/// Bytes of their files of names that are read in a turn, of all processes and of one that has
/// ended: there is no other turn then.
const NAMES: u64 = 1 << 22;
const LAST_NAMES: u64 = 1 << 26;
/// Samples of a process without a name that are kept until it has one.
const MAX_HELD: usize = 10_000;
/// Samples in the loop's body after which a layout that was never right is refused.
const LAYOUT_TRIALS: u32 = 50;

/// A process that the session looks at.
#[derive(Debug)]
struct Tracked {
    process: Process,
    /// Its samples wait for its name.
    held: Option<Samples>,
    /// It is varid's own child, and has not become the command yet.
    awaits_exec: bool,
    /// When it was forked or became another program: a VM may come up in it.
    born: Option<Instant>,
    /// In-body samples: tried, walked.
    trials: (u32, u32),
    main_thread_gone: bool,
    /// Nothing of it was left when it was looked for.
    dead_since: Option<Instant>,
    /// When it was known to have ended.
    departed: Option<Instant>,
}

/// A running session.
pub struct Session {
    options: SessionOptions,
    sampler: Sampler,
    /// What the sampler has handed over, in a turn.
    drained: Vec<Stamped>,
    recorder: Recorder,
    raw: Option<crate::raw::RawFile>,
    tracker: Tracker,
    images: Images,
    tracked: ById<u32, Tracked>,
    control: Arc<SessionControl>,
    waiting_said: bool,
    throttled: u64,
    transitions: u64,
    /// Records were lost that may have said what processes are now.
    out_of_date: bool,
    /// Records that the kernel said it had no room for.
    lost: u64,
    started: Instant,
    flushed: Instant,
    looked: Instant,
    /// Processes of the app that may not be sampled.
    refused: HashSet<u32>,
    /// There is no room for the recording any more.
    full: bool,
    /// It could not be written for another reason, which has been said.
    failing: bool,
}

impl Session {
    /// Opens events, creates the recording, finds who is there already. Sampling is on when
    /// this returns.
    pub fn start(
        options: SessionOptions,
        control: Arc<SessionControl>,
    ) -> Result<Self, SessionError> {
        if let TargetSpec::Pid(pid) | TargetSpec::Command(pid, _) = &options.target
            && !tracker::is_alive(*pid)
        {
            return Err(SessionError::NoProcess(*pid));
        }
        let own_ring = if options.keep_raw {
            0
        } else {
            options.ring_pages
        };
        let source = choose(options.shim, &options.groups, own_ring)?;
        if !source.sees_everyone() {
            match &options.target {
                TargetSpec::All => return Err(SessionError::NeedsPrivilege("all processes")),
                _ if options.keep_raw => return Err(SessionError::NoRaw),
                _ => {}
            }
        }
        if options.keep_raw && options.groups.iter().any(|group| group.reads) {
            return Err(SessionError::NoRawOfGroups);
        }
        let sampler = Sampler::open(
            SamplerOptions {
                groups: options.groups.clone(),
                keep_raw: options.keep_raw,
                raw_stack: match options.stack {
                    Stack::Full => STACK_FULL as u32,
                    Stack::Vertical | Stack::None => 0,
                },
                stack_copy: STACK_COPY,
                ring_pages: options.ring_pages,
            },
            source,
        )?;
        let recorder = Recorder::create(&options.output, manifest(&options, sampler.source()))?;
        let raw = if options.keep_raw {
            let path = options.output.join(RAW_DATA);
            let raw = crate::raw::RawFile::create(&path, &sampler.raw_attrs());
            Some(raw.map_err(|source| SessionError::Raw { path, source })?)
        } else {
            None
        };
        let mut session = Self {
            tracker: Tracker::new(options.target.clone()),
            options,
            sampler,
            drained: Vec::new(),
            recorder,
            raw,
            images: Images::default(),
            tracked: ById::default(),
            control,
            waiting_said: false,
            throttled: 0,
            transitions: 0,
            out_of_date: false,
            lost: 0,
            started: Instant::now(),
            flushed: Instant::now(),
            looked: Instant::now(),
            refused: HashSet::new(),
            full: false,
            failing: false,
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
        let ended = self.end(if result.is_ok() {
            State::Complete
        } else {
            State::Failed
        });
        result.and(ended)?;
        Ok(self.options.output)
    }

    fn run_loop(&mut self) -> Result<(), SessionError> {
        while !self.control.stop.load(Ordering::Relaxed) {
            if self
                .options
                .duration
                .is_some_and(|duration| self.started.elapsed() >= duration)
            {
                break;
            }
            self.sampler.wait(if self.awaits_something() {
                AWAKE_MS
            } else {
                IDLE_MS
            });
            self.turn(false)?;
            if self.only_target_is_gone() {
                // What it did last is still in the rings.
                break;
            }
        }
        Ok(())
    }

    fn end(&mut self, state: State) -> Result<(), SessionError> {
        let disabled = self.sampler.disable();
        let last = self.turn(true).and_then(|()| self.count_the_untold());
        self.update_manifest();
        let manifest = self.recorder.writer().manifest_mut();
        for (place, times) in self.sampler.times() {
            if let Some(event) = manifest.events.get_mut(place) {
                (event.enabled_ns, event.running_ns) = (times.enabled_ns, times.running_ns);
            }
        }
        manifest.state = match last {
            Ok(()) => state,
            Err(_) => State::Failed,
        };
        // Whatever went wrong: what is there is completed.
        let finished = self.recorder.finish();
        disabled?;
        last?;
        Ok(finished?)
    }

    /// The kernel says what it had no room for when there is room again; at the end there may
    /// have been no such moment.
    fn count_the_untold(&mut self) -> Result<(), SessionError> {
        let no_space = self.sampler.source().no_space()?.unwrap_or(0);
        let untold = no_space.saturating_sub(self.lost);
        if untold == 0 {
            return Ok(());
        }
        self.record(&Record::Lost {
            time: monotonic_ns(),
            count: untold,
        })
    }

    /// One turn of the loop: drain, handle, look for newcomers, flush when it is time.
    fn turn(&mut self, last: bool) -> Result<(), SessionError> {
        let mut drained = std::mem::take(&mut self.drained);
        self.sampler.drain(last, |stamped| drained.push(stamped));
        // A VM that was up when a sample of it was taken is known before that is attributed.
        self.look_for_vms()?;
        self.read_own_code(last);
        for stamped in drained.drain(..) {
            self.handle(stamped)?;
        }
        self.drained = drained;
        self.look_for_names()?;
        self.look_for_newcomers()?;
        for tracked in self.tracked.values_mut() {
            tracked.process.refresh_codes();
        }
        if std::mem::take(&mut self.out_of_date) && !last {
            self.look_again()?;
        }
        if last || self.flushed.elapsed() >= FLUSH {
            self.flush(last)?;
            self.forget_the_dead()?;
            self.flushed = Instant::now();
        }
        Ok(())
    }

    /// Processes name the code that they make.
    fn read_own_code(&mut self, last: bool) {
        let now = monotonic_ns();
        let makes_code = |tracked: &&Tracked| tracked.process.jit.is_sampled();
        let makers = self.tracked.values().filter(makes_code).count() as u64;
        let share = NAMES.checked_div(makers).unwrap_or(NAMES);
        for tracked in self.tracked.values_mut() {
            let ends = last || tracked.departed.is_some();
            let bytes = if ends { LAST_NAMES } else { share };
            tracked.process.jit.may_read(bytes);
            tracked.process.refresh_jit(now);
        }
    }

    fn flush(&mut self, last: bool) -> Result<(), SessionError> {
        self.update_manifest();
        if let Some(raw) = &mut self.raw {
            raw.flush().map_err(|source| SessionError::Raw {
                path: self.options.output.join(RAW_DATA),
                source,
            })?;
        }
        self.read_own_code(last);
        let mut kept = Ok(());
        for tracked in self.tracked.values_mut() {
            let last = last || tracked.departed.is_some();
            // What one process says costs no other its names.
            kept = kept.and(self.recorder.keep_code(&mut tracked.process, last));
        }
        let flushed = kept.and(self.recorder.flush());
        if flushed.is_ok() && std::mem::take(&mut self.failing) {
            tracing::info!("the recording can be written again");
        }
        self.tolerate(flushed)
    }

    fn record(&mut self, record: &Record) -> Result<(), SessionError> {
        let recorded = self.recorder.write(record);
        self.tolerate(recorded)
    }

    /// A disk that is full ends the session, while there is room to complete it. Other faults do
    /// not: what was written stays readable, what comes is kept up to a bound, counted beyond,
    /// and tried again at the next flush.
    fn tolerate(&mut self, recorded: Result<(), RecorderError>) -> Result<(), SessionError> {
        let Err(error) = recorded else {
            return Ok(());
        };
        if error.is_full() {
            // Said once: its end is written as far as that is possible.
            if std::mem::replace(&mut self.full, true) {
                return Ok(());
            }
            return Err(SessionError::Full {
                folder: self.options.output.clone(),
            });
        }
        if !std::mem::replace(&mut self.failing, true) {
            tracing::error!(
                "{error}; recording goes on, and is written when that is possible again"
            );
        }
        Ok(())
    }

    fn update_manifest(&mut self) {
        let elapsed = self.started.elapsed().as_nanos() as u64;
        let writer = self.recorder.writer();
        let counts = writer.counts().clone();
        let bytes = writer.bytes_written();
        let manifest = writer.manifest_mut();
        manifest.duration_ns = elapsed;
        manifest.counts.throttled = self.throttled;
        manifest.counts.transitions = self.transitions;
        self.control
            .samples
            .store(counts.samples, Ordering::Relaxed);
        self.control.lost.store(counts.lost, Ordering::Relaxed);
        self.control.bytes.store(bytes, Ordering::Relaxed);
        let targets = self
            .tracked
            .values()
            .filter(|tracked| tracked.held.is_none() && tracked.departed.is_none())
            .count();
        self.control
            .processes
            .store(targets as u64, Ordering::Relaxed);
    }

    /// A process is being waited for, or one has a VM that is not up yet.
    fn awaits_something(&self) -> bool {
        self.tracked.values().any(|tracked| {
            let young = tracked.born.is_some_and(|born| born.elapsed() < YOUTH);
            let may_become_a_vm = young && tracked.process.vm.is_none();
            let awaits = tracked.held.is_some() || tracked.awaits_exec || may_become_a_vm;
            awaits && tracked.departed.is_none()
        })
    }

    fn only_target_is_gone(&self) -> bool {
        match self.tracker.spec() {
            TargetSpec::Pid(_) | TargetSpec::Command(..) => self
                .tracked
                .values()
                .all(|tracked| tracked.departed.is_some()),
            TargetSpec::App(_) | TargetSpec::All => false,
        }
    }

    fn handle(&mut self, stamped: Stamped) -> Result<(), SessionError> {
        let time = stamped.time;
        match stamped.event {
            RingEvent::Sample(sampled) => self.sample(sampled),
            RingEvent::Raw { bytes, .. } => self.raw_record(&bytes),
            RingEvent::Mmap(mmap) => self.mmap(&mmap),
            RingEvent::Comm {
                pid,
                tid,
                exec,
                name,
            } => self.comm(time, pid, tid, exec, name),
            RingEvent::Fork {
                pid,
                ppid,
                tid,
                ptid,
            } => self.fork(time, pid, ppid, tid, ptid),
            RingEvent::Exit {
                pid,
                ppid,
                tid,
                ptid,
            } => {
                if self.tracked.contains_key(&pid) {
                    self.record(&Record::Exit {
                        time,
                        pid,
                        ppid,
                        tid,
                        ptid,
                    })?;
                }
                self.exit(pid, tid)
            }
            RingEvent::Lost(count) => {
                tracing::warn!(
                    "{count} records found no room in the ring: a larger --ring-pages or a lower rate helps"
                );
                self.lost = self.lost.saturating_add(count);
                // There may have been mappings, execs and ends among them.
                self.out_of_date = true;
                self.record(&Record::Lost { time, count })
            }
            RingEvent::Throttle => {
                self.throttled = self.throttled.saturating_add(1);
                Ok(())
            }
        }
    }

    fn raw_record(&mut self, bytes: &[u8]) -> Result<(), SessionError> {
        if let Some(raw) = &mut self.raw {
            raw.push(bytes).map_err(|source| SessionError::Raw {
                path: self.options.output.join(RAW_DATA),
                source,
            })?;
        }
        Ok(())
    }

    fn sample(&mut self, mut sampled: Box<Sampled>) -> Result<(), SessionError> {
        let record = &sampled.record;
        if !self.tracked.contains_key(&record.pid) {
            if !matches!(self.options.target, TargetSpec::All) || record.pid == std::process::id() {
                return Ok(());
            }
            if !tracker::is_alive(record.pid) {
                // On its way out: nothing of it can be read any more.
                let mut gone = Process::new(record.pid);
                let stack = self.options.stack;
                let recorded = write_sample(&mut sampled, &mut gone, &mut self.recorder, stack);
                return self.tolerate(recorded.map(drop));
            }
            self.track(record.pid)?;
        }
        let Some(tracked) = self.tracked.get_mut(&record.pid) else {
            return Ok(());
        };
        if tracked.awaits_exec {
            return Ok(());
        }
        if let Some(held) = &mut tracked.held {
            if held.len() < MAX_HELD {
                held.push(sampled);
                return Ok(());
            }
            return self.record(&Record::Lost {
                time: record.time,
                count: 1,
            });
        }
        if record.has(flags::IN_BODY) {
            tracked.trials.0 = tracked.trials.0.saturating_add(1);
            tracked.trials.1 = tracked
                .trials
                .1
                .saturating_add(u32::from(!record.frames.is_empty()));
            if tracked.trials == (LAYOUT_TRIALS, 0) {
                tracked.process.refuse_vm(LAYOUT_TRIALS);
                let pid = record.pid;
                self.retarget(pid)?;
                return self.sample(sampled);
            }
        }
        let recorded = write_sample(
            &mut sampled,
            &mut tracked.process,
            &mut self.recorder,
            self.options.stack,
        );
        self.sampler.take_back(sampled);
        self.transitions = self
            .transitions
            .saturating_add(u64::from(*recorded.as_ref().unwrap_or(&false)));
        self.tolerate(recorded.map(drop))
    }
}

/// Attributes a record and writes it down; whether its leaf was in a transition.
fn write_sample(
    sampled: &mut Sampled,
    process: &mut Process,
    recorder: &mut Recorder,
    stack: Stack,
) -> Result<bool, RecorderError> {
    let Sampled {
        event,
        record,
        read,
    } = sampled;
    let (remap, attributed) = (&mut recorder.remap, &mut recorder.attributed);
    attribute(record, process, remap, stack, attributed);
    let (known, transition) = (attributed.known.clone(), attributed.transition);
    let in_kernel = record.has(flags::IN_KERNEL);
    if in_kernel && record.kernel.is_empty() {
        record.kernel.push(record.ip);
    }
    let mut sample = Sample {
        event: *event,
        time: record.time,
        pid: record.pid,
        tid: record.tid,
        cpu: record.cpu,
        period: record.period,
        original_ip: record.ip,
        mode: if in_kernel {
            CpuMode::Kernel
        } else {
            CpuMode::User
        },
        kernel: std::mem::take(&mut record.kernel),
        user: std::mem::take(&mut attributed.user),
    };
    let mut recorded = Ok(());
    let leader = (sample.event, sample.period);
    let members = read.drain(..).filter(|(_, period)| *period > 0);
    for (event, period) in members.chain([leader]) {
        (sample.event, sample.period) = (event, period);
        recorded = recorded.and(recorder.sample(&sample, &known, process));
    }
    // Their memory is the next one's.
    (record.kernel, recorder.attributed.user) = (sample.kernel, sample.user);
    recorded.map(|()| transition)
}
