//! The perf ring of one CPU and the events that write into it.

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
    /// The CPU's number.
    pub cpu: u32,
    /// The ring that its events write into.
    pub ring: Ring,
    /// The event that the ring was mapped from; the others redirect to it.
    pub owner: OwnedFd,
    /// The sampled and counted events.
    pub counters: Vec<Counter>,
    /// Other events.
    pub others: Vec<OwnedFd>,
    /// Indices of the events that this CPU does not count, and the reasons.
    pub absent: Vec<Absent>,
}

impl Cpu {
    /// Maps the ring of an event of the CPU with `pages` pages, or fewer if the kernel refuses that many. `open` opens the event for a
    /// ring of the given number of pages.
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

    /// Redirects the event's records to the ring.
    pub fn redirect(&self, event: &OwnedFd) -> Result<(), SamplerError> {
        ioctl::set_output(self.cpu, event, &self.owner)
    }

    /// Enables all events.
    pub fn enable(&self) -> Result<(), SamplerError> {
        let events = self.others.iter().chain(self.counting());
        let mut events = events.chain([&self.owner]);
        events.try_for_each(|event| ioctl::enable(self.cpu, event))
    }

    /// Disables all events. The events that carry the shim's records are disabled after the sampled ones: a disabled event would count
    /// such records as lost.
    pub fn disable(&self) -> Result<(), SamplerError> {
        let events = self.counting().chain(&self.others);
        let mut events = events.chain([&self.owner]);
        events.try_for_each(|event| ioctl::disable(self.cpu, event))
    }

    /// Changes the rate of the events without a fixed period. `value` returns the new rate for an event's index, as
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

/// Returns the online CPUs, which sysfs lists as `0-3,5`.
pub fn online_cpus() -> Result<Vec<u32>, SamplerError> {
    let text =
        std::fs::read_to_string("/sys/devices/system/cpu/online").map_err(SamplerError::Cpus)?;
    cpu_list(&text).ok_or_else(|| {
        let what = format!("'{}' is no list", text.trim());
        SamplerError::Cpus(io::Error::new(io::ErrorKind::InvalidData, what))
    })
}
