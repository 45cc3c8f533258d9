//! Samples from the kernel: events on every CPU, their rings, one stream in order of time.
//!
//! Every [`Source`] delivers the same [`varid_shim::Record`]: one that walks the managed
//! frames at the sample, and perf's own copy of registers and stack, which needs no
//! privileges and is walked later.

mod cpu;
pub mod decode;
mod error;
pub mod event;
mod ring;
mod source;

pub use cpu::online_cpus;
pub use error::SamplerError;
pub use source::{ShimKind, Source, choose};

use crate::perf_abi::perf_event_attr;
use cpu::Cpu;
use decode::{RingEvent, Stamped};
use event::{Event, Rate};
use nix::poll::{PollFd, PollFlags, PollTimeout};
use std::os::fd::AsFd;
use varid_shim::Target;

/// What to sample, and how.
#[derive(Debug, Clone)]
pub struct SamplerOptions {
    /// The event.
    pub event: Event,
    /// Its rate.
    pub rate: Rate,
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
}

impl Sampler {
    /// Opens events on every online CPU. Nothing is sampled before [`Sampler::enable`].
    pub fn open(options: SamplerOptions, mut source: Source) -> Result<Self, SamplerError> {
        let cpus = online_cpus()?
            .into_iter()
            .map(|cpu| source.open_cpu(&options, cpu))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            options,
            source,
            cpus,
            pending: Vec::new(),
            barrier: 0,
        })
    }

    /// The source in use.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The attribute of the kernel's own samples that are kept beside the shim's.
    pub fn raw_attr(&self) -> perf_event_attr {
        source::raw_attr(&self.options)
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
        for cpu in &mut self.cpus {
            let first = pending.len();
            cpu.ring.drain(|bytes| {
                let Some(stamped) = decode::decode(bytes, |id| source.kind_of(id)) else {
                    return;
                };
                if let RingEvent::Raw { tid, ip, .. } = stamped.event {
                    adopt_time(
                        pending.get_mut(first..).unwrap_or_default(),
                        stamped.time,
                        tid,
                        ip,
                    );
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

/// The kernel's sample of an overflow follows the shim's record of it in the same ring:
/// both get the kernel's time, by which another program can pair them.
fn adopt_time(before: &mut [Stamped], time: u64, tid: u32, ip: u64) {
    let Some(Stamped {
        time: own,
        event: RingEvent::Sample(record),
    }) = before.last_mut()
    else {
        return;
    };
    // The shim's record may have found no room where the kernel's smaller one did.
    let same_thread = record.tid == tid || tid == FORGOTTEN;
    if same_thread && record.ip == ip {
        *own = time;
        record.time = time;
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
