//! The shim as a BPF program: one event per CPU, whose records stand in that CPU's ring in
//! order with mappings, names, forks and exits.

use super::{open_error, side_band, watermark};
use crate::perf_abi as perf;
use crate::sampler::cpu::identifier;
use crate::sampler::decode::{STACK_COPY_SAMPLE, SampleKind, regs_mask};
use crate::sampler::event::{base_attr, open};
use crate::sampler::{Cpu, SamplerError, SamplerOptions};
use std::os::fd::AsFd;
use varid_shim::{Shim, Target};

/// The loaded shim.
#[derive(Debug)]
pub struct Bpf {
    shim: Shim,
    /// Identifiers of its output events.
    outputs: Vec<u64>,
}

impl Bpf {
    /// Nothing is open yet.
    pub fn new(shim: Shim) -> Self {
        Self {
            shim,
            outputs: Vec::new(),
        }
    }

    /// The sampling event, the shim on it, and the event that it writes to.
    pub fn open_cpu(&mut self, options: &SamplerOptions, cpu: u32) -> Result<Cpu, SamplerError> {
        let failed = |source| open_error(options, cpu, None, source);
        let mut attr = if options.keep_raw {
            raw_attr(options)
        } else {
            sampling_attr(options)
        };
        let owner = open(&mut attr, -1, cpu as i32).map_err(failed)?;
        let mut opened = Cpu::with_ring(cpu, owner, options.ring_pages)?;
        let mut attr = base_attr(
            perf::PERF_TYPE_SOFTWARE,
            u64::from(perf::PERF_COUNT_SW_BPF_OUTPUT),
        );
        attr.sample_type |= perf::PERF_SAMPLE_RAW as u64;
        attr.sample_period = 1;
        let output = open(&mut attr, -1, cpu as i32).map_err(failed)?;
        self.outputs.push(identifier(cpu, &output)?);
        self.shim
            .attach(cpu, opened.owner.as_fd(), output.as_fd())?;
        opened.add(output)?;
        Ok(opened)
    }

    /// What comes of an output event is the shim's record, all else the kernel's own sample.
    pub fn kind_of(&self, id: u64) -> SampleKind {
        if self.outputs.contains(&id) {
            SampleKind::Shim
        } else {
            SampleKind::Raw
        }
    }

    /// Admits a process.
    pub fn set_target(&mut self, pid: u32, target: &Target) -> Result<(), SamplerError> {
        Ok(self.shim.set_target(pid, target)?)
    }

    /// Forgets a process.
    pub fn remove_target(&mut self, pid: u32) -> Result<(), SamplerError> {
        Ok(self.shim.remove_target(pid)?)
    }

    /// Admits all others.
    pub fn admit_everyone(&mut self, target: &Target) -> Result<(), SamplerError> {
        Ok(self.shim.admit_everyone(target)?)
    }

    /// Records that found no room.
    pub fn no_space(&self) -> Result<u64, SamplerError> {
        Ok(self.shim.counters()?.no_space)
    }
}

fn sampling_attr(options: &SamplerOptions) -> perf::perf_event_attr {
    let mut attr = options.event.attr(options.rate);
    side_band(&mut attr);
    watermark(&mut attr, options.ring_pages);
    attr
}

/// The attribute of the kernel's own samples that are kept beside the shim's.
pub fn raw_attr(options: &SamplerOptions) -> perf::perf_event_attr {
    let mut attr = sampling_attr(options);
    attr.sample_type = STACK_COPY_SAMPLE;
    attr.sample_regs_user = regs_mask();
    attr.sample_stack_user = options.raw_stack;
    if options.raw_stack == 0 {
        attr.sample_type &= !u64::from(perf::PERF_SAMPLE_STACK_USER);
    } else {
        // Whoever reads it unwinds the stack: there is one user callchain, not two.
        attr.set_exclude_callchain_user(true);
    }
    attr
}
