//! Samples from the kernel: events on every CPU, their rings, one stream in order of time.
//!
//! Every [`Source`] delivers the same [`varid_shim::CapturedSample`]: one that walks the managed
//! frames at the sample, and perf's own copy of registers and stack, which needs no
//! privileges and is walked later.
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
use event::{Event, Group, Rate};
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
    /// The events, as they are counted together.
    pub groups: Vec<Group>,
    /// Deliver the kernel's own sample of each overflow, too.
    pub keep_raw: bool,
    /// Bytes of stack with each of them, a multiple of 8; 0: none.
    pub raw_stack: u32,
    /// Bytes of stack that the stack-copying source asks for, a multiple of 8.
    pub stack_copy: u32,
    /// Pages of a ring, a power of two; smaller ones are tried where the kernel refuses.
    pub ring_pages: usize,
}

/// Bytes of records that are collected while the session is busy. When there are more, the rings fill up.
const MAX_COLLECTED: usize = 1 << 26;
/// Bytes that a record of the shim counts for, with its stack.
const SHIM_RECORD: usize = 1 << 13;

/// Open events and their rings.
#[derive(Debug)]
pub struct Sampler {
    options: SamplerOptions,
    source: Source,
    cpus: Vec<Cpu>,
    stream: Stream,
    spare: SamplePool,
    /// Bytes of records that have been collected since some were handed over last.
    collected: usize,
    /// How long events were counted that are closed, by their indices.
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
            // Its counters are its own.
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

    /// The attributes of the kernel's own samples that are kept beside the shim's, and the
    /// identifiers of each.
    pub fn raw_attrs(&self) -> Vec<(EventAttr, Vec<u64>)> {
        let attr = |IndexedEvent { index, event, .. }: IndexedEvent<'_>| {
            if !event.is_opened() {
                return None;
            }
            let mut attr = event.attr(event.encodings.first()?);
            source::raw_shape(&mut attr, &self.options);
            // The module's own say each period, as it draws them.
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

    /// How long every event was counted until now, by its index.
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

    /// The programs that have to be loaded before the frames of targets are walked that need them ([`Target::needs_walker`]). They are loaded
    /// without the sampler, which can be drained meanwhile.
    pub fn walkers(&self) -> Vec<Walker> {
        self.source.walkers()
    }

    /// Tells the source how to sample a process.
    pub fn set_target(&mut self, pid: Pid, target: &Target) -> Result<(), SamplerError> {
        self.source.set_target(&self.options, pid, target)
    }

    /// The source samples the process as it does those of which it knows nothing.
    pub fn remove_target(&mut self, pid: Pid) -> Result<(), SamplerError> {
        self.source.remove_target(pid)
    }

    /// Tells the source how to sample every process without a target of its own.
    pub fn set_default_target(&mut self, target: &Target) -> Result<(), SamplerError> {
        self.source.set_default_target(&self.options, target)
    }

    /// Attaches a source that does not sample whole CPUs to a thread of a process, and to all threads and processes that it will
    /// start. A thread that has ended meanwhile is no error.
    pub fn add_thread(&mut self, pid: Pid, tid: Tid) -> Result<(), SamplerError> {
        let (source, options) = (&mut self.source, &self.options);
        source.add_thread(options, pid, tid, &mut self.cpus)
    }

    /// A process has forked another. Such a source samples both with the same events.
    pub fn forked(&mut self, parent: Pid, child: Pid) {
        self.source.forked(parent, child);
    }

    /// Detaches such a source from a process. The other processes that were sampled with the same events, and are no longer.
    pub fn detach(&mut self, pid: Pid) -> Vec<Pid> {
        let (counters, others) = self.source.detach(pid, &mut self.cpus);
        let counters = counters.iter().map(|(cpu, counter)| (*cpu, counter));
        for (index, closed) in times(counters) {
            self.closed.entry(index).or_default().add(closed);
        }
        others
    }

    /// Sampling begins.
    pub fn enable(&mut self) -> Result<(), SamplerError> {
        self.cpus.iter().try_for_each(Cpu::enable)?;
        self.source.enable()
    }

    /// Sampling ends; what is in the rings can still be drained.
    pub fn disable(&mut self) -> Result<(), SamplerError> {
        self.source.disable()?;
        self.cpus.iter().try_for_each(Cpu::disable)
    }

    /// Changes the frequency of all events that are sampled by a frequency; false: the source cannot.
    pub fn set_frequency(&mut self, hz: u64) -> Result<bool, SamplerError> {
        // The module opens its counters itself. Those of a thread are inherited by its children as they were.
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
                // When a timer is opened the kernel makes a period of its frequency.
                true => 1_000_000_000u64.checked_div(hz).unwrap_or(1).max(1),
                false => hz,
            }
        };
        let (requested, current) = (|index| value(index, Some(hz)), |index| value(index, None));
        let set = self.cpus.iter().try_for_each(|cpu| cpu.set_rate(requested));
        if let Err(error) = set {
            // All CPUs get back the rate that they had.
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

    /// Waits until a ring has filled up to its watermark, or the time is over.
    pub fn wait(&self, milliseconds: u16) {
        let mut fds: Vec<_> = self
            .cpus
            .iter()
            .map(|cpu| cpu.owner.as_fd())
            .chain(self.source.descriptor())
            .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
            .collect();
        // A signal that ends the wait early is as good as its end.
        let _ = nix::poll::poll(&mut fds, PollTimeout::from(milliseconds));
    }

    /// Gives back the memory of a sample.
    pub fn reuse(&mut self, sampled: Box<Sampled>) {
        self.spare.put(sampled);
    }

    /// Drains the rings and hands over, in order of time, what no earlier record can
    /// precede any more. `last`: nothing more will come, hand over everything.
    pub fn drain(&mut self, last: bool, each: impl FnMut(Stamped)) {
        let started = monotonic_ns();
        self.collect();
        self.collected = 0;
        if last {
            self.source.finish(&mut self.stream.pending);
        }
        self.stream.hand_over(started, last, each);
    }

    /// Empties the rings while the session is busy, unless too much waits for it already.
    fn collect_while_busy(&mut self) {
        if self.collected < MAX_COLLECTED {
            self.collect();
        }
    }

    /// Empties the rings. Their records wait until they are handed over.
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

/// The time now, of the clock of every record.
pub fn monotonic_ns() -> MonotonicNs {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC);
    now.map_or(MonotonicNs::ZERO, |now| {
        let seconds = (now.tv_sec() as u64).saturating_mul(1_000_000_000);
        MonotonicNs::new(seconds.saturating_add(now.tv_nsec() as u64))
    })
}
