//! Samples from the kernel: events on every CPU, their rings, one stream in order of time.
//!
//! Every [`Source`] delivers the same [`varid_shim::Record`]: one that walks the managed
//! frames at the sample, and perf's own copy of registers and stack, which needs no
//! privileges and is walked later.

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
pub use groups::{Times, places};
pub use source::{ShimKind, Source, choose};

use cpu::Cpu;
use decode::{Sampled, Spare, Stamped};
use event::{Event, Group, Rate};
use groups::{check_presence, fixed_period, times};
use nix::poll::{PollFd, PollFlags, PollTimeout};
use std::collections::BTreeMap;
use std::os::fd::AsFd;
use stream::Stream;
use varid_model::perf::EventAttr;
use varid_shim::Target;

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

/// Bytes of records that are kept for a session that is late. Then the rings fill up.
const MAX_COLLECTED: usize = 1 << 26;
/// What a shim's record counts for, with its stack.
const SHIM_RECORD: usize = 1 << 13;

/// Open events and their rings.
#[derive(Debug)]
pub struct Sampler {
    options: SamplerOptions,
    source: Source,
    cpus: Vec<Cpu>,
    stream: Stream,
    spare: Spare,
    /// Bytes of records that have been collected since some were handed over last.
    collected: usize,
    /// How long events were counted that are closed, by their places.
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
            spare: Spare::default(),
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
        let attr = |(place, _, event, _): (usize, _, &Event, _)| {
            let mut attr = event.attr(event.encodings.first()?);
            source::raw_shape(&mut attr, &self.options);
            // The module's own say each period, as it draws them.
            if !matches!(self.source, Source::Module(_)) {
                fixed_period(event.rate, &mut attr);
            }
            let counters = self.cpus.iter().flat_map(|cpu| &cpu.counters);
            let of_the_event = counters.filter(|counter| counter.event == place);
            Some((attr, of_the_event.map(|counter| counter.id).collect()))
        };
        places(&self.options.groups).filter_map(attr).collect()
    }

    /// How long every event was counted until now, by its place.
    pub fn times(&self) -> BTreeMap<usize, Times> {
        if let Source::Module(module) = &self.source {
            return BTreeMap::from([(0, module.times())]);
        }
        let mut all = times(self.cpus.iter().flat_map(|cpu| {
            let counters = cpu.counters.iter();
            counters.map(|counter| (cpu.cpu, counter))
        }));
        for (place, closed) in &self.closed {
            all.entry(*place).or_default().add(*closed);
        }
        all
    }

    /// Tells the source what it may look at in a process.
    pub fn set_target(&mut self, pid: u32, target: &Target) -> Result<(), SamplerError> {
        self.source.set_target(&self.options, pid, target)
    }

    /// The source no longer looks at the process.
    pub fn remove_target(&mut self, pid: u32) -> Result<(), SamplerError> {
        self.source.remove_target(pid)
    }

    /// The source looks at every process that it is told nothing else about.
    pub fn admit_everyone(&mut self, target: &Target) -> Result<(), SamplerError> {
        self.source.admit_everyone(&self.options, target)
    }

    /// A source that does not see everyone samples a process's thread and all that it will
    /// create. A thread that has ended meanwhile is no error.
    pub fn add_thread(&mut self, pid: u32, tid: u32) -> Result<(), SamplerError> {
        let (source, options) = (&mut self.source, &self.options);
        source.add_thread(options, (pid, tid), &mut self.cpus)
    }

    /// A process has forked another, which such a source samples with it.
    pub fn forked(&mut self, parent: u32, child: u32) {
        self.source.forked(parent, child);
    }

    /// Such a source samples a process no longer; nor these others that were sampled with it.
    pub fn let_go(&mut self, pid: u32) -> Vec<u32> {
        let (counters, others) = self.source.let_go(pid, &mut self.cpus);
        let counters = counters.iter().map(|(cpu, counter)| (*cpu, counter));
        for (place, closed) in times(counters) {
            self.closed.entry(place).or_default().add(closed);
        }
        others
    }

    /// Sampling begins.
    pub fn enable(&self) -> Result<(), SamplerError> {
        self.cpus.iter().try_for_each(Cpu::enable)?;
        self.source.enable()
    }

    /// Sampling ends; what is in the rings can still be drained.
    pub fn disable(&self) -> Result<(), SamplerError> {
        self.source.disable()?;
        self.cpus.iter().try_for_each(Cpu::disable)
    }

    /// The events that are sampled so many times a second are from now on sampled so many times;
    /// whether the source can do that.
    pub fn set_frequency(&mut self, hz: u64) -> Result<bool, SamplerError> {
        // The module has counters of its own, and a thread's are its children's, too, as they were.
        if !matches!(self.source, Source::Bpf(_)) {
            return Ok(false);
        }
        let value = |place: usize, hz: Option<u64>| {
            let event = places(&self.options.groups).find(|(at, ..)| *at == place);
            let event = event.map(|(_, _, event, _)| event);
            let hz = hz.or(event.and_then(|event| match event.rate {
                Rate::Frequency(hz) => Some(hz),
                Rate::Period(_) => None,
            }));
            let hz = hz.unwrap_or(1);
            match event.is_some_and(Event::is_timer) {
                // The kernel makes a period of a timer's frequency when it is opened.
                true => 1_000_000_000u64.checked_div(hz).unwrap_or(1).max(1),
                false => hz,
            }
        };
        let (as_asked, as_it_is) = (|place| value(place, Some(hz)), |place| value(place, None));
        let set = self.cpus.iter().try_for_each(|cpu| cpu.set_rate(as_asked));
        if let Err(error) = set {
            // All CPUs are sampled as they were.
            for cpu in &self.cpus {
                let _ = cpu.set_rate(as_it_is);
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

    /// A sample that was handed over is done with.
    pub fn take_back(&mut self, sampled: Box<Sampled>) {
        self.spare.put(sampled);
    }

    /// Drains the rings and hands over, in order of time, what no earlier record can
    /// precede any more. `last`: nothing more will come, hand over everything.
    pub fn drain(&mut self, last: bool, each: impl FnMut(Stamped)) {
        let started = monotonic_ns();
        self.collect();
        self.collected = 0;
        self.stream.hand_over(started, last, each);
    }

    /// Empties the rings for a session that is late, unless too much waits for it already.
    fn collect_in_between(&mut self) {
        if self.collected < MAX_COLLECTED {
            self.collect();
        }
    }

    /// Empties the rings, and keeps what was in them until it is handed over.
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

/// CLOCK_MONOTONIC in nanoseconds, the clock of every record.
pub fn monotonic_ns() -> u64 {
    nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).map_or(0, |now| {
        let seconds = now.tv_sec() as u64;
        seconds
            .saturating_mul(1_000_000_000)
            .saturating_add(now.tv_nsec() as u64)
    })
}
