//! Samples from the kernel: perf events on every CPU, their rings, one stream in order of time.
//!
//! Two sources deliver the same [`varid_shim::Record`]: the BPF shim, which walks the
//! managed frames at the sample, and perf's own copy of registers and stack, which needs
//! no privileges and is walked later.

pub mod decode;
mod error;
pub mod event;
mod ring;

pub use error::SamplerError;

use decode::{RingEvent, STACK_COPY_SAMPLE, SampleKind, Stamped, regs_mask};
use event::{Event, Rate, base_attr, open};
use nix::poll::{PollFd, PollFlags, PollTimeout};
use perf_event_open_sys::bindings as perf;
use ring::Ring;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use varid_shim::{Shim, Target, target_flags};

/// What to sample, and how.
#[derive(Debug, Clone)]
pub struct SamplerOptions {
    /// The event.
    pub event: Event,
    /// Its rate.
    pub rate: Rate,
    /// Deliver the kernel's own sample of each overflow, too.
    pub keep_raw: bool,
    /// Bytes of stack with each of them, a multiple of 8; 0: none.
    pub raw_stack: u32,
    /// Bytes of stack that the stack-copying source asks for, a multiple of 8.
    pub stack_copy: u32,
    /// Pages of a ring, a power of two; smaller ones are tried where the kernel refuses.
    pub ring_pages: usize,
}

/// Where samples come from.
#[derive(Debug)]
pub enum Source {
    /// The shim, on every CPU.
    Bpf(Box<Shim>),
    /// perf's copies of registers and stack, thread by thread.
    StackCopy,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Source::Bpf(_) => "bpf",
            Source::StackCopy => "perf",
        })
    }
}

#[derive(Debug)]
struct Cpu {
    cpu: u32,
    ring: Ring,
    /// Owner of the ring: the sampling event itself, or a dummy that others redirect to.
    owner: OwnedFd,
    /// The shim's output, or the events of threads.
    others: Vec<OwnedFd>,
}

/// Open events and their rings.
#[derive(Debug)]
pub struct Sampler {
    options: SamplerOptions,
    source: Source,
    cpus: Vec<Cpu>,
    /// Identifiers of the shim's output events.
    outputs: Vec<u64>,
    /// Drained and not yet safe to release: an earlier record may still come.
    pending: Vec<Stamped>,
    barrier: u64,
    exclude_kernel: bool,
}

impl Sampler {
    /// Opens events on every online CPU. Nothing is sampled before [`Sampler::enable`].
    pub fn open(options: SamplerOptions, source: Source) -> Result<Self, SamplerError> {
        let mut sampler = Self {
            options,
            source,
            cpus: Vec::new(),
            outputs: Vec::new(),
            pending: Vec::new(),
            barrier: 0,
            exclude_kernel: false,
        };
        for cpu in online_cpus()? {
            let opened = match &sampler.source {
                Source::Bpf(_) => sampler.open_cpu(cpu)?,
                Source::StackCopy => sampler.open_dummy(cpu)?,
            };
            sampler.cpus.push(opened);
        }
        Ok(sampler)
    }

    /// The source in use.
    pub fn source(&self) -> &Source {
        &self.source
    }

    fn open_cpu(&mut self, cpu: u32) -> Result<Cpu, SamplerError> {
        let Source::Bpf(shim) = &self.source else {
            return self.open_dummy(cpu);
        };
        let mut attr = self.sampling_attr();
        if self.options.keep_raw {
            attr = self.raw_attr();
        }
        let owner =
            open(&mut attr, -1, cpu as i32).map_err(|source| self.open_error(cpu, None, source))?;
        let ring = self.map_ring(cpu, &owner)?;
        let mut attr = base_attr(
            perf::PERF_TYPE_SOFTWARE,
            u64::from(perf::PERF_COUNT_SW_BPF_OUTPUT),
        );
        attr.sample_type |= perf::PERF_SAMPLE_RAW as u64;
        attr.__bindgen_anon_1.sample_period = 1;
        let output =
            open(&mut attr, -1, cpu as i32).map_err(|source| self.open_error(cpu, None, source))?;
        redirect(cpu, &output, &owner)?;
        shim.attach(cpu, owner.as_fd(), output.as_fd())?;
        self.outputs.push(identifier(cpu, &output)?);
        Ok(Cpu {
            cpu,
            ring,
            owner,
            others: vec![output],
        })
    }

    fn sampling_attr(&self) -> perf::perf_event_attr {
        let mut attr = self.options.event.attr(self.options.rate);
        side_band(&mut attr);
        watermark(&mut attr, self.options.ring_pages);
        attr
    }

    /// The attribute of the kernel's own samples that are kept beside the shim's.
    pub fn raw_attr(&self) -> perf::perf_event_attr {
        let mut attr = self.sampling_attr();
        attr.sample_type = STACK_COPY_SAMPLE;
        attr.sample_regs_user = regs_mask();
        attr.sample_stack_user = self.options.raw_stack;
        if self.options.raw_stack == 0 {
            attr.sample_type &= !u64::from(perf::PERF_SAMPLE_STACK_USER);
        } else {
            // Whoever reads it unwinds the stack: there is one user callchain, not two.
            attr.set_exclude_callchain_user(1);
        }
        attr
    }

    /// A ring that events of threads will share.
    fn open_dummy(&mut self, cpu: u32) -> Result<Cpu, SamplerError> {
        let mut attr = base_attr(
            perf::PERF_TYPE_SOFTWARE,
            u64::from(perf::PERF_COUNT_SW_DUMMY),
        );
        attr.set_exclude_kernel(1);
        watermark(&mut attr, 16);
        let owner =
            open(&mut attr, 0, cpu as i32).map_err(|source| self.open_error(cpu, None, source))?;
        let ring = self.map_ring(cpu, &owner)?;
        Ok(Cpu {
            cpu,
            ring,
            owner,
            others: Vec::new(),
        })
    }

    fn map_ring(&self, cpu: u32, owner: &OwnedFd) -> Result<Ring, SamplerError> {
        let mut pages = self.options.ring_pages;
        loop {
            match Ring::map(owner.as_fd(), pages) {
                Ok(ring) => {
                    tracing::debug!(cpu, bytes = ring.capacity(), "ring mapped");
                    return Ok(ring);
                }
                Err(error) if pages > 16 => {
                    tracing::debug!(cpu, pages, %error, "trying a smaller ring");
                    pages /= 2;
                }
                Err(source) => return Err(SamplerError::Map { cpu, pages, source }),
            }
        }
    }

    fn open_error(&self, cpu: u32, thread: Option<u32>, source: io::Error) -> SamplerError {
        SamplerError::Open {
            event: self.options.event.name.clone(),
            cpu,
            thread,
            source,
        }
    }

    /// Tells the shim what it may look at in a process.
    pub fn set_target(&mut self, pid: u32, target: &Target) -> Result<(), SamplerError> {
        let target = self.with_options(target);
        if let Source::Bpf(shim) = &mut self.source {
            shim.set_target(pid, &target)?;
        }
        Ok(())
    }

    fn with_options(&self, target: &Target) -> Target {
        let keep_raw = if self.options.keep_raw {
            target_flags::KEEP_RAW
        } else {
            0
        };
        Target {
            flags: target.flags | keep_raw,
            ..*target
        }
    }

    /// The shim no longer looks at the process.
    pub fn remove_target(&mut self, pid: u32) -> Result<(), SamplerError> {
        if let Source::Bpf(shim) = &mut self.source {
            shim.remove_target(pid)?;
        }
        Ok(())
    }

    /// The shim looks at every process that it is told nothing else about.
    pub fn admit_everyone(&mut self, target: &Target) -> Result<(), SamplerError> {
        let target = self.with_options(target);
        if let Source::Bpf(shim) = &mut self.source {
            shim.admit_everyone(&target)?;
        }
        Ok(())
    }

    /// The stack-copying source samples a thread and all that it will create. A thread that
    /// has ended meanwhile is no error.
    pub fn add_thread(&mut self, tid: u32) -> Result<(), SamplerError> {
        if matches!(self.source, Source::Bpf(_)) {
            return Ok(());
        }
        let mut cpus = std::mem::take(&mut self.cpus);
        let added = cpus
            .iter_mut()
            .try_for_each(|cpu| self.add_thread_on(tid, cpu));
        self.cpus = cpus;
        added
    }

    fn add_thread_on(&mut self, tid: u32, cpu: &mut Cpu) -> Result<(), SamplerError> {
        let event = match self.open_thread(tid, cpu.cpu) {
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(()),
            other => other.map_err(|source| self.open_error(cpu.cpu, Some(tid), source))?,
        };
        redirect(cpu.cpu, &event, &cpu.owner)?;
        control(cpu.cpu, &event, perf::ENABLE, "PERF_EVENT_IOC_ENABLE")?;
        cpu.others.push(event);
        Ok(())
    }

    fn open_thread(&mut self, tid: u32, cpu: u32) -> io::Result<OwnedFd> {
        loop {
            let mut attr = self.options.event.attr(self.options.rate);
            side_band(&mut attr);
            attr.set_inherit(1);
            attr.set_exclude_callchain_user(1);
            attr.sample_type = STACK_COPY_SAMPLE;
            attr.sample_regs_user = regs_mask();
            attr.sample_stack_user = self.options.stack_copy;
            if self.exclude_kernel {
                attr.set_exclude_kernel(1);
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

    /// Sampling begins.
    pub fn enable(&self) -> Result<(), SamplerError> {
        self.control_all(perf::ENABLE, "PERF_EVENT_IOC_ENABLE")
    }

    /// Sampling ends; what is in the rings can still be drained.
    pub fn disable(&self) -> Result<(), SamplerError> {
        self.control_all(perf::DISABLE, "PERF_EVENT_IOC_DISABLE")
    }

    fn control_all(&self, request: u32, call: &'static str) -> Result<(), SamplerError> {
        for cpu in &self.cpus {
            for event in cpu.others.iter().chain([&cpu.owner]) {
                control(cpu.cpu, event, request, call)?;
            }
        }
        Ok(())
    }

    /// Waits until a ring has filled up to its watermark, or the time is over.
    pub fn wait(&self, milliseconds: u16) {
        let mut fds: Vec<_> = self
            .cpus
            .iter()
            .map(|cpu| PollFd::new(cpu.owner.as_fd(), PollFlags::POLLIN))
            .collect();
        // A signal that ends the wait early is as good as its end.
        let _ = nix::poll::poll(&mut fds, PollTimeout::from(milliseconds));
    }

    /// Drains the rings and hands over, in order of time, what no earlier record can
    /// precede any more. `last`: nothing more will come, hand over everything.
    pub fn drain(&mut self, last: bool, mut each: impl FnMut(Stamped)) {
        let started = monotonic_ns();
        let (outputs, pending) = (&self.outputs, &mut self.pending);
        let unmarked = match self.source {
            Source::Bpf(_) => SampleKind::Raw,
            Source::StackCopy => SampleKind::StackCopy,
        };
        for cpu in &mut self.cpus {
            let first = pending.len();
            cpu.ring.drain(|bytes| {
                let kind_of = |id| {
                    if outputs.contains(&id) {
                        SampleKind::Shim
                    } else {
                        unmarked
                    }
                };
                let Some(stamped) = decode::decode(bytes, kind_of) else {
                    return;
                };
                if let RingEvent::Raw { tid, ip, .. } = stamped.event {
                    adopt_time(
                        pending.get_mut(first..).unwrap_or_default(),
                        stamped.time,
                        tid,
                        ip,
                    );
                }
                pending.push(stamped);
            });
        }
        pending.sort_by_key(|stamped| stamped.time);
        let barrier = if last { u64::MAX } else { self.barrier };
        self.barrier = started.saturating_sub(1_000_000);
        let ready = pending.partition_point(|stamped| stamped.time < barrier);
        pending.drain(..ready).for_each(&mut each);
    }
}

/// What the kernel calls a thread that it has forgotten already: one on its way out.
const FORGOTTEN: u32 = u32::MAX;

/// The kernel's sample of an overflow follows the shim's record of it in the same ring:
/// both get the kernel's time, by which another program can pair them.
fn adopt_time(before: &mut [Stamped], time: u64, tid: u32, ip: u64) {
    let Some(Stamped {
        time: own,
        event: RingEvent::Sample(record),
    }) = before.last_mut()
    else {
        return;
    };
    // The shim's record may have found no room where the kernel's smaller one did.
    let same_thread = record.tid == tid || tid == FORGOTTEN;
    if same_thread && record.ip == ip {
        *own = time;
        record.time = time;
    }
}

/// CLOCK_MONOTONIC in nanoseconds, the clock of every record.
pub fn monotonic_ns() -> u64 {
    nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).map_or(0, |now| {
        let seconds = now.tv_sec() as u64;
        seconds
            .saturating_mul(1_000_000_000)
            .saturating_add(now.tv_nsec() as u64)
    })
}

/// Mappings, names, forks and exits are reported with the samples.
fn side_band(attr: &mut perf::perf_event_attr) {
    attr.set_mmap(1);
    attr.set_mmap_data(1);
    attr.set_mmap2(1);
    attr.set_comm(1);
    attr.set_comm_exec(1);
    attr.set_task(1);
}

/// The reader is woken when a quarter of the ring is full.
fn watermark(attr: &mut perf::perf_event_attr, pages: usize) {
    attr.set_watermark(1);
    attr.__bindgen_anon_2.wakeup_watermark = (pages as u32).saturating_mul(1024);
}

fn redirect(cpu: u32, event: &OwnedFd, to: &OwnedFd) -> Result<(), SamplerError> {
    // SAFETY: takes a descriptor by value.
    let result = unsafe {
        libc::ioctl(
            event.as_raw_fd(),
            perf::SET_OUTPUT as libc::Ioctl,
            to.as_raw_fd(),
        )
    };
    check(cpu, "PERF_EVENT_IOC_SET_OUTPUT", result)
}

fn control(
    cpu: u32,
    event: &OwnedFd,
    request: u32,
    call: &'static str,
) -> Result<(), SamplerError> {
    // SAFETY: takes an integer by value.
    check(cpu, call, unsafe {
        libc::ioctl(event.as_raw_fd(), request as libc::Ioctl, 0)
    })
}

fn identifier(cpu: u32, event: &OwnedFd) -> Result<u64, SamplerError> {
    let mut id = 0u64;
    // SAFETY: the kernel writes one 64-bit word to the address given.
    let result = unsafe { libc::ioctl(event.as_raw_fd(), perf::ID as libc::Ioctl, &raw mut id) };
    check(cpu, "PERF_EVENT_IOC_ID", result).map(|()| id)
}

fn check(cpu: u32, call: &'static str, result: libc::c_int) -> Result<(), SamplerError> {
    if result < 0 {
        return Err(SamplerError::Control {
            cpu,
            call,
            source: io::Error::last_os_error(),
        });
    }
    Ok(())
}

/// CPUs that are online: `0-3,5` of sysfs.
pub fn online_cpus() -> Result<Vec<u32>, SamplerError> {
    let text =
        std::fs::read_to_string("/sys/devices/system/cpu/online").map_err(SamplerError::Cpus)?;
    let bad = || {
        SamplerError::Cpus(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("'{}' is no list", text.trim()),
        ))
    };
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (
            first.parse().map_err(|_| bad())?,
            last.parse().map_err(|_| bad())?,
        );
        cpus.extend(first..=last);
    }
    Ok(cpus)
}
