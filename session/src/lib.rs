//! A profiling session: from the kernel's records to the recording, in one loop.
//!
//! | question | file |
//! |---|---|
//! | what does a user ask for | [`config`], [`request`], `options` |
//! | where do records come from | `sampling`, `events` |
//! | which processes are tracked, and what is known of them | `processes` |
//! | which samples are recorded, and what of them | `filter`, `samples` |
//! | what is written, and what if it cannot be | `recorder`, `raw`, `output` |
//! | what was lost, and when does the session end | `losses`, `schedule` |
//! | what does a changed configuration change | `reload` |
//!
//! A configuration names the processes and the events. [`Session::start`] takes it with the session's folder as [`SessionOptions`]:
//!
//! ```
//! use varid_model::Rate;
//! use varid_session::config::{parse, to_toml};
//! use varid_session::request::TargetSpec;
//!
//! let text = "apps = [\"org.example.game\"]\nfrequency = 499\n";
//! // The second argument checks the names of events.
//! let config = parse(text, |_event| Ok(())).expect("it is valid");
//! assert_eq!(config.settings.rate_or_default(), Rate::Frequency(499));
//! let target = TargetSpec::named(&config).expect("it names an app");
//! assert_eq!(target.to_string(), "org.example.game");
//! assert!(to_toml(&config).contains("frequency = 499"));
//!
//! let problems = parse("frequency = -1", |_event| Ok(())).unwrap_err();
//! assert!(problems[0].to_string().starts_with("1:13: "));
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

pub mod config;
mod events;
mod filter;
mod kernel;
mod losses;
mod notes;
mod options;
mod output;
mod processes;
mod raw;
mod recorder;
mod reload;
pub mod request;
mod samples;
mod sampling;
mod schedule;
mod start;
mod tasks;
mod vdso;

pub use options::{ProgramContext, SessionControl, SessionError, SessionOptions};

use losses::Losses;
use output::Output;
use processes::{Accepted, CommEvent, Processes, TaskEvent};
use recorder::Written;
use reload::{Configuration, ReloadTargets};
use samples::SampleWriter;
use sampling::Sampling;
use schedule::Schedule;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use varid_model::{MonotonicNs, Pid};
use varid_process::reader;
use varid_recording::{SessionRecord, SessionState};
use varid_sampler::decode::{RingEvent, Sampled, Stamped};
use varid_sampler::event::jvm::{LibjvmFile, LibjvmId, libjvm_of};
use varid_sampler::monotonic_ns;

/// A running session.
#[derive(Debug)]
pub struct Session {
    configuration: Configuration,
    control: Arc<SessionControl>,
    sampling: Sampling,
    processes: Processes,
    samples: SampleWriter,
    losses: Losses,
    output: Output,
    schedule: Schedule,
}

impl Session {
    /// Opens events, creates the recording, and finds the processes that are already running. Events are enabled when this returns.
    ///
    /// # Errors
    ///
    /// The target does not exist, the events cannot be opened, or the recording cannot be created.
    pub fn start(
        options: SessionOptions,
        control: Arc<SessionControl>,
    ) -> Result<Self, SessionError> {
        let mut session = start::open(options, control)?;
        let manifest = session.output.recorder.changed_manifest();
        manifest.start(monotonic_ns());
        // So that the first sample of a running VM is walked like the later ones.
        if session.processes.vm_runs() {
            session.sampling.load_walkers();
        }
        session.schedule = Schedule::start();
        session.sampling.start()?;
        if session.processes.tracker().may_start_vm() {
            session.sampling.expect_vm();
        }
        let (sampling, output) = (&session.sampling, &mut session.output);
        session.processes.find_running(sampling, output)?;
        // From now on the manifest shows whether the session waits for a process.
        session.update_manifest();
        Ok(session)
    }

    /// Prepares for the session's command, whose frames are walked from its first sample on, and whose JVM is probed for HotSpot's
    /// events. Returns the variables that its environment must have. `program`: the command's program, if there is a command.
    ///
    /// # Errors
    ///
    /// HotSpot's events cannot be sampled in the program's JVM.
    pub fn prepare_command(
        &mut self,
        program: Option<&Path>,
    ) -> Result<Vec<(&'static str, String)>, SessionError> {
        if let Some(library) = program.and_then(libjvm_of)
            && let Ok(file) = File::open(&library)
            && let Ok(found) = file.metadata()
        {
            self.sampling.add_libjvm(LibjvmFile {
                name: &library,
                id: LibjvmId {
                    device: found.dev(),
                    inode: found.ino(),
                },
                bytes: &file,
                size: found.len(),
                handle: file.as_fd(),
            })?;
        }
        self.sampling.load_walkers();
        Ok(self.processes.environment())
    }

    /// Runs until it is stopped, its duration is over, or its only process has ended. Returns the session's folder.
    ///
    /// # Errors
    ///
    /// Sampling fails, or the disk is full. What was recorded before is kept.
    pub fn run(mut self) -> Result<PathBuf, SessionError> {
        let result = self.run_loop();
        let ended = self.end(match result {
            Ok(()) => SessionState::Complete,
            Err(_) => SessionState::Failed,
        });
        result.and(ended)?;
        Ok(self.output.into_folder())
    }

    fn run_loop(&mut self) -> Result<(), SessionError> {
        while !self.control.stop.load(Ordering::Relaxed)
            && !self.schedule.is_over(self.configuration.limits().duration)
        {
            self.sampling.wait(self.processes.longest_sleep());
            self.turn(false)?;
            if self.processes.target_has_ended() {
                // Its last records may still be in the rings.
                break;
            }
        }
        Ok(())
    }

    /// One iteration of the loop. The `last` one handles everything that is left.
    fn turn(&mut self, last: bool) -> Result<(), SessionError> {
        if !last {
            self.reload()?;
        }
        if let Some(refusal) = self.sampling.take_refusal() {
            self.output.note(format!(
                "some frames of VMs are not walked, but taken from copies of their stacks: {refusal}"
            ));
        }
        let mut records = self.sampling.take_records(last);
        // A VM that was running at a sample must be known before the sample is attributed.
        self.processes.find_vms(&self.sampling)?;
        self.read_jit_names(last);
        self.processes.expect(&records);
        for record in records.drain(..) {
            self.sampling.advance(record.time);
            self.handle(record)?;
        }
        self.sampling.reuse(records);
        let (sampling, output) = (&self.sampling, &mut self.output);
        self.processes.find_named(sampling, output)?;
        self.processes.find_new(sampling, output)?;
        self.write_released()?;
        self.processes.refresh_vms();
        if self.losses.take_outdated() && !last {
            let (sampling, output) = (&self.sampling, &mut self.output);
            self.processes.reread_all(sampling, output)?;
        }
        if last || self.schedule.flush_is_due() {
            self.flush(last)?;
            let (sampling, output) = (&self.sampling, &mut self.output);
            self.processes.remove_ended(sampling, output)?;
            self.schedule.flushed();
        }
        Ok(())
    }

    fn reload(&mut self) -> Result<(), SessionError> {
        self.configuration.reload(ReloadTargets {
            sampling: &self.sampling,
            processes: &mut self.processes,
            output: &mut self.output,
            control: &self.control,
        })?;
        self.write_released()
    }

    fn handle(&mut self, record: Stamped) -> Result<(), SessionError> {
        let time = record.time;
        let task = |pid, ppid, tid, ptid| TaskEvent {
            time,
            pid,
            ppid,
            tid,
            ptid,
        };
        let (sampling, output) = (&self.sampling, &mut self.output);
        match record.event {
            RingEvent::Sample(sampled) => self.sample(sampled),
            RingEvent::Raw { bytes, .. } => output.write_raw(&bytes),
            RingEvent::Mmap(mmap) => self.processes.mmap(&mmap, sampling, output),
            RingEvent::Comm {
                pid,
                tid,
                exec,
                name,
            } => {
                let event = CommEvent {
                    time,
                    pid,
                    tid,
                    exec,
                    name,
                };
                self.processes.comm(event, sampling, output)
            }
            RingEvent::Fork {
                pid,
                ppid,
                tid,
                ptid,
            } => self
                .processes
                .fork(task(pid, ppid, tid, ptid), sampling, output),
            RingEvent::Exit {
                pid,
                ppid,
                tid,
                ptid,
            } => self
                .processes
                .exit(task(pid, ppid, tid, ptid), sampling, output),
            RingEvent::Lost(count) => self.lost(time, count),
            RingEvent::Malformed => {
                self.losses.add_malformed();
                Ok(())
            }
            RingEvent::Throttle => {
                self.losses.add_throttled();
                Ok(())
            }
        }
    }

    fn lost(&mut self, time: MonotonicNs, count: u64) -> Result<(), SessionError> {
        tracing::warn!(
            "{count} records found no room in the ring: a larger --ring-pages or a lower rate helps"
        );
        self.losses.add_lost(count);
        self.output.write(&SessionRecord::Lost { time, count })
    }

    fn sample(&mut self, sampled: Box<Sampled>) -> Result<(), SessionError> {
        let pid = sampled.record.pid;
        let Some(tracked) = self.processes.get_mut(pid) else {
            return self.first_sample(pid, sampled);
        };
        match tracked.accept(sampled) {
            Accepted::Write(sampled) => self.write_sample(pid, sampled),
            Accepted::LayoutRefused(sampled) => {
                self.processes.retarget(pid, &self.sampling)?;
                self.write_sample(pid, sampled)
            }
            Accepted::Lost(time) => self.output.write(&SessionRecord::Lost { time, count: 1 }),
            Accepted::Held | Accepted::Dropped => Ok(()),
        }
    }

    /// Handles a sample of a process that is not tracked. Starts tracking the process if it belongs to the target.
    fn first_sample(&mut self, pid: Pid, mut sampled: Box<Sampled>) -> Result<(), SessionError> {
        if !self.processes.may_start_with_sample(pid) {
            return Ok(());
        }
        if !tasks::is_alive(pid) {
            // The process has ended, so nothing can be read from it.
            let mut gone = self.processes.without_mappings(pid);
            let mut filter = self.processes.filter_without_name();
            let recorder = &mut self.output.recorder;
            let samples = &mut self.samples;
            let mut known = Written::default();
            let filter = filter.as_mut();
            let written = samples.write(&mut sampled, &mut gone, &mut known, filter, recorder);
            return self.output.tolerate(written);
        }
        let (sampling, output) = (&self.sampling, &mut self.output);
        self.processes.track_or_refuse(pid, sampling, output)?;
        match self.processes.contains(pid) {
            true => self.sample(sampled),
            false => Ok(()),
        }
    }

    fn write_sample(&mut self, pid: Pid, mut sampled: Box<Sampled>) -> Result<(), SessionError> {
        let Some(tracked) = self.processes.get_mut(pid) else {
            return Ok(());
        };
        let time = sampled.record.time;
        let managed = &mut tracked.managed;
        let filter = tracked.gate.as_mut();
        let filter = filter.and_then(|gate| gate.at(time, managed));
        let recorder = &mut self.output.recorder;
        let (samples, known) = (&mut self.samples, &mut tracked.written);
        let written = samples.write(&mut sampled, managed, known, filter, recorder);
        self.sampling.with(|sampler| sampler.reuse(sampled));
        self.output.tolerate(written)
    }

    /// Writes samples that have waited for their process's name.
    fn write_released(&mut self) -> Result<(), SessionError> {
        let released = self.processes.take_released();
        let mut rest = released.into_iter();
        while let Some(sampled) = rest.next() {
            if let Err(error) = self.sample(sampled) {
                let (time, count) = (self.sampling.latest(), rest.len() as u64);
                self.output.write(&SessionRecord::Lost { time, count })?;
                return Err(error);
            }
        }
        Ok(())
    }

    fn read_jit_names(&mut self, last: bool) {
        let now = monotonic_ns();
        self.processes.read_jit_names(now, last);
    }

    /// Writes all buffered data to the disk.
    fn flush(&mut self, last: bool) -> Result<(), SessionError> {
        self.output.note_unseen(reader::notes());
        self.update_manifest();
        self.output.flush_raw()?;
        self.read_jit_names(last);
        let recorder = &mut self.output.recorder;
        let latest = self.sampling.latest();
        let named = self.processes.write_jit_names(last, recorder);
        let counted = self.processes.save_calls(last, latest, recorder);
        let flushed = named.and(counted).and(recorder.flush());
        self.output.flushed(flushed)
    }

    fn end(&mut self, state: SessionState) -> Result<(), SessionError> {
        let disabled = self.sampling.with(|sampler| sampler.disable());
        self.schedule.stop();
        let last = self.turn(true).and_then(|()| self.write_unreported());
        self.processes.note_all_unseen(&mut self.output);
        self.update_manifest();
        let empty = self.why_empty();
        let times = self.sampling.with(|sampler| sampler.times());
        let of_samples = self.sampling.with(|sampler| sampler.source().notes());
        let manifest = self.output.recorder.writer().manifest_mut();
        manifest.notes.extend(empty);
        manifest.notes.extend(of_samples);
        for (index, times) in times {
            if let Some(event) = manifest.events.get_mut(index) {
                (event.enabled_ns, event.running_ns) = (times.enabled_ns, times.running_ns);
            }
        }
        manifest.state = match last {
            Ok(()) => state,
            Err(_) => SessionState::Failed,
        };
        // The recording is completed even after an error.
        let finished = self.output.recorder.finish();
        disabled?;
        last?;
        Ok(finished?)
    }

    /// The kernel reports lost records when the ring has space again. At the end there may be losses that it has not reported.
    fn write_unreported(&mut self) -> Result<(), SessionError> {
        let no_space = self.sampling.with(|sampler| sampler.source().no_space())?;
        match self.losses.unreported(no_space.unwrap_or(0)) {
            0 => Ok(()),
            count => self.output.write(&SessionRecord::Lost {
                time: monotonic_ns(),
                count,
            }),
        }
    }

    /// Puts the session's counts into the manifest and into the status that `varid status` shows.
    fn update_manifest(&mut self) {
        let writer = self.output.recorder.writer();
        let counts = writer.counts().clone();
        let bytes = writer.bytes_written();
        let manifest = writer.manifest_mut();
        manifest.duration_ns = self.schedule.elapsed().as_nanos() as u64;
        manifest.read_requests = reader::requests();
        self.losses.write_to(&mut manifest.counts);
        self.samples.write_to(&mut manifest.counts);
        let limit = self.configuration.limits().size;
        if self.schedule.reaches_size(bytes, limit)
            && let Some(limit) = limit
        {
            let note = format!("perf.data has the {limit} bytes of limits.size: the session ended");
            tracing::info!("{note}");
            manifest.notes.push(note);
        }
        let profiled = self.processes.profiled() as u64;
        let control = &self.control;
        control.samples.store(counts.samples, Ordering::Relaxed);
        control.lost.store(counts.lost, Ordering::Relaxed);
        control.bytes.store(bytes, Ordering::Relaxed);
        control.processes.store(profiled, Ordering::Relaxed);
    }

    /// Explains an empty recording.
    fn why_empty(&mut self) -> Option<String> {
        let counts = self.output.recorder.writer().counts();
        if counts.samples > 0 {
            return None;
        }
        let filtered = self.samples.filtered();
        let why = if filtered > 0 {
            format!("all {filtered} samples were in methods that --method leaves out")
        } else if counts.lost > 0 {
            format!(
                "all {} samples were lost: a larger --ring-pages or a lower rate helps",
                counts.lost
            )
        } else if self.sampling.lacks_libjvm() {
            "no process has loaded a libjvm, where alloc, lock and park are sampled".to_owned()
        } else if self.processes.ever_found() {
            "what is profiled did not run on a processor, or too briefly for the rate: -F takes a higher one".to_owned()
        } else {
            let target = self.processes.tracker().target();
            format!("no process of '{target}' was there")
        };
        let why = format!("no sample was taken: {why}");
        tracing::warn!("{why}");
        Some(why)
    }
}
