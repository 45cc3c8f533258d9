//! perf's own copies of registers and stack: events per thread and CPU, no privileges.

use super::{side_band, watermark};
use crate::decode::{Origin, STACK_COPY_SAMPLE, SampleKind, regs_mask};
use crate::groups::{Counter, Opened, Spot, check_presence, open_groups};
use crate::ioctl::enable;
use crate::open::{base_attr, open};
use crate::{Cpu, SamplerError, SamplerOptions};
use varid_model::ById;
use varid_model::perf;

/// What was found out while events were opened.
#[derive(Debug, Default)]
pub struct StackCopy {
    /// Only user code may be sampled.
    exclude_kernel: bool,
    /// What the kernel's identifiers of events mean.
    origins: ById<u64, Origin>,
    /// For whose threads each was opened that still is.
    opened_for: ById<u64, u32>,
    /// Which process's events sample a process: its own, or those that it got when it was forked.
    sampled_by: ById<u32, u32>,
}

/// A ring that events of threads will share.
pub fn open_cpu(options: &SamplerOptions, cpu: u32) -> Result<Cpu, SamplerError> {
    let mut attr = base_attr(
        perf::PERF_TYPE_SOFTWARE,
        u64::from(perf::PERF_COUNT_SW_DUMMY),
    );
    attr.set_exclude_kernel(true);
    watermark(&mut attr, 16);
    let owner = open(&mut attr, 0, cpu as i32, None).map_err(|source| SamplerError::Open {
        event: "dummy".to_owned(),
        cpu,
        thread: None,
        member: false,
        source,
    })?;
    Cpu::with_ring(cpu, owner, options.ring_pages)
}

impl StackCopy {
    /// Whose sample has this identifier; a thread's children have the identifiers of its own.
    pub fn origin(&self, id: u64) -> Option<Origin> {
        self.origins.get(&id).copied()
    }

    /// Whether events are open that sample a process.
    pub fn samples(&self, pid: u32) -> bool {
        self.sampled_by.contains_key(&pid)
    }

    /// A process that is forked has events of its parent's.
    pub fn forked(&mut self, parent: u32, child: u32) {
        match self.sampled_by.get(&parent).copied() {
            Some(by) => self.sampled_by.insert(child, by),
            None => self.sampled_by.remove(&child),
        };
    }

    /// A process has ended; the events that were opened for it sample those that it forked.
    pub fn ended(&mut self, pid: u32) {
        self.sampled_by.remove(&pid);
    }

    /// Closes the events that sample a process: those, with their CPUs, and the other processes
    /// that they sampled. What has an event of a parent's cannot be rid of it alone.
    pub fn let_go(&mut self, pid: u32, cpus: &mut [Cpu]) -> (Vec<(u32, Counter)>, Vec<u32>) {
        let Some(by) = self.sampled_by.remove(&pid) else {
            return (Vec::new(), Vec::new());
        };
        let mut closed = Vec::new();
        for cpu in cpus {
            let counters = std::mem::take(&mut cpu.counters);
            let is_its = |counter: &Counter| self.opened_for.get(&counter.id) == Some(&by);
            let (its, others) = counters.into_iter().partition(is_its);
            cpu.counters = others;
            let its: Vec<Counter> = its;
            closed.extend(its.into_iter().map(|counter| (cpu.cpu, counter)));
        }
        self.opened_for.retain(|_, of| *of != by);
        let mut others: Vec<u32> = self.sampled_by.keys().copied().collect();
        others.retain(|other| self.sampled_by.get(other) == Some(&by));
        self.sampled_by.retain(|_, of| *of != by);
        (closed, others)
    }

    /// Samples a process's thread and all that it will create, if it still runs.
    pub fn add_thread(
        &mut self,
        options: &SamplerOptions,
        (pid, tid): (u32, u32),
        cpus: &mut [Cpu],
    ) -> Result<(), SamplerError> {
        let (mut present, mut absent) = (Vec::new(), Vec::new());
        for cpu in cpus {
            let spot = Spot {
                cpu: cpu.cpu,
                thread: Some(tid),
            };
            let opened = match self.open_thread(options, spot) {
                Err(SamplerError::Open { source, .. })
                    if source.raw_os_error() == Some(libc::ESRCH) =>
                {
                    continue;
                }
                opened => opened?,
            };
            absent.extend(opened.absent);
            for counter in opened.counters {
                let origin = Origin {
                    event: counter.event,
                    kind: SampleKind::StackCopy,
                    period: counter.period,
                    reads: counter.reads,
                };
                self.origins.insert(counter.id, origin);
                self.opened_for.insert(counter.id, pid);
                self.sampled_by.insert(pid, pid);
                present.push(counter.event);
                cpu.redirect(&counter.fd)?;
                enable(cpu.cpu, &counter.fd)?;
                cpu.counters.push(counter);
            }
        }
        check_presence(&present, absent)
    }

    fn open_thread(
        &mut self,
        options: &SamplerOptions,
        spot: Spot,
    ) -> Result<Opened, SamplerError> {
        let mut events = options.groups.iter().flat_map(|group| &group.events);
        let only_kernel = events.any(|event| event.modifiers.exclude_user);
        loop {
            let mut tracks = true;
            let opened = open_groups(&options.groups, spot, |attr| {
                // One tells of mappings, names, forks and exits.
                if std::mem::take(&mut tracks) {
                    side_band(attr);
                }
                attr.set_inherit(true);
                attr.set_exclude_callchain_user(true);
                attr.sample_type |= STACK_COPY_SAMPLE;
                attr.sample_regs_user = regs_mask();
                attr.sample_stack_user = options.stack_copy;
                if self.exclude_kernel {
                    attr.set_exclude_kernel(true);
                }
            });
            match opened {
                Err(SamplerError::Open { source, .. })
                    if source.raw_os_error() == Some(libc::EACCES)
                        && !self.exclude_kernel
                        && !only_kernel =>
                {
                    tracing::warn!(
                        "no permission to sample the kernel: only user code will be seen"
                    );
                    self.exclude_kernel = true;
                }
                other => return other,
            }
        }
    }
}
