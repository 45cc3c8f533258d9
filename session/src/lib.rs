//! A profiling session: from the kernel's records to the recording, in one loop.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

mod calls;
pub mod config;
mod ended;
mod events;
mod filter;
mod flush;
mod following;
mod kernel;
mod notes;
mod options;
mod process_limit;
mod raw;
mod recorder;
mod reload;
pub mod request;
mod sample;
mod selection;
mod tracked;
mod tracker;
mod unseen;
mod vdso;

pub use options::{SessionControl, SessionError, SessionOptions};

use crate::request::TargetSpec;
use notes::Notes;
use options::manifest;
use recorder::{Recorder, RecorderError};
use reload::Watch;
use selection::Selection;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tracked::{Names, Tracked};
use tracker::Tracker;
use varid_model::{ById, MonotonicNs, Pid, Stack, Tid};
use varid_process::{Images, raise_limit_of_files};
use varid_recording::{RAW_DATA, SessionRecord, SessionState};
use varid_sampler::decode::{RingEvent, Stamped};
use varid_sampler::{Drainer, Sampler, SamplerOptions, choose};
use varid_shim::STACK_FULL;

/// How long the loop sleeps at most: the delay of what `status` shows.
const IDLE_MS: u16 = 100;
/// The same while a VM or a name is awaited: what it does before it is found cannot be named.
const AWAKE_MS: u16 = 2;
/// The same where a process is young: until a method is read, which is a while after it was sampled,
/// the process must live. Many live for less than a tenth of a second.
const YOUNG_MS: u16 = 5;
const INFANCY: Duration = Duration::from_millis(100);
/// A VM that a process has comes up within this time.
const YOUTH: Duration = Duration::from_secs(2);
/// Bytes of stack that are copied with a sample where frames cannot be walked in the kernel.
const STACK_COPY: u32 = 32768;
/// How often everything is brought to the disk.
const FLUSH: Duration = Duration::from_millis(500);
/// Samples of a process without a name that are kept until it has one.
const MAX_HELD: usize = 10_000;
/// Samples in the loop's body after which a layout that was never right is refused.
const LAYOUT_TRIALS: u32 = 50;

/// A running session.
pub struct Session {
    options: SessionOptions,
    sampler: Arc<Mutex<Sampler>>,
    drainer: Drainer,
    /// What the sampler has handed over, in a turn.
    drained: Vec<Stamped>,
    /// The time of the last of these that was handled: none that comes is of before.
    handled: u64,
    recorder: Recorder,
    raw: Option<crate::raw::RawFile>,
    tracker: Tracker,
    images: Images,
    tracked: ById<u32, Tracked>,
    /// What VMs count.
    calls: calls::Calls,
    control: Arc<SessionControl>,
    waiting_said: bool,
    /// A process of the target was there.
    ever_tracked: bool,
    throttled: u64,
    /// Records that could not be decoded.
    malformed: u64,
    transitions: u64,
    /// Samples that were not recorded, by the reason.
    filtered: BTreeMap<String, u64>,
    /// Records were lost that may have said what processes are now.
    out_of_date: bool,
    /// Records that the kernel said it had no room for.
    lost: u64,
    /// Events count from then on.
    started: Instant,
    /// Until then, if that is over.
    disabled: Option<Instant>,
    flushed: Instant,
    looked: Instant,
    /// Processes that are asked for and not sampled: those that may not be, those that are too many.
    refused: HashMap<u32, Names>,
    /// The configuration file, if there is one.
    watch: Option<Watch>,
    /// Which service processes count for.
    members: ById<u32, Arc<str>>,
    /// A limit has been reached that ends it.
    over: bool,
    /// There is no room for the recording any more.
    full: bool,
    /// It could not be written for another reason, which has been said.
    failing: bool,
    /// Processes whose methods are not seen.
    unseen: Notes,
}

impl Session {
    /// Opens events, creates the recording, finds who is there already. Sampling is on when
    /// this returns.
    pub fn start(
        options: SessionOptions,
        control: Arc<SessionControl>,
    ) -> Result<Self, SessionError> {
        // The command that is recorded has been started before: it keeps its own.
        raise_limit_of_files();
        let named = match &options.target {
            TargetSpec::Pids(pids) => pids.as_slice(),
            TargetSpec::Command(pid, _) => std::slice::from_ref(pid),
            TargetSpec::Named(..) | TargetSpec::All => &[],
        };
        if let Some(pid) = named.iter().find(|pid| !tracker::is_alive(**pid)) {
            return Err(SessionError::NoProcess(*pid));
        }
        let sampling = &options.configured.request.sampling;
        let own_ring = if sampling.keep_raw {
            0
        } else {
            sampling.ring_pages
        };
        let source = choose(sampling.shim, &options.groups, own_ring)?;
        if !source.sees_everyone() {
            match &options.target {
                TargetSpec::All => return Err(SessionError::NeedsPrivilege("all processes")),
                _ if sampling.keep_raw => return Err(SessionError::NoRaw),
                _ => {}
            }
        }
        if sampling.keep_raw && options.groups.iter().any(|group| group.reads) {
            return Err(SessionError::NoRawOfGroups);
        }
        let sampler = Sampler::open(
            SamplerOptions {
                groups: options.groups.clone(),
                keep_raw: sampling.keep_raw,
                raw_stack: match options.stack {
                    Stack::Full => STACK_FULL as u32,
                    Stack::Vertical | Stack::None => 0,
                },
                stack_copy: STACK_COPY,
                ring_pages: sampling.ring_pages,
            },
            source,
        )?;
        let about = manifest(&options, sampler.source());
        let mut recorder = Recorder::create(&options.output, about, options.owner, &options.cache)?;
        let raw = if sampling.keep_raw {
            let path = options.output.join(RAW_DATA);
            let file = recorder.writer().create_file(RAW_DATA);
            let file = file.map_err(RecorderError::from)?;
            let raw = crate::raw::RawFile::start(file, &sampler.raw_attrs());
            Some(raw.map_err(|source| SessionError::Raw { path, source })?)
        } else {
            None
        };
        let configured = &options.configured;
        let file = configured.request.file();
        let sampler = Arc::new(Mutex::new(sampler));
        let images = Images::new(options.vms.formats());
        let mut session = Self {
            drainer: Drainer::of(&sampler)?,
            calls: calls::Calls::new(options.tactic, sampling.log_calls, &options.output),
            tracker: Tracker::new(options.target.clone(), Selection::of(&configured.config)),
            watch: file.map(|file| Watch::new(file.to_owned(), configured.stamp)),
            members: ById::default(),
            over: false,
            options,
            sampler,
            drained: Vec::new(),
            handled: 0,
            recorder,
            raw,
            images,
            tracked: ById::default(),
            control,
            waiting_said: false,
            ever_tracked: false,
            throttled: 0,
            malformed: 0,
            transitions: 0,
            filtered: BTreeMap::new(),
            out_of_date: false,
            lost: 0,
            started: Instant::now(),
            disabled: None,
            flushed: Instant::now(),
            looked: Instant::now(),
            refused: HashMap::new(),
            full: false,
            failing: false,
            unseen: Notes::default(),
        };
        session.drainer.session_is_busy();
        session.sampler(|sampler| sampler.enable())?;
        session.started = Instant::now();
        session.find_those_that_run()?;
        // Whether it waits or records is known from here on.
        session.update_manifest();
        Ok(session)
    }

    /// What is done with the sampler is done at once: whoever kept it would shut the drainer out, and itself.
    fn sampler<R>(&self, done: impl FnOnce(&mut Sampler) -> R) -> R {
        done(&mut self.sampler.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs until it is told to stop, its time is over, or its only process has ended.
    pub fn run(mut self) -> Result<PathBuf, SessionError> {
        let result = self.run_loop();
        // What was recorded is kept whatever happened.
        let ended = self.end(if result.is_ok() {
            SessionState::Complete
        } else {
            SessionState::Failed
        });
        result.and(ended)?;
        Ok(self.options.output)
    }

    fn run_loop(&mut self) -> Result<(), SessionError> {
        while !self.control.stop.load(Ordering::Relaxed) {
            let limits = &self.options.configured.config.limits;
            let over = |duration| self.started.elapsed() >= duration;
            if self.over || limits.duration.is_some_and(over) {
                break;
            }
            self.drainer.session_waits();
            self.sampler(|sampler| sampler.wait(self.longest_sleep()));
            self.drainer.session_is_busy();
            self.turn(false)?;
            if self.only_target_is_gone() {
                // What it did last is still in the rings.
                break;
            }
        }
        Ok(())
    }

    fn end(&mut self, state: SessionState) -> Result<(), SessionError> {
        let disabled = self.sampler(|sampler| sampler.disable());
        self.disabled = Some(Instant::now());
        let last = self.turn(true).and_then(|()| self.count_the_untold());
        let unseen: Vec<_> = self.tracked.values().flat_map(Tracked::unseen).collect();
        self.tell_unseen(unseen);
        self.update_manifest();
        let empty = self.why_empty();
        let times = self.sampler(|sampler| sampler.times());
        let manifest = self.recorder.writer().manifest_mut();
        manifest.notes.extend(empty);
        for (place, times) in times {
            if let Some(event) = manifest.events.get_mut(place) {
                (event.enabled_ns, event.running_ns) = (times.enabled_ns, times.running_ns);
            }
        }
        manifest.state = match last {
            Ok(()) => state,
            Err(_) => SessionState::Failed,
        };
        // Whatever went wrong: what is there is completed.
        let finished = self.recorder.finish();
        disabled?;
        last?;
        Ok(finished?)
    }

    /// Why there is no sample, where there is none.
    fn why_empty(&mut self) -> Option<String> {
        let counts = self.recorder.writer().counts().clone();
        if counts.samples > 0 {
            return None;
        }
        let left_out: u64 = self.filtered.values().sum();
        let why = if left_out > 0 {
            format!("all {left_out} samples were in methods that --method leaves out")
        } else if counts.lost > 0 {
            format!(
                "all {} samples were lost: a larger --ring-pages or a lower rate helps",
                counts.lost
            )
        } else if self.ever_tracked {
            "what is profiled did not run on a processor, or too briefly for the rate: -F takes a higher one".to_owned()
        } else {
            format!("no process of '{}' was there", self.options.target)
        };
        let why = format!("no sample was taken: {why}");
        tracing::warn!("{why}");
        Some(why)
    }

    /// One turn of the loop: drain, handle, look for newcomers, flush when it is time.
    fn turn(&mut self, last: bool) -> Result<(), SessionError> {
        if !last {
            self.reload()?;
        }
        let mut drained = std::mem::take(&mut self.drained);
        self.sampler(|sampler| sampler.drain(last, |stamped| drained.push(stamped)));
        // A VM that was up when a sample of it was taken is known before that is attributed.
        self.look_for_vms()?;
        self.read_own_code(last);
        for stamped in drained.drain(..) {
            self.handled = self.handled.max(stamped.time);
            self.handle(stamped)?;
        }
        self.drained = drained;
        self.look_for_names()?;
        self.look_for_newcomers()?;
        for tracked in self.tracked.values_mut() {
            tracked.managed.refresh_codes();
        }
        self.calls.look(&self.tracked);
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

    /// In milliseconds: shorter while a process is waited for, or one is young or has a VM that is not up yet.
    fn longest_sleep(&self) -> u16 {
        let here = self.tracked.values().filter(|tracked| tracked.is_here());
        let sleeps = here.map(|tracked| {
            let is_younger = |age| tracked.born.is_some_and(|born| born.elapsed() < age);
            let young = is_younger(YOUTH);
            let may_become_a_vm =
                young && (tracked.managed.vm().is_none() || self.calls.awaits(tracked));
            let infant = is_younger(INFANCY);
            match tracked.held.is_some() || tracked.awaits_exec || may_become_a_vm || infant {
                true => AWAKE_MS,
                false if young => YOUNG_MS,
                false => IDLE_MS,
            }
        });
        sleeps.min().unwrap_or(IDLE_MS)
    }

    /// It is of certain processes and what they fork, not of all that have a name.
    fn has_one_target(&self) -> bool {
        match self.tracker.spec() {
            TargetSpec::Pids(_) | TargetSpec::Command(..) => true,
            TargetSpec::Named(..) | TargetSpec::All => false,
        }
    }

    fn only_target_is_gone(&self) -> bool {
        self.has_one_target() && self.tracked.values().all(|tracked| tracked.ended.is_some())
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
                    self.record(&SessionRecord::Exit {
                        time: MonotonicNs::new(time),
                        pid: Pid::new(pid),
                        ppid: Pid::new(ppid),
                        tid: Tid::new(tid),
                        ptid: Tid::new(ptid),
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
                self.record(&SessionRecord::Lost {
                    time: MonotonicNs::new(time),
                    count,
                })
            }
            RingEvent::Malformed => {
                self.malformed = self.malformed.saturating_add(1);
                // It may have been a mapping, an exec or an end.
                self.out_of_date = true;
                Ok(())
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
}
