//! The sources of samples: one file for each; this file has what they share.

mod bpf;
mod choose;
mod hits;
mod module;
mod off_cpu;
mod stack_copy;
mod trace_callers;

pub use choose::{ShimKind, choose};

use super::decode::{Origin, STACK_COPY_SAMPLE, SamplePool, Stamped, regs_mask};
use super::event::jvm::Libjvm;
use super::groups::Counter;
use super::open::{base_attr, open};
use super::{Cpu, SamplerError, SamplerOptions};
use bpf::Bpf;
use module::Module;
use stack_copy::StackCopy;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use varid_model::{Pid, Tid, perf};
use varid_shim::{Target, Walker, target_flags};

/// A source of samples.
#[derive(Debug)]
pub enum Source {
    /// The shim as a BPF program, on every CPU.
    Bpf(Box<Bpf>),
    /// The shim as a kernel module, on every CPU.
    Module(Box<Module>),
    /// perf's copies of registers and stack, thread by thread.
    StackCopy(StackCopy),
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Source::Bpf(_) => "bpf",
            Source::Module(_) => "module",
            Source::StackCopy(_) => "perf",
        })
    }
}

impl Source {
    /// The source's name in a recording.
    pub fn kind(&self) -> varid_recording::SampleSource {
        match self {
            Source::Bpf(_) => varid_recording::SampleSource::Bpf,
            Source::Module(_) => varid_recording::SampleSource::Module,
            Source::StackCopy(_) => varid_recording::SampleSource::Perf,
        }
    }

    /// Returns true if it samples whole CPUs and reports every process. Other sources must be attached to each thread.
    pub fn is_system_wide(&self) -> bool {
        match self {
            Source::Bpf(_) | Source::Module(_) => true,
            Source::StackCopy(_) => false,
        }
    }

    /// Returns the number of records lost for lack of space in the source's own rings, or None if it has no rings.
    pub fn no_space(&self) -> Result<Option<u64>, SamplerError> {
        match self {
            Source::Bpf(bpf) => bpf.no_space().map(Some),
            Source::Module(module) => module.no_space().map(Some),
            Source::StackCopy(_) => Ok(None),
        }
    }

    /// Loads what these events need, before any of them is opened.
    pub(super) fn prepare(&mut self, options: &SamplerOptions) -> Result<(), SamplerError> {
        match self {
            Source::Bpf(bpf) => bpf.prepare(options),
            Source::Module(_) | Source::StackCopy(_) => {
                let mut events = options.groups.iter().flat_map(|group| &group.events);
                match events.find(|event| event.needs_bpf()) {
                    Some(event) => Err(SamplerError::NeedsBpf {
                        event: event.name.clone(),
                    }),
                    None => Ok(()),
                }
            }
        }
    }

    /// Opens what the source needs on a CPU. Nothing counts yet.
    pub(super) fn open_cpu(
        &mut self,
        options: &SamplerOptions,
        cpu: u32,
    ) -> Result<Cpu, SamplerError> {
        match self {
            Source::Bpf(bpf) => bpf.open_cpu(options, cpu),
            Source::Module(module) => module.open_cpu(options, cpu),
            Source::StackCopy(_) => stack_copy::open_cpu(options, cpu),
        }
    }

    /// Returns the event whose samples have this identifier of the kernel, or None if it is not of this source.
    pub(super) fn origin(&self, id: u64) -> Option<Origin> {
        match self {
            Source::Bpf(bpf) => bpf.origin(id),
            Source::StackCopy(copy) => copy.origin(id),
            Source::Module(_) => None, // its records have their own rings
        }
    }

    /// Starts sampling that the events of each CPU do not trigger.
    pub(super) fn enable(&mut self) -> Result<(), SamplerError> {
        match self {
            Source::Module(module) => module.enable(),
            Source::Bpf(bpf) => bpf.enable(),
            Source::StackCopy(_) => Ok(()),
        }
    }

    /// Stops sampling.
    pub(super) fn disable(&mut self) -> Result<(), SamplerError> {
        match self {
            Source::Module(module) => module.disable(),
            Source::Bpf(bpf) => bpf.disable(),
            Source::StackCopy(_) => Ok(()),
        }
    }

    /// The descriptor that is readable when rings of the source's own fill up.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Source::Module(module) => Some(module.descriptor()),
            Source::Bpf(bpf) => Some(bpf.descriptor()),
            Source::StackCopy(_) => None,
        }
    }

    /// Takes the records of the source's own rings.
    pub(super) fn drain(&mut self, pending: &mut Vec<Stamped>, spare: &mut SamplePool) {
        match self {
            Source::Module(module) => module.drain(pending, spare),
            Source::Bpf(bpf) => bpf.drain(pending, spare),
            Source::StackCopy(_) => {}
        }
    }

    /// Takes the records that no later record will complete, after the last drain.
    pub(super) fn finish(&mut self, pending: &mut Vec<Stamped>) {
        if let Source::Bpf(bpf) = self {
            bpf.finish(pending);
        }
    }

    /// Returns notes for the user about the samples, as sentences.
    pub fn notes(&self) -> Vec<String> {
        match self {
            Source::Bpf(bpf) => bpf.notes(),
            Source::Module(_) | Source::StackCopy(_) => Vec::new(),
        }
    }

    /// Returns the programs that must be loaded before the frames of the targets that need them can be walked.
    pub(super) fn walkers(&self) -> Vec<Walker> {
        match self {
            Source::Bpf(bpf) => bpf.walkers(),
            Source::Module(_) | Source::StackCopy(_) => Vec::new(),
        }
    }

    /// Also samples HotSpot's events in this library. Sources without such events have none to sample.
    pub(super) fn add_libjvm(&mut self, library: &Libjvm<'_>) -> Result<(), SamplerError> {
        match self {
            Source::Bpf(bpf) => bpf.add_libjvm(library),
            Source::Module(_) | Source::StackCopy(_) => Ok(()),
        }
    }

    /// Sets how a process is sampled.
    pub(super) fn set_target(
        &mut self,
        options: &SamplerOptions,
        pid: Pid,
        target: &Target,
    ) -> Result<(), SamplerError> {
        match self {
            Source::Bpf(bpf) => bpf.set_target(pid, &with_options(options, target)),
            Source::Module(module) => module.set_target(pid, &with_options(options, target)),
            Source::StackCopy(_) => Ok(()),
        }
    }

    /// Removes the target of a process, which is sampled by the default target again.
    pub(super) fn remove_target(&mut self, pid: Pid) -> Result<(), SamplerError> {
        match self {
            Source::Bpf(bpf) => bpf.remove_target(pid),
            Source::Module(module) => module.remove_target(pid),
            Source::StackCopy(copy) => {
                copy.ended(pid);
                Ok(())
            }
        }
    }

    /// Sets how processes without a target of their own are sampled.
    pub(super) fn set_default_target(
        &mut self,
        options: &SamplerOptions,
        target: &Target,
    ) -> Result<(), SamplerError> {
        match self {
            Source::Bpf(bpf) => bpf.set_default_target(&with_options(options, target)),
            Source::Module(module) => module.set_default_target(&with_options(options, target)),
            Source::StackCopy(_) => Ok(()),
        }
    }

    /// Attaches a source that is not system-wide to a thread of a process and to all threads that it will start. A thread that has ended
    /// meanwhile is not an error.
    pub(super) fn add_thread(
        &mut self,
        options: &SamplerOptions,
        pid: Pid,
        tid: Tid,
        cpus: &mut [Cpu],
    ) -> Result<(), SamplerError> {
        match self {
            Source::Bpf(_) | Source::Module(_) => Ok(()),
            Source::StackCopy(copy) => copy.add_thread(options, pid, tid, cpus),
        }
    }

    /// Returns true if the threads of a process are sampled: the source is system-wide, or attached to the process or to one that forked
    /// it.
    pub fn samples(&self, pid: Pid) -> bool {
        match self {
            Source::Bpf(_) | Source::Module(_) => true,
            Source::StackCopy(copy) => copy.samples(pid),
        }
    }

    /// Reports that a process has forked another.
    pub(super) fn forked(&mut self, parent: Pid, child: Pid) {
        if let Source::StackCopy(copy) = self {
            copy.forked(parent, child);
        }
    }

    /// Detaches from a process, if the source was attached to it. Returns the counters that sampled it, by CPU, which close when dropped,
    /// and the other processes that they sampled.
    pub(super) fn detach(&mut self, pid: Pid, cpus: &mut [Cpu]) -> (Vec<(u32, Counter)>, Vec<Pid>) {
        match self {
            Source::Bpf(_) | Source::Module(_) => (Vec::new(), Vec::new()),
            Source::StackCopy(copy) => copy.detach(pid, cpus),
        }
    }
}

fn with_options(options: &SamplerOptions, target: &Target) -> Target {
    let keep_raw = if options.keep_raw {
        target_flags::KEEP_RAW
    } else {
        0
    };
    Target {
        flags: target.flags | keep_raw,
        ..target.clone()
    }
}

/// Adds to an event's attribute the fields of samples that are kept beside the shim's records.
pub(super) fn raw_shape(attr: &mut perf::EventAttr, options: &SamplerOptions) {
    attr.sample_type |= STACK_COPY_SAMPLE;
    attr.sample_regs_user = regs_mask();
    attr.sample_stack_user = options.raw_stack;
    if options.raw_stack == 0 {
        attr.sample_type &= !u64::from(perf::PERF_SAMPLE_STACK_USER);
    } else {
        // A reader unwinds the stack, so the kernel's user callchain would be redundant.
        attr.set_exclude_callchain_user(true);
    }
}

/// Reports mappings, names, forks and exits with the samples.
fn side_band(attr: &mut perf::EventAttr) {
    attr.set_mmap(true);
    attr.set_mmap_data(true);
    attr.set_mmap2(true);
    attr.set_comm(true);
    attr.set_comm_exec(true);
    attr.set_task(true);
}

/// Maps a CPU's ring, of `pages` pages or fewer. The ring belongs to an event that counts nothing; errors call it `name`. `shape` sets what
/// the event reports, and `pid` for which process (-1: all).
fn map_ring(
    cpu: u32,
    pid: i32,
    pages: usize,
    name: &str,
    shape: impl Fn(&mut perf::EventAttr),
) -> Result<Cpu, SamplerError> {
    Cpu::with_ring(cpu, pages, |pages| {
        let mut attr = base_attr(
            perf::PERF_TYPE_SOFTWARE,
            u64::from(perf::PERF_COUNT_SW_DUMMY),
        );
        shape(&mut attr);
        // Wakes the reader when a quarter of the ring is full.
        attr.set_watermark(true);
        attr.wakeup_watermark = (pages as u32).saturating_mul(1024);
        open_own(attr, cpu, pid, name)
    })
}

/// Opens an event that carries varid's own records and is not one of the session's events.
fn open_own(
    mut attr: perf::EventAttr,
    cpu: u32,
    pid: i32,
    name: &str,
) -> Result<OwnedFd, SamplerError> {
    open(&mut attr, pid, cpu as i32, None).map_err(|source| open_error(name, cpu, source))
}

/// Makes the error for an event of a CPU that was not opened. The event belongs to no thread and no group.
fn open_error(event: &str, cpu: u32, source: io::Error) -> SamplerError {
    SamplerError::Open {
        event: event.to_owned(),
        cpu,
        thread: None,
        member: false,
        source,
    }
}
