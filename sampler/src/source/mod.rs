//! Where samples come from: one file per source, and what all of them can be asked.

mod bpf;
mod choose;
mod module;
mod stack_copy;

pub use choose::{ShimKind, choose};

use super::decode::{Origin, STACK_COPY_SAMPLE, Spare, Stamped, regs_mask};
use super::groups::Counter;
use super::{Cpu, SamplerError, SamplerOptions};
use bpf::Bpf;
use module::Module;
use stack_copy::StackCopy;
use std::os::fd::BorrowedFd;
use varid_model::perf;
use varid_shim::{Target, target_flags};

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
    /// How the recording calls it.
    pub fn kind(&self) -> varid_recording::SampleSource {
        match self {
            Source::Bpf(_) => varid_recording::SampleSource::Bpf,
            Source::Module(_) => varid_recording::SampleSource::Module,
            Source::StackCopy(_) => varid_recording::SampleSource::Perf,
        }
    }

    /// It samples whole CPUs and tells of every process; without that, threads are added one by one.
    pub fn sees_everyone(&self) -> bool {
        match self {
            Source::Bpf(_) | Source::Module(_) => true,
            Source::StackCopy(_) => false,
        }
    }

    /// Records that found no room, if the source counts them itself.
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
            Source::Module(_) | Source::StackCopy(_) => Ok(()),
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

    /// What the samples are that the kernel gives this identifier; none: not ours.
    pub(super) fn origin(&self, id: u64) -> Option<Origin> {
        match self {
            Source::Bpf(bpf) => bpf.origin(id),
            Source::StackCopy(copy) => copy.origin(id),
            Source::Module(_) => None, // its records have rings of their own
        }
    }

    /// What the source itself must be told besides the events of each CPU: sampling begins.
    pub(super) fn enable(&self) -> Result<(), SamplerError> {
        match self {
            Source::Module(module) => module.enable(),
            Source::Bpf(_) | Source::StackCopy(_) => Ok(()),
        }
    }

    /// Sampling ends.
    pub(super) fn disable(&self) -> Result<(), SamplerError> {
        match self {
            Source::Module(module) => module.disable(),
            Source::Bpf(_) | Source::StackCopy(_) => Ok(()),
        }
    }

    /// What becomes readable when rings of the source's own fill up.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Source::Module(module) => Some(module.descriptor()),
            Source::Bpf(bpf) => Some(bpf.descriptor()),
            Source::StackCopy(_) => None,
        }
    }

    /// What is in rings of the source's own.
    pub(super) fn drain(&mut self, pending: &mut Vec<Stamped>, spare: &mut Spare) {
        match self {
            Source::Module(module) => module.drain(pending, spare),
            Source::Bpf(bpf) => bpf.drain(pending, spare),
            Source::StackCopy(_) => {}
        }
    }

    /// What may be looked at in a process.
    pub(super) fn set_target(
        &mut self,
        options: &SamplerOptions,
        pid: u32,
        target: &Target,
    ) -> Result<(), SamplerError> {
        match self {
            Source::Bpf(bpf) => bpf.set_target(pid, &with_options(options, target)),
            Source::Module(module) => module.set_target(pid, &with_options(options, target)),
            Source::StackCopy(_) => Ok(()),
        }
    }

    /// The process is no longer looked at.
    pub(super) fn remove_target(&mut self, pid: u32) -> Result<(), SamplerError> {
        match self {
            Source::Bpf(bpf) => bpf.remove_target(pid),
            Source::Module(module) => module.remove_target(pid),
            Source::StackCopy(copy) => {
                copy.ended(pid);
                Ok(())
            }
        }
    }

    /// Every process is looked at that has no target of its own.
    pub(super) fn admit_everyone(
        &mut self,
        options: &SamplerOptions,
        target: &Target,
    ) -> Result<(), SamplerError> {
        match self {
            Source::Bpf(bpf) => bpf.admit_everyone(&with_options(options, target)),
            Source::Module(module) => module.admit_everyone(&with_options(options, target)),
            Source::StackCopy(_) => Ok(()),
        }
    }

    /// A process's thread and all that it will create are sampled; of no use to one that sees
    /// everyone. A thread that has ended meanwhile is no error.
    pub(super) fn add_thread(
        &mut self,
        options: &SamplerOptions,
        (pid, tid): (u32, u32),
        cpus: &mut [Cpu],
    ) -> Result<(), SamplerError> {
        match self {
            Source::Bpf(_) | Source::Module(_) => Ok(()),
            Source::StackCopy(copy) => copy.add_thread(options, (pid, tid), cpus),
        }
    }

    /// The threads of a process are sampled, as those of everyone are, or with who forked it.
    pub fn samples(&self, pid: u32) -> bool {
        match self {
            Source::Bpf(_) | Source::Module(_) => true,
            Source::StackCopy(copy) => copy.samples(pid),
        }
    }

    /// A process has forked another.
    pub(super) fn forked(&mut self, parent: u32, child: u32) {
        if let Source::StackCopy(copy) = self {
            copy.forked(parent, child);
        }
    }

    /// The threads of a process are no longer sampled, where they were added: the counters that did,
    /// which are closed with this, and the processes that these sampled, too.
    pub(super) fn let_go(&mut self, pid: u32, cpus: &mut [Cpu]) -> (Vec<(u32, Counter)>, Vec<u32>) {
        match self {
            Source::Bpf(_) | Source::Module(_) => (Vec::new(), Vec::new()),
            Source::StackCopy(copy) => copy.let_go(pid, cpus),
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
        ..*target
    }
}

/// What the kernel's own samples hold that are kept beside the shim's.
pub(super) fn raw_shape(attr: &mut perf::EventAttr, options: &SamplerOptions) {
    attr.sample_type |= STACK_COPY_SAMPLE;
    attr.sample_regs_user = regs_mask();
    attr.sample_stack_user = options.raw_stack;
    if options.raw_stack == 0 {
        attr.sample_type &= !u64::from(perf::PERF_SAMPLE_STACK_USER);
    } else {
        // Whoever reads it unwinds the stack: there is one user callchain, not two.
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

/// The reader is woken when a quarter of the ring is full.
fn watermark(attr: &mut perf::EventAttr, pages: usize) {
    attr.set_watermark(true);
    attr.wakeup_watermark = (pages as u32).saturating_mul(1024);
}
