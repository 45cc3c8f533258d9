//! perf's own copies of registers and stack: an event per thread and CPU, no privileges.

use super::{open_error, side_band, watermark};
use crate::perf_abi as perf;
use crate::sampler::cpu::enable;
use crate::sampler::decode::{STACK_COPY_SAMPLE, regs_mask};
use crate::sampler::event::{base_attr, open};
use crate::sampler::{Cpu, SamplerError, SamplerOptions};
use std::io;
use std::os::fd::OwnedFd;

/// What was found out while events were opened.
#[derive(Debug, Default)]
pub struct StackCopy {
    /// Only user code may be sampled.
    exclude_kernel: bool,
}

/// A ring that events of threads will share.
pub fn open_cpu(options: &SamplerOptions, cpu: u32) -> Result<Cpu, SamplerError> {
    let mut attr = base_attr(
        perf::PERF_TYPE_SOFTWARE,
        u64::from(perf::PERF_COUNT_SW_DUMMY),
    );
    attr.set_exclude_kernel(true);
    watermark(&mut attr, 16);
    let owner =
        open(&mut attr, 0, cpu as i32).map_err(|source| open_error(options, cpu, None, source))?;
    Cpu::with_ring(cpu, owner, options.ring_pages)
}

impl StackCopy {
    /// Samples a thread and all that it will create, if it still runs.
    pub fn add_thread(
        &mut self,
        options: &SamplerOptions,
        tid: u32,
        cpus: &mut [Cpu],
    ) -> Result<(), SamplerError> {
        for cpu in cpus {
            let event = match self.open_thread(options, tid, cpu.cpu) {
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => continue,
                other => other.map_err(|source| open_error(options, cpu.cpu, Some(tid), source))?,
            };
            cpu.add(event)?;
            if let Some(event) = cpu.others.last() {
                enable(cpu.cpu, event)?;
            }
        }
        Ok(())
    }

    fn open_thread(&mut self, options: &SamplerOptions, tid: u32, cpu: u32) -> io::Result<OwnedFd> {
        loop {
            let mut attr = options.event.attr(options.rate);
            side_band(&mut attr);
            attr.set_inherit(true);
            attr.set_exclude_callchain_user(true);
            attr.sample_type = STACK_COPY_SAMPLE;
            attr.sample_regs_user = regs_mask();
            attr.sample_stack_user = options.stack_copy;
            if self.exclude_kernel {
                attr.set_exclude_kernel(true);
            }
            match open(&mut attr, tid as i32, cpu as i32) {
                Err(error)
                    if error.raw_os_error() == Some(libc::EACCES) && !self.exclude_kernel =>
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
