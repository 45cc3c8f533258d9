//! The shim as a BPF program on the events of each CPU.
//!
//! Its records have a ring of their own. If the kernel's own samples are kept, the records go to their ring instead: the record of an
//! overflow precedes the kernel's sample of it, and is in order with mappings, names, forks and exits.

use super::hits::Hits;
use super::off_cpu::OffCpu;
use super::trace_callers::TraceCallers;
use super::{map_ring, open_own, raw_shape, side_band};
use crate::decode::{Origin, RingEvent, SampleKind, SamplePool, Stamped};
use crate::event::jvm::Libjvm;
use crate::groups::{Scope, indexed_events, open_groups};
use crate::ioctl::identifier;
use crate::open::base_attr;
use crate::{Cpu, SamplerError, SamplerOptions};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::os::fd::{AsFd, BorrowedFd};
use varid_model::{ById, Pid, perf};
use varid_shim::{Shim, Target, Walker};

/// The loaded shim.
#[derive(Debug)]
pub struct Bpf {
    /// One shim for each sampled event, by its index. Records do not contain the event, so each event has its own shim.
    shims: Vec<(usize, Shim)>,
    /// The tracepoints and probes, by their events' indices.
    hits: Vec<(usize, Hits)>,
    /// The kernel functions that call the shims of tracepoints.
    callers: TraceCallers,
    /// Records the off-CPU time of threads, if an event needs it.
    off_cpu: Option<OffCpu>,
    /// The events, by the kernel's identifiers.
    origins: ById<u64, Origin>,
    /// Pages for each CPU of a shim's own ring.
    ring_pages: usize,
    /// Readable when rings of the shims fill up.
    filling: Epoll,
}

impl Bpf {
    /// Returns a source with a loaded shim that has `ring_pages` pages of ring for each CPU. No event is open yet.
    pub fn new(shim: Shim, ring_pages: usize) -> Result<Self, SamplerError> {
        Ok(Self {
            shims: vec![(0, shim)],
            hits: Vec::new(),
            callers: TraceCallers::default(),
            off_cpu: None,
            origins: ById::default(),
            ring_pages,
            filling: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(watch_error)?,
        })
    }

    /// Loads the shims of these events.
    pub fn prepare(&mut self, options: &SamplerOptions) -> Result<(), SamplerError> {
        let mut spare = self.shims.pop().map(|(_, shim)| shim);
        self.off_cpu = OffCpu::load(options)?;
        if let Some(off_cpu) = &self.off_cpu {
            self.watch(off_cpu.descriptor())?;
        }
        for one in indexed_events(&options.groups) {
            if let Some(source) = &one.event.hits {
                let (shim, hits) = Hits::load(source, one.event, self.ring_pages)?;
                self.watch(shim.descriptor())?;
                if hits.are_of_tracepoint() && self.callers.are_unknown() {
                    self.callers = TraceCallers::running();
                }
                self.hits.push((one.index, hits));
                self.shims.push((one.index, shim));
            }
            if !one.event.is_opened() {
                continue;
            }
            let reads = one.group.reads;
            let shim = match spare.take() {
                // Members are also read with the samples of other processes. Without those samples, the counts of other processes would
                // be attributed to the next sample of the target.
                _ if reads && one.is_leader => Shim::load_keeping_all()?,
                _ if reads => continue,
                Some(shim) => shim,
                None => Shim::load(self.ring_pages)?,
            };
            self.watch(shim.descriptor())?;
            self.shims.push((one.index, shim));
        }
        Ok(())
    }

    /// A ring is readable while it holds any data, so only the edge is watched.
    fn watch(&self, ring: BorrowedFd<'_>) -> Result<(), SamplerError> {
        let edge = EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, 0);
        self.filling.add(ring, edge).map_err(watch_error)
    }

    /// Also samples HotSpot's events in this library.
    pub fn add_libjvm(&mut self, library: &Libjvm<'_>) -> Result<(), SamplerError> {
        for (index, hits) in &mut self.hits {
            if let Some((_, shim)) = self.shims.iter().find(|(of, _)| of == index) {
                hits.add_libjvm(library, shim)?;
            }
        }
        Ok(())
    }

    /// Starts what perf events do not trigger: tracepoints, probes and off-CPU time.
    pub fn enable(&mut self) -> Result<(), SamplerError> {
        for (index, hits) in &mut self.hits {
            if let Some((_, shim)) = self.shims.iter().find(|(of, _)| of == index) {
                hits.enable(shim)?;
            }
        }
        self.off_cpu.as_mut().map_or(Ok(()), OffCpu::enable)
    }

    /// Stops the same.
    pub fn disable(&mut self) -> Result<(), SamplerError> {
        for (index, hits) in &mut self.hits {
            if let Some((_, shim)) = self.shims.iter().find(|(of, _)| of == index) {
                hits.disable(shim)?;
            }
        }
        self.off_cpu.as_mut().map_or(Ok(()), OffCpu::disable)
    }

    /// Takes the records that no later record will complete.
    pub fn finish(&mut self, pending: &mut Vec<Stamped>) {
        if let Some(off_cpu) = &mut self.off_cpu {
            off_cpu.finish(pending);
        }
    }

    /// Returns notes for the user about the samples.
    pub fn notes(&self) -> Vec<String> {
        let notes = self.off_cpu.as_ref().map(OffCpu::notes);
        notes.unwrap_or_default()
    }

    /// Opens the sampled events, each with a shim, and the event whose ring they write to.
    pub fn open_cpu(&mut self, options: &SamplerOptions, cpu: u32) -> Result<Cpu, SamplerError> {
        let reads = options.groups.iter().any(|group| group.reads);
        let pages = if reads || self.ring_pages == 0 {
            options.ring_pages
        } else {
            (options.ring_pages / 4).max(1) // few samples, or none
        };
        let mut opened = map_ring(cpu, -1, pages, "dummy", side_band)?;
        let scope = Scope { cpu, thread: None };
        let events = open_groups(&options.groups, scope, |attr| {
            if options.keep_raw {
                raw_shape(attr, options);
            } else if attr.sample_type & u64::from(perf::PERF_SAMPLE_READ) != 0 {
                attr.sample_type |= u64::from(perf::PERF_SAMPLE_IP | perf::PERF_SAMPLE_PERIOD);
            }
        })?;
        (opened.counters, opened.absent) = (events.counters, events.absent);
        for counter in &opened.counters {
            let (reads, period) = (counter.reads, counter.period);
            let origin = |kind| Origin {
                event: counter.event,
                kind,
                period,
                reads,
            };
            self.origins.insert(counter.id, origin(SampleKind::Raw));
            let shim = self.shims.iter().find(|(index, _)| *index == counter.event);
            let Some((_, shim)) = shim.filter(|_| counter.samples) else {
                continue;
            };
            opened.redirect(&counter.fd)?;
            let mut attr = base_attr(
                perf::PERF_TYPE_SOFTWARE,
                u64::from(perf::PERF_COUNT_SW_BPF_OUTPUT),
            );
            attr.sample_type |= u64::from(perf::PERF_SAMPLE_RAW);
            attr.sample_period = 1;
            let output = open_own(attr, cpu, -1, "bpf-output")?;
            let id = identifier(cpu, &output)?;
            self.origins.insert(id, origin(SampleKind::Shim));
            shim.attach(cpu, counter.fd.as_fd(), output.as_fd())?;
            opened.redirect(&output)?;
            opened.others.push(output);
        }
        Ok(opened)
    }

    /// Readable when a shim's own ring fills up.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.filling.0.as_fd()
    }

    /// Takes the records of the shims' own rings.
    pub fn drain(&mut self, pending: &mut Vec<Stamped>, spare: &mut SamplePool) {
        // Clears the reported edges: these rings are drained now.
        let _ = self
            .filling
            .wait(&mut [EpollEvent::empty(); 8], EpollTimeout::ZERO);
        for (index, shim) in &mut self.shims {
            let mut hits = self.hits.iter();
            let at_tracepoint = hits.any(|(of, hits)| of == index && hits.are_of_tracepoint());
            shim.drain(|bytes| {
                let mut stamped = spare.sample(*index, bytes);
                if let RingEvent::Sample(sampled) = &mut stamped.event {
                    let record = &mut sampled.record;
                    if at_tracepoint {
                        self.callers.remove_from(&mut record.kernel);
                        record.ip = record.kernel.first().copied().unwrap_or(record.ip);
                    } else if let Some(leaf) = record.kernel.first_mut() {
                        // A precise event's callchain starts where the interrupt arrived.
                        *leaf = record.ip;
                    }
                }
                pending.push(stamped);
            });
        }
        if let Some(off_cpu) = &mut self.off_cpu {
            off_cpu.drain(pending, spare);
        }
    }

    /// Returns the event whose samples have this identifier.
    pub fn origin(&self, id: u64) -> Option<Origin> {
        self.origins.get(&id).copied()
    }

    /// Returns the programs that walk the frames of targets that need them.
    pub fn walkers(&self) -> Vec<Walker> {
        let walkers = self.shims.iter().map(|(_, shim)| shim.walker());
        let of_waits = self.off_cpu.as_ref().map(OffCpu::walker);
        walkers.chain(of_waits).collect()
    }

    /// Sets how a process is sampled.
    pub fn set_target(&mut self, pid: Pid, target: &Target) -> Result<(), SamplerError> {
        let mut shims = self.shims.iter_mut();
        shims.try_for_each(|(_, shim)| shim.set_target(pid.get(), target))?;
        let off_cpu = self.off_cpu.as_mut();
        off_cpu.map_or(Ok(()), |off_cpu| off_cpu.set_target(pid, target))
    }

    /// Removes the target of a process.
    pub fn remove_target(&mut self, pid: Pid) -> Result<(), SamplerError> {
        let mut shims = self.shims.iter_mut();
        shims.try_for_each(|(_, shim)| shim.remove_target(pid.get()))?;
        let off_cpu = self.off_cpu.as_mut();
        off_cpu.map_or(Ok(()), |off_cpu| off_cpu.remove_target(pid))
    }

    /// Sets how processes without a target of their own are sampled.
    pub fn set_default_target(&mut self, target: &Target) -> Result<(), SamplerError> {
        let mut shims = self.shims.iter_mut();
        shims.try_for_each(|(_, shim)| shim.admit_everyone(target))?;
        let off_cpu = self.off_cpu.as_mut();
        off_cpu.map_or(Ok(()), |off_cpu| off_cpu.set_default_target(target))
    }

    /// Returns the number of records lost for lack of space.
    pub fn no_space(&self) -> Result<u64, SamplerError> {
        self.shims.iter().try_fold(0u64, |sum, (_, shim)| {
            Ok(sum.saturating_add(shim.counters()?.no_space))
        })
    }
}

fn watch_error(source: nix::Error) -> SamplerError {
    SamplerError::Watch(source.into())
}
