//! The shim as a kernel module: it opens the counters itself and fills its own rings. The kernel's records of mappings, names,
//! forks and exits come from an event that counts nothing.

use super::{map_ring, open_error, side_band};
use crate::decode::{self, Origin, RingEvent, SampleKind, SamplePool, Stamped};
use crate::event::{Event, Group, Rate};
use crate::groups::Times;
use crate::ring::Ring;
use crate::{Cpu, SamplerError, SamplerOptions, monotonic_ns};
use std::os::fd::{AsFd, BorrowedFd};
use varid_model::Pid;
use varid_model::perf::RECORD_HEADER;
use varid_shim::{Counter, MODULE_RECORD, Module as Device, ModuleCounts, Target};

/// A session with the module.
#[derive(Debug)]
pub struct Module {
    device: Device,
    /// True if the module has begun a session.
    begun: bool,
    /// By CPU, in the order of opening.
    rings: Vec<Ring>,
    /// The module's ids of the CPUs' counters.
    counters: Vec<u32>,
    /// The module's counts at the last drain.
    drained: ModuleCounts,
}

impl Module {
    /// Returns a source with nothing open.
    pub fn new(device: Device) -> Self {
        Self {
            device,
            begun: false,
            rings: Vec::new(),
            counters: Vec::new(),
            drained: ModuleCounts::default(),
        }
    }

    /// Opens the counter in the kernel with its ring, if the CPU counts the event, and the event that reports processes.
    pub fn open_cpu(&mut self, options: &SamplerOptions, cpu: u32) -> Result<Cpu, SamplerError> {
        let event = only_event(&options.groups)?;
        let counter = self.open_counter(event, options, cpu);
        // The event's ring carries no samples.
        let pages = (options.ring_pages / 4).max(1);
        let mut opened = map_ring(cpu, -1, pages, &event.name, side_band)?;
        match counter {
            Err(error) if error.is_absence() => opened.absent.push((0, error)),
            counter => counter?,
        }
        Ok(opened)
    }

    fn open_counter(
        &mut self,
        event: &Event,
        options: &SamplerOptions,
        cpu: u32,
    ) -> Result<(), SamplerError> {
        let attr = event.attr_on(cpu).ok_or_else(|| SamplerError::NotOnCpu {
            event: event.name.clone(),
            cpu,
        })?;
        let ring_pages = u32::try_from(options.ring_pages).unwrap_or(u32::MAX);
        if !std::mem::replace(&mut self.begun, true) {
            self.device
                .begin(ring_pages, options.raw_stack, decode::regs_mask())?;
        }
        let (rate, frequency) = match event.rate {
            Rate::Frequency(hz) => (hz, true),
            Rate::Period(period) => (period, false),
        };
        let counter = Counter {
            cpu,
            kind: attr.type_,
            config: attr.config,
            config1: attr.config1,
            config2: attr.config2,
            rate,
            frequency,
            exclude_user: event.modifiers.exclude_user,
            exclude_kernel: event.modifiers.exclude_kernel,
            jitter: true,
        };
        let id = self
            .device
            .add_counter(&counter)
            .map_err(|error| open_error(&event.name, cpu, error))?;
        self.counters.push(id);
        let ring = Ring::map_nth(self.device.as_fd(), options.ring_pages, cpu as usize);
        self.rings.push(ring.map_err(|source| SamplerError::Map {
            cpu,
            pages: options.ring_pages,
            source,
        })?);
        Ok(())
    }

    /// Returns the index of the event if any CPU counts it.
    pub fn present(&self) -> Option<usize> {
        (!self.counters.is_empty()).then_some(0)
    }

    /// The descriptor that is readable when a ring is a quarter full.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }

    /// Enables all counters.
    pub fn enable(&self) -> Result<(), SamplerError> {
        Ok(self.device.enable()?)
    }

    /// Disables all counters.
    pub fn disable(&self) -> Result<(), SamplerError> {
        Ok(self.device.disable()?)
    }

    /// Sets how a process is sampled.
    pub fn set_target(&self, pid: Pid, target: &Target) -> Result<(), SamplerError> {
        Ok(self.device.set_target(pid.get(), target)?)
    }

    /// Removes the target of a process.
    pub fn remove_target(&self, pid: Pid) -> Result<(), SamplerError> {
        Ok(self.device.remove_target(pid.get())?)
    }

    /// Sets how processes without a target of their own are sampled.
    pub fn set_default_target(&self, target: &Target) -> Result<(), SamplerError> {
        Ok(self.device.admit_everyone(target)?)
    }

    /// Returns how long the event was counted, on all CPUs.
    pub fn times(&self) -> Times {
        let mut sum = Times::default();
        for counter in &self.counters {
            match self.device.value(*counter) {
                Ok(value) => {
                    sum.enabled_ns = sum.enabled_ns.saturating_add(value.enabled);
                    sum.running_ns = sum.running_ns.saturating_add(value.running);
                }
                Err(error) => tracing::error!(%error),
            }
        }
        sum
    }

    /// Returns the number of records lost for lack of space.
    pub fn no_space(&self) -> Result<u64, SamplerError> {
        Ok(self.device.counts()?.no_space)
    }

    /// Takes the records of the rings, and what the module has counted since the last drain.
    pub fn drain(&mut self, pending: &mut Vec<Stamped>, spare: &mut SamplePool) {
        for ring in &mut self.rings {
            let drained = ring.drain(|bytes| pending.extend(decoded(bytes, spare)));
            pending.extend(drained.is_err().then(Stamped::malformed));
        }
        let counts = match self.device.counts() {
            Ok(counts) => counts,
            Err(error) => return tracing::error!(%error),
        };
        let time = monotonic_ns();
        let lost = counts.no_space.saturating_sub(self.drained.no_space);
        if lost > 0 {
            let event = RingEvent::Lost(lost);
            pending.push(Stamped { time, event });
        }
        for _ in self.drained.throttled..counts.throttled {
            let event = RingEvent::Throttle;
            pending.push(Stamped { time, event });
        }
        self.drained = counts;
    }
}

/// Returns the event, if the module can sample the groups. The module's records do not contain the event, so it must be the only
/// one.
pub fn only_event(groups: &[Group]) -> Result<&Event, SamplerError> {
    let mut events = groups.iter().flat_map(|group| &group.events);
    let (Some(event), None) = (events.next(), events.next()) else {
        return Err(SamplerError::OneEvent);
    };
    let modifiers = event.modifiers.other_than_user_and_kernel();
    if modifiers.is_empty() {
        Ok(event)
    } else {
        Err(SamplerError::ModuleModifiers {
            event: event.name.clone(),
            modifiers,
        })
    }
}

/// Decodes a record of the module's ring: the module's own kind, or a raw sample in perf's form. Returns None for other records.
fn decoded(bytes: &[u8], spare: &mut SamplePool) -> Option<Stamped> {
    if !bytes.starts_with(&MODULE_RECORD.to_le_bytes()) {
        let raw = Origin {
            event: 0,
            kind: SampleKind::Raw,
            period: None,
            reads: false,
        };
        return decode::decode(bytes, |_| Some(raw), spare).map(|(stamped, _)| stamped);
    }
    let record = bytes.get(RECORD_HEADER..).unwrap_or_default();
    Some(spare.sample(0, record))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::resolve;

    #[test]
    fn what_the_module_cannot_sample_is_refused_by_its_letters() {
        let resolved = |text| {
            let groups = resolve([text], Rate::Period(7), &[]).unwrap().groups;
            only_event(&groups)
                .map(|event| event.name.clone())
                .map_err(|error| error.to_string())
        };
        for text in ["cpu-clock", "cpu-clock:u", "cpu-clock:uk"] {
            assert_eq!(resolved(text).unwrap(), text);
        }
        for (text, letters) in [
            ("r11:pp", "'p'"),
            ("cpu-clock:uID", "'ID'"),
            ("r11:h", "'h'"),
        ] {
            let error = resolved(text).unwrap_err();
            assert!(error.contains(&format!("modifiers {letters}")), "{error}");
        }
        for text in ["cpu-clock,page-faults", "{cpu-clock,page-faults}:S"] {
            assert!(resolved(text).unwrap_err().contains("one event at a time"));
        }
    }
}
