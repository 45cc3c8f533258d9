//! What is open on one CPU? A ring, and the events that write into it.

use crate::SamplerError;
use crate::event::pmu::cpu_list;
use crate::groups::{Absent, Counter};
use crate::ioctl;
use crate::ring::Ring;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// A CPU's ring and its events.
#[derive(Debug)]
pub struct Cpu {
    /// Its number.
    pub cpu: u32,
    /// What its events write into.
    pub ring: Ring,
    /// The event that the ring was mapped from; the others redirect to it.
    pub owner: OwnedFd,
    /// The sampled and counted events.
    pub counters: Vec<Counter>,
    /// Other events.
    pub others: Vec<OwnedFd>,
    /// The events that nothing here counts, by their indices, and why.
    pub absent: Vec<Absent>,
}

impl Cpu {
    /// Maps the ring of an event of the CPU, of `pages` pages or fewer, where the kernel refuses so many. `open`: opens the event, for
    /// a ring of so many pages.
    pub fn with_ring(
        cpu: u32,
        mut pages: usize,
        open: impl Fn(usize) -> Result<OwnedFd, SamplerError>,
    ) -> Result<Self, SamplerError> {
        let (owner, ring) = loop {
            let owner = open(pages)?;
            match Ring::map(owner.as_fd(), pages) {
                Ok(ring) => break (owner, ring),
                Err(error) if pages > 16 => {
                    tracing::debug!(cpu, pages, %error, "trying a smaller ring");
                    pages /= 2;
                }
                Err(source) => return Err(SamplerError::Map { cpu, pages, source }),
            }
        };
        tracing::debug!(cpu, bytes = ring.capacity(), "ring mapped");
        Ok(Self {
            cpu,
            ring,
            owner,
            counters: Vec::new(),
            others: Vec::new(),
            absent: Vec::new(),
        })
    }

    /// The event's records go to the ring from now on.
    pub fn redirect(&self, event: &OwnedFd) -> Result<(), SamplerError> {
        ioctl::set_output(self.cpu, event, &self.owner)
    }

    /// All its events count from now on.
    pub fn enable(&self) -> Result<(), SamplerError> {
        let events = self.others.iter().chain(self.counting());
        let mut events = events.chain([&self.owner]);
        events.try_for_each(|event| ioctl::enable(self.cpu, event))
    }

    /// None of its events counts any more. The events that carry the shim's records are disabled after the sampled ones: records that
    /// they refuse would count as lost.
    pub fn disable(&self) -> Result<(), SamplerError> {
        let events = self.counting().chain(&self.others);
        let mut events = events.chain([&self.owner]);
        events.try_for_each(|event| ioctl::disable(self.cpu, event))
    }

    /// Changes the rate of the events that are not sampled by a fixed period. `value`: the new one by the event's index, as
    /// PERF_EVENT_IOC_PERIOD takes it.
    pub fn set_rate(&self, value: impl Fn(usize) -> u64) -> Result<(), SamplerError> {
        let counters = self.counters.iter();
        for counter in counters.filter(|counter| counter.samples && counter.period.is_none()) {
            let value = value(counter.event);
            ioctl::set_period(self.cpu, &counter.fd, value)?;
        }
        Ok(())
    }

    fn counting(&self) -> impl Iterator<Item = &OwnedFd> {
        self.counters.iter().map(|counter| &counter.fd)
    }
}

/// CPUs that are online: `0-3,5` of sysfs.
pub fn online_cpus() -> Result<Vec<u32>, SamplerError> {
    let text =
        std::fs::read_to_string("/sys/devices/system/cpu/online").map_err(SamplerError::Cpus)?;
    cpu_list(&text).ok_or_else(|| {
        let what = format!("'{}' is no list", text.trim());
        SamplerError::Cpus(io::Error::new(io::ErrorKind::InvalidData, what))
    })
}
