//! Samples from the kernel: events on every CPU, their rings, one stream in order of time.
//!
//! Every [`Source`] delivers [`varid_shim::CapturedSample`]s. The shim walks the managed frames at the sample. perf's copy of registers and
//! stack needs no privileges and is walked later.
//!
//! Events are written as perf's `-e` takes them. [`event::resolve`] looks them up, [`choose`] loads a source that can sample them, and
//! [`Sampler::open`] opens them on every CPU:
//!
//! ```
//! use varid_sampler::event::{Rate, resolve};
//! use varid_sampler::indexed_events;
//!
//! // Software events need no PMU of the machine.
//! let resolved = resolve(["cpu-clock:u", "{task-clock,page-faults}"], Rate::Frequency(499), &[])?;
//! let names: Vec<_> = indexed_events(&resolved.groups)
//!     .map(|one| (one.index, one.event.name.as_str(), one.is_leader))
//!     .collect();
//! let expected = [(0, "cpu-clock:u", true), (1, "task-clock", true), (2, "page-faults", false)];
//! assert_eq!(names, expected);
//! # Ok::<(), varid_sampler::SamplerError>(())
//! ```

#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod cpu;
pub mod decode;
mod drainer;
mod error;
pub mod event;
mod groups;
pub mod interrupts;
mod ioctl;
pub mod open;
mod ring;
mod source;
mod stream;
pub mod sysctl;

pub use cpu::online_cpus;
pub use drainer::Drainer;
pub use error::SamplerError;
pub use groups::{IndexedEvent, Times, indexed_events};
pub use source::{ShimKind, Source, choose};

use cpu::Cpu;
use decode::{SamplePool, Sampled, Stamped};
use event::jvm::Libjvm;
use event::{Event, Group, HitSource, Rate};
use groups::{check_presence, fixed_period, times};
use nix::poll::{PollFd, PollFlags, PollTimeout};
use std::collections::BTreeMap;
use std::os::fd::AsFd;
use stream::Stream;
use varid_model::perf::EventAttr;
use varid_model::{MonotonicNs, Pid, Tid};
use varid_shim::{Target, Walker};

/// What to sample, and how.
#[derive(Debug, Clone)]
pub struct SamplerOptions {
    /// The events, in the groups that are counted together.
    pub groups: Vec<Group>,
    /// Also deliver the kernel's own sample of each overflow.
    pub keep_raw: bool,
    /// Bytes of stack in each of these, a multiple of 8; 0 for none.
    pub raw_stack: u32,
    /// Bytes of stack that the stack-copying source requests, a multiple of 8.
    pub stack_copy: u32,
    /// Pages of a ring, a power of two. Smaller rings are tried if the kernel refuses this size.
    pub ring_pages: usize,
}

/// The maximum number of bytes collected while the session is busy. Beyond this, records stay in the rings.
const MAX_COLLECTED: usize = 1 << 26;
/// The assumed size of a shim record with its stack, in bytes.
const SHIM_RECORD: usize = 1 << 13;

/// Open events and their rings.
#[derive(Debug)]
pub struct Sampler {
    options: SamplerOptions,
    source: Source,
    cpus: Vec<Cpu>,
    stream: Stream,
    spare: SamplePool,
    /// Bytes of records collected since the last hand-over.
    collected: usize,
    /// How long closed events were counted, by their indices.
    closed: BTreeMap<usize, Times>,
}

impl Sampler {
    /// Opens events on every online CPU. Nothing is sampled before [`Sampler::enable`].
    pub fn open(options: SamplerOptions, mut source: Source) -> Result<Self, SamplerError> {
        source.prepare(&options)?;
        let mut cpus = online_cpus()?
            .into_iter()
            .map(|cpu| source.open_cpu(&options, cpu))
            .collect::<Result<Vec<_>, _>>()?;
        let counters = cpus.iter().flat_map(|cpu| &cpu.counters);
        let mut present: Vec<_> = counters.map(|counter| counter.event).collect();
        if let Source::Module(module) = &source {
            // The module opens its counters itself.
            present.extend(module.present());
        }
        let absent = cpus.iter_mut().flat_map(|cpu| cpu.absent.drain(..));
        check_presence(&present, absent.collect())?;
        let reads = options.groups.iter().any(|group| group.reads);
        let pairs = matches!(source, Source::Bpf(_)) && (options.keep_raw || reads);
        Ok(Self {
            stream: Stream::new(pairs, options.keep_raw),
            options,
            source,
            cpus,
            spare: SamplePool::default(),
            collected: 0,
            closed: BTreeMap::new(),
        })
    }

    /// The source in use.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Returns the attributes of the kernel's own samples that are kept beside the shim's, and the identifiers of each.
    pub fn raw_attrs(&self) -> Vec<(EventAttr, Vec<u64>)> {
        let attr = |IndexedEvent { index, event, .. }: IndexedEvent<'_>| {
            if !event.is_opened() {
                return None;
            }
            let mut attr = event.attr(event.encodings.first()?);
            source::raw_shape(&mut attr, &self.options);
            // The module draws random periods, so its raw samples have a period field.
            if !matches!(self.source, Source::Module(_)) {
                fixed_period(event.rate, &mut attr);
            }
            let counters = self.cpus.iter().flat_map(|cpu| &cpu.counters);
            let of_the_event = counters.filter(|counter| counter.event == index);
            Some((attr, of_the_event.map(|counter| counter.id).collect()))
        };
        indexed_events(&self.options.groups)
            .filter_map(attr)
            .collect()
    }

    /// Returns how long every event has been counted so far, by its index.
    pub fn times(&self) -> BTreeMap<usize, Times> {
        if let Source::Module(module) = &self.source {
            return BTreeMap::from([(0, module.times())]);
        }
        let mut all = times(self.cpus.iter().flat_map(|cpu| {
            let counters = cpu.counters.iter();
            counters.map(|counter| (cpu.cpu, counter))
        }));
        for (index, closed) in &self.closed {
            all.entry(*index).or_default().add(*closed);
        }
        all
    }

    /// Returns the programs that must be loaded before the frames of targets with [`Target::needs_walker`] can be walked. They are loaded
    /// without the sampler, which can be drained meanwhile.
    pub fn walkers(&self) -> Vec<Walker> {
        self.source.walkers()
    }

    /// Returns true if an event is sampled at functions of HotSpot: [`Sampler::add_libjvm`] takes the libraries.
    pub fn probes_libjvm(&self) -> bool {
        let mut events = self.options.groups.iter().flat_map(|group| &group.events);
        events.any(|event| matches!(event.hits, Some(HitSource::Jvm { .. })))
    }

    /// Also samples HotSpot's events in this library, in all processes that load it.
    pub fn add_libjvm(&mut self, library: &Libjvm<'_>) -> Result<(), SamplerError> {
        self.source.add_libjvm(library)
    }

    /// Sets how a process is sampled.
    pub fn set_target(&mut self, pid: Pid, target: &Target) -> Result<(), SamplerError> {
        self.source.set_target(&self.options, pid, target)
    }

    /// Removes the target of a process, which is sampled by the default target again.
    pub fn remove_target(&mut self, pid: Pid) -> Result<(), SamplerError> {
        self.source.remove_target(pid)
    }

    /// Sets how processes without a target of their own are sampled.
    pub fn set_default_target(&mut self, target: &Target) -> Result<(), SamplerError> {
        self.source.set_default_target(&self.options, target)
    }

    /// Attaches a source that is not system-wide to a thread of a process, and to all threads and processes that it will start. A thread that
    /// has ended meanwhile is not an error.
    pub fn add_thread(&mut self, pid: Pid, tid: Tid) -> Result<(), SamplerError> {
        let (source, options) = (&mut self.source, &self.options);
        source.add_thread(options, pid, tid, &mut self.cpus)
    }

    /// Reports that a process has forked. A source that is not system-wide samples both with the same events.
    pub fn forked(&mut self, parent: Pid, child: Pid) {
        self.source.forked(parent, child);
    }

    /// Detaches a source that is not system-wide from a process. Returns the other processes that were sampled by the same events and no
    /// longer are.
    pub fn detach(&mut self, pid: Pid) -> Vec<Pid> {
        let (counters, others) = self.source.detach(pid, &mut self.cpus);
        let counters = counters.iter().map(|(cpu, counter)| (*cpu, counter));
        for (index, closed) in times(counters) {
            self.closed.entry(index).or_default().add(closed);
        }
        others
    }

    /// Starts sampling.
    pub fn enable(&mut self) -> Result<(), SamplerError> {
        self.cpus.iter().try_for_each(Cpu::enable)?;
        self.source.enable()
    }

    /// Stops sampling. The rings can still be drained.
    pub fn disable(&mut self) -> Result<(), SamplerError> {
        self.source.disable()?;
        self.cpus.iter().try_for_each(Cpu::disable)
    }

    /// Changes the frequency of all events that are sampled by a frequency. Returns false if the source does not support this.
    pub fn set_frequency(&mut self, hz: u64) -> Result<bool, SamplerError> {
        // The module opens its counters itself, and children inherit the events of a thread with the frequency of that time.
        if !matches!(self.source, Source::Bpf(_)) {
            return Ok(false);
        }
        let value = |index: usize, hz: Option<u64>| {
            let mut events = indexed_events(&self.options.groups);
            let event = events.find(|one| one.index == index).map(|one| one.event);
            let hz = hz.or(event.and_then(|event| match event.rate {
                Rate::Frequency(hz) => Some(hz),
                Rate::Period(_) => None,
            }));
            let hz = hz.unwrap_or(1);
            match event.is_some_and(Event::is_timer) {
                // When the kernel opens a timer, it converts the frequency to a period.
                true => 1_000_000_000u64.checked_div(hz).unwrap_or(1).max(1),
                false => hz,
            }
        };
        let (requested, current) = (|index| value(index, Some(hz)), |index| value(index, None));
        let set = self.cpus.iter().try_for_each(|cpu| cpu.set_rate(requested));
        if let Err(error) = set {
            // Restores the rate on all CPUs.
            for cpu in &self.cpus {
                let _ = cpu.set_rate(current);
            }
            return Err(error);
        }
        for event in self
            .options
            .groups
            .iter_mut()
            .flat_map(|group| &mut group.events)
        {
            if let Rate::Frequency(rate) = &mut event.rate {
                *rate = hz;
            }
        }
        Ok(true)
    }

    /// Waits until a ring has filled up to its watermark, or until the timeout.
    pub fn wait(&self, milliseconds: u16) {
        let mut fds: Vec<_> = self
            .cpus
            .iter()
            .map(|cpu| cpu.owner.as_fd())
            .chain(self.source.descriptor())
            .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
            .collect();
        // A signal that ends the wait early is equivalent to a timeout.
        let _ = nix::poll::poll(&mut fds, PollTimeout::from(milliseconds));
    }

    /// Returns a sample to the pool.
    pub fn reuse(&mut self, sampled: Box<Sampled>) {
        self.spare.put(sampled);
    }

    /// Drains the rings and hands over, in order of time, the records before which no other record can still arrive. `last`: no more records
    /// follow, so all are handed over.
    pub fn drain(&mut self, last: bool, each: impl FnMut(Stamped)) {
        let started = monotonic_ns();
        self.collect();
        self.collected = 0;
        if last {
            self.source.finish(&mut self.stream.pending);
        }
        self.stream.hand_over(started, last, each);
    }

    /// Drains the rings while the session is busy, unless too many records are collected already.
    fn collect_while_busy(&mut self) {
        if self.collected < MAX_COLLECTED {
            self.collect();
        }
    }

    /// Drains the rings and keeps the records until they are handed over.
    fn collect(&mut self) {
        let (source, stream, spare) = (&self.source, &mut self.stream, &mut self.spare);
        let origin = |id| source.origin(id);
        let mut collected = self.collected;
        for cpu in &mut self.cpus {
            let drained = cpu.ring.drain(|bytes| {
                collected = collected.saturating_add(bytes.len());
                if let Some((stamped, values)) = decode::decode(bytes, origin, spare) {
                    stream.push(cpu.cpu, stamped, &values, origin);
                }
            });
            if drained.is_err() {
                stream.push(
                    cpu.cpu,
                    Stamped::malformed(),
                    &decode::Values::new(),
                    origin,
                );
            }
        }
        let before = stream.pending.len();
        self.source.drain(&mut stream.pending, spare);
        let records = stream.pending.len().saturating_sub(before);
        self.collected = collected.saturating_add(records.saturating_mul(SHIM_RECORD));
    }
}

/// Returns the present time of the clock that all records use.
pub fn monotonic_ns() -> MonotonicNs {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC);
    now.map_or(MonotonicNs::ZERO, |now| {
        let seconds = (now.tv_sec() as u64).saturating_mul(1_000_000_000);
        MonotonicNs::new(seconds.saturating_add(now.tv_nsec() as u64))
    })
}
