//! Where do samples come from? One file for each source; this one is what they have in common.

mod bpf;
mod choose;
mod hits;
mod module;
mod off_cpu;
mod stack_copy;
mod trace_callers;

pub use choose::{ShimKind, choose};

use super::decode::{Origin, STACK_COPY_SAMPLE, SamplePool, Stamped, regs_mask};
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

/// Where samples come from.
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
    /// The source as the recording names it.
    pub fn kind(&self) -> varid_recording::SampleSource {
        match self {
            Source::Bpf(_) => varid_recording::SampleSource::Bpf,
            Source::Module(_) => varid_recording::SampleSource::Module,
            Source::StackCopy(_) => varid_recording::SampleSource::Perf,
        }
    }

    /// Whether it samples whole CPUs and reports every process. Otherwise it has to be attached to each thread.
    pub fn is_system_wide(&self) -> bool {
        match self {
            Source::Bpf(_) | Source::Module(_) => true,
            Source::StackCopy(_) => false,
        }
    }

    /// How many records found no room in rings of the source's own; None: it has none.
    pub fn no_space(&self) -> Result<Option<u64>, SamplerError> {
        match self {
            Source::Bpf(bpf) => bpf.no_space().map(Some),
            Source::Module(module) => module.no_space().map(Some),
            Source::StackCopy(_) => Ok(None),
        }
    }

    /// Loads what these events need, before any is opened.
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

    /// Opens what the source needs on a CPU; nothing counts yet.
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

    /// What the samples are that have this identifier of the kernel's; None: they are not of this source.
    pub(super) fn origin(&self, id: u64) -> Option<Origin> {
        match self {
            Source::Bpf(bpf) => bpf.origin(id),
            Source::StackCopy(copy) => copy.origin(id),
            Source::Module(_) => None, // its records have rings of their own
        }
    }

    /// Starts sampling, besides the events of each CPU.
    pub(super) fn enable(&mut self) -> Result<(), SamplerError> {
        match self {
            Source::Module(module) => module.enable(),
            Source::Bpf(bpf) => bpf.enable(),
            Source::StackCopy(_) => Ok(()),
        }
    }

    /// Ends sampling.
    pub(super) fn disable(&mut self) -> Result<(), SamplerError> {
        match self {
            Source::Module(module) => module.disable(),
            Source::Bpf(bpf) => bpf.disable(),
            Source::StackCopy(_) => Ok(()),
        }
    }

    /// Readable when rings of the source's own fill up.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Source::Module(module) => Some(module.descriptor()),
            Source::Bpf(bpf) => Some(bpf.descriptor()),
            Source::StackCopy(_) => None,
        }
    }

    /// Takes the records of rings of the source's own.
    pub(super) fn drain(&mut self, pending: &mut Vec<Stamped>, spare: &mut SamplePool) {
        match self {
            Source::Module(module) => module.drain(pending, spare),
            Source::Bpf(bpf) => bpf.drain(pending, spare),
            Source::StackCopy(_) => {}
        }
    }

    /// Takes what no record will complete, after the last drain.
    pub(super) fn finish(&mut self, pending: &mut Vec<Stamped>) {
        if let Source::Bpf(bpf) = self {
            bpf.finish(pending);
        }
    }

    /// What the session's user should know of the samples, as sentences.
    pub fn notes(&self) -> Vec<String> {
        match self {
            Source::Bpf(bpf) => bpf.notes(),
            Source::Module(_) | Source::StackCopy(_) => Vec::new(),
        }
    }

    /// The programs that have to be loaded before the frames of targets are walked that need them.
    pub(super) fn walkers(&self) -> Vec<Walker> {
        match self {
            Source::Bpf(bpf) => bpf.walkers(),
            Source::Module(_) | Source::StackCopy(_) => Vec::new(),
        }
    }

    /// Says how a process is sampled.
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

    /// A process is sampled as those of which nothing is said.
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

    /// Says how processes are sampled that have no target of their own.
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

    /// Attaches to a thread of a process and to all that it will start, if the source is not system-wide. A thread that has ended
    /// meanwhile is no error.
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

    /// Whether the threads of a process are sampled: the source is system-wide, or attached to the process or to one that forked it.
    pub fn samples(&self, pid: Pid) -> bool {
        match self {
            Source::Bpf(_) | Source::Module(_) => true,
            Source::StackCopy(copy) => copy.samples(pid),
        }
    }

    /// A process has forked another.
    pub(super) fn forked(&mut self, parent: Pid, child: Pid) {
        if let Source::StackCopy(copy) = self {
            copy.forked(parent, child);
        }
    }

    /// Detaches from a process, if the source was attached to it. The counters that sampled it, by CPU, which are closed when they are
    /// dropped; and the other processes that they sampled.
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

/// Adds to an event what its samples hold if they are kept beside the shim's records.
pub(super) fn raw_shape(attr: &mut perf::EventAttr, options: &SamplerOptions) {
    attr.sample_type |= STACK_COPY_SAMPLE;
    attr.sample_regs_user = regs_mask();
    attr.sample_stack_user = options.raw_stack;
    if options.raw_stack == 0 {
        attr.sample_type &= !u64::from(perf::PERF_SAMPLE_STACK_USER);
    } else {
        // A reader unwinds the stack: a callchain of the kernel's would be a second one.
        attr.set_exclude_callchain_user(true);
    }
}

/// Mappings, names, forks and exits are reported with the samples.
fn side_band(attr: &mut perf::EventAttr) {
    attr.set_mmap(true);
    attr.set_mmap_data(true);
    attr.set_mmap2(true);
    attr.set_comm(true);
    attr.set_comm_exec(true);
    attr.set_task(true);
}

/// Maps a CPU's ring, of `pages` pages or fewer. It belongs to an event that counts nothing, which errors call `name`; `shape` says what it
/// reports, and `pid` of which process (-1: of all).
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
        // The reader is woken when a quarter of the ring is full.
        attr.set_watermark(true);
        attr.wakeup_watermark = (pages as u32).saturating_mul(1024);
        open_own(attr, cpu, pid, name)
    })
}

/// Opens an event that carries records of varid's own, and is not one of the session's.
fn open_own(
    mut attr: perf::EventAttr,
    cpu: u32,
    pid: i32,
    name: &str,
) -> Result<OwnedFd, SamplerError> {
    open(&mut attr, pid, cpu as i32, None).map_err(|source| open_error(name, cpu, source))
}

/// An event of a CPU, which belongs to no thread and no group, was not opened.
fn open_error(event: &str, cpu: u32, source: io::Error) -> SamplerError {
    SamplerError::Open {
        event: event.to_owned(),
        cpu,
        thread: None,
        member: false,
        source,
    }
}
