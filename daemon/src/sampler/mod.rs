//! Samples from the kernel: events on every CPU, their rings, one stream in order of time.
//!
//! Every [`Source`] delivers the same [`varid_shim::Record`]: one that walks the managed
//! frames at the sample, and perf's own copy of registers and stack, which needs no
//! privileges and is walked later.

mod cpu;
pub mod decode;
mod error;
pub mod event;
mod groups;
pub mod interrupts;
pub mod open;
mod ring;
mod source;

pub use cpu::online_cpus;
pub use error::SamplerError;
pub use groups::{Times, places};
pub use source::{ShimKind, Source, choose};

use crate::perf_abi::perf_event_attr;
use cpu::Cpu;
use decode::{RingEvent, Stamped};
use event::{Event, Group};
use groups::{Readings, check_presence, times};
use nix::poll::{PollFd, PollFlags, PollTimeout};
use std::collections::BTreeMap;
use std::os::fd::AsFd;
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

/// Open events and their rings.
#[derive(Debug)]
pub struct Sampler {
    options: SamplerOptions,
    source: Source,
    cpus: Vec<Cpu>,
    /// Drained and not yet safe to release: an earlier record may still come.
    pending: Vec<Stamped>,
    barrier: u64,
    readings: Readings,
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
        let present: Vec<_> = counters.map(|counter| counter.event).collect();
        let absent = cpus.iter_mut().flat_map(|cpu| cpu.absent.drain(..));
        check_presence(&present, absent.collect())?;
        Ok(Self {
            options,
            source,
            cpus,
            pending: Vec::new(),
            barrier: 0,
            readings: Readings::default(),
        })
    }

    /// The source in use.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The attributes of the kernel's own samples that are kept beside the shim's, and the
    /// identifiers of each.
    pub fn raw_attrs(&self) -> Vec<(perf_event_attr, Vec<u64>)> {
        let attr = |(place, _, event, _): (usize, _, &Event, _)| {
            let mut attr = event.attr(event.encodings.first()?);
            source::raw_shape(&mut attr, &self.options);
            let counters = self.cpus.iter().flat_map(|cpu| &cpu.counters);
            let of_the_event = counters.filter(|counter| counter.event == place);
            Some((attr, of_the_event.map(|counter| counter.id).collect()))
        };
        places(&self.options.groups).filter_map(attr).collect()
    }

    /// How long every event was counted until now, by its place.
    pub fn times(&self) -> BTreeMap<usize, Times> {
        times(self.cpus.iter().flat_map(|cpu| {
            let counters = cpu.counters.iter();
            counters.map(|counter| (cpu.cpu, counter))
        }))
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

    /// A source that does not see everyone samples a thread and all that it will create. A
    /// thread that has ended meanwhile is no error.
    pub fn add_thread(&mut self, tid: u32) -> Result<(), SamplerError> {
        self.source.add_thread(&self.options, tid, &mut self.cpus)
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

    /// Drains the rings and hands over, in order of time, what no earlier record can
    /// precede any more. `last`: nothing more will come, hand over everything.
    pub fn drain(&mut self, last: bool, mut each: impl FnMut(Stamped)) {
        let started = monotonic_ns();
        let (source, pending) = (&self.source, &mut self.pending);
        let (readings, keep_raw) = (&mut self.readings, self.options.keep_raw);
        for cpu in &mut self.cpus {
            let first = pending.len();
            cpu.ring.drain(|bytes| {
                let Some((mut stamped, values)) = decode::decode(bytes, |id| source.origin(id))
                else {
                    return;
                };
                let mut read = |thread| {
                    let counted = readings.since_last(thread, &values).into_iter();
                    let members =
                        counted.filter_map(|(id, count)| Some((source.origin(id)?, count)));
                    members
                        .map(|(origin, count)| (origin.event, count))
                        .collect()
                };
                match &mut stamped.event {
                    RingEvent::Raw { tid, ip, event, .. } => {
                        // The event counts whatever runs on its CPU.
                        let read = read(0);
                        let before = pending.get_mut(first..).unwrap_or_default();
                        pair(before, stamped.time, (*event, *tid, *ip), read);
                        if !keep_raw {
                            return;
                        }
                    }
                    RingEvent::Sample(sampled) if !values.is_empty() => {
                        sampled.read = read(sampled.record.tid);
                        sampled.read.retain(|(event, _)| *event != sampled.event);
                    }
                    RingEvent::Exit { tid, .. } => readings.forget(*tid),
                    _ => {}
                }
                pending.push(stamped);
            });
        }
        self.source.drain(pending);
        pending.sort_by_key(|stamped| stamped.time);
        let barrier = if last { u64::MAX } else { self.barrier };
        self.barrier = started.saturating_sub(1_000_000);
        let ready = pending.partition_point(|stamped| stamped.time < barrier);
        pending.drain(..ready).for_each(&mut each);
    }
}

/// What the kernel calls a thread that it has forgotten already: one on its way out.
const FORGOTTEN: u32 = u32::MAX;

/// The kernel's sample of an overflow follows the shim's record of it in the same ring: both get
/// the kernel's time, by which another program can pair them, and the record what was read.
fn pair(
    before: &mut [Stamped],
    time: u64,
    (event, tid, ip): (usize, u32, u64),
    mut read: Vec<(usize, u64)>,
) {
    /// Events that interrupt each other's handlers.
    const BETWEEN: usize = 4;
    for stamped in before.iter_mut().rev().take(BETWEEN) {
        let RingEvent::Sample(sampled) = &mut stamped.event else {
            continue;
        };
        let record = &mut sampled.record;
        // The shim's record may have found no room where the kernel's smaller one did.
        let same_thread = record.tid == tid || tid == FORGOTTEN;
        if sampled.event == event && same_thread && record.ip == ip {
            stamped.time = time;
            record.time = time;
            read.retain(|(member, _)| *member != event);
            sampled.read = read;
            return;
        }
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
