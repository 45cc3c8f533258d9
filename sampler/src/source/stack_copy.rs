//! perf's own copies of registers and stack: events per thread and CPU, without privileges.

use super::{map_ring, side_band};
use crate::decode::{Origin, STACK_COPY_SAMPLE, SampleKind, regs_mask};
use crate::groups::{Counter, Opened, Scope, check_presence, open_groups};
use crate::ioctl::enable;
use crate::{Cpu, SamplerError, SamplerOptions};
use varid_model::{ById, Pid, Tid};

/// What is known of the opened events.
#[derive(Debug, Default)]
pub struct StackCopy {
    /// True if only user code may be sampled.
    exclude_kernel: bool,
    /// The events, by the kernel's identifiers.
    origins: ById<u64, Origin>,
    /// The process for whose threads an event was opened, by the event's identifier.
    opened_for: ById<u64, Pid>,
    /// The process whose events sample a process: the process itself or one that forked it.
    sampled_by: ById<Pid, Pid>,
}

/// Maps a ring that the events of threads share.
pub fn open_cpu(options: &SamplerOptions, cpu: u32) -> Result<Cpu, SamplerError> {
    map_ring(cpu, 0, options.ring_pages, "dummy", |attr| {
        attr.set_exclude_kernel(true);
    })
}

impl StackCopy {
    /// Returns the event whose samples have this identifier. The inherited events of a thread's children have the same one.
    pub fn origin(&self, id: u64) -> Option<Origin> {
        self.origins.get(&id).copied()
    }

    /// Returns true if open events sample a process.
    pub fn samples(&self, pid: Pid) -> bool {
        self.sampled_by.contains_key(&pid)
    }

    /// Records that a forked process inherits its parent's events.
    pub fn forked(&mut self, parent: Pid, child: Pid) {
        match self.sampled_by.get(&parent).copied() {
            Some(by) => self.sampled_by.insert(child, by),
            None => self.sampled_by.remove(&child),
        };
    }

    /// Removes a process that has ended. The events opened for it continue to sample its children.
    pub fn ended(&mut self, pid: Pid) {
        self.sampled_by.remove(&pid);
    }

    /// Removes the events that sample a process. Returns the events, by CPU, and the other processes that they sampled: an inherited
    /// event cannot be closed for one process alone.
    pub fn detach(&mut self, pid: Pid, cpus: &mut [Cpu]) -> (Vec<(u32, Counter)>, Vec<Pid>) {
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
        let mut others: Vec<Pid> = self.sampled_by.keys().copied().collect();
        others.retain(|other| self.sampled_by.get(other) == Some(&by));
        self.sampled_by.retain(|_, of| *of != by);
        (closed, others)
    }

    /// Attaches to a thread of a process, if it still runs, and to all threads that it will start.
    pub fn add_thread(
        &mut self,
        options: &SamplerOptions,
        pid: Pid,
        tid: Tid,
        cpus: &mut [Cpu],
    ) -> Result<(), SamplerError> {
        let (mut present, mut absent) = (Vec::new(), Vec::new());
        for cpu in cpus {
            let scope = Scope {
                cpu: cpu.cpu,
                thread: Some(tid),
            };
            let opened = match self.open_thread(options, scope) {
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
        scope: Scope,
    ) -> Result<Opened, SamplerError> {
        let mut events = options.groups.iter().flat_map(|group| &group.events);
        let only_kernel = events.any(|event| event.modifiers.exclude_user);
        loop {
            let mut tracks = true;
            let opened = open_groups(&options.groups, scope, |attr| {
                // Only one event reports mappings, names, forks and exits.
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
