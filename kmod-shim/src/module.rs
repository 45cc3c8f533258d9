//! The shim as a kernel module: a session over `/dev/varid`.

mod abi;

use crate::target::Target;
use abi::counter_flags;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use thiserror::Error;

pub use abi::{DEVICE as MODULE_DEVICE, RECORD as MODULE_RECORD};

/// Why the kernel module cannot be used.
#[derive(Debug, Error)]
pub enum ModuleError {
    /// The module is not loaded.
    #[error(
        "the kernel module is not loaded: there is no {MODULE_DEVICE}. Build it from kmod-shim/module (make, or dkms install) and load it as root with 'modprobe varid' or 'insmod varid.ko'"
    )]
    NotLoaded,
    /// The device cannot be opened or does not take a session.
    #[error(
        "{MODULE_DEVICE}: {step}: {source}. It needs root, or CAP_PERFMON and the right to open the device"
    )]
    Denied {
        /// What was tried.
        step: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The module was built from other sources.
    #[error(
        "the loaded kernel module speaks another version of its interface: build and load the one that comes with this varid"
    )]
    Version,
    /// The module was built for a machine whose registers this program does not know.
    #[error(
        "the kernel module hands over registers of ELF machine {theirs}, this program knows those of {MACHINE}: take the build of varid for that machine"
    )]
    Machine {
        /// ELF e_machine.
        theirs: u32,
    },
    /// Its table of targets is full.
    #[error("the kernel module has no room for another process: record fewer at once")]
    TooManyTargets,
    /// A request failed.
    #[error("{MODULE_DEVICE}: {step}: {source}")]
    Request {
        /// What was asked for.
        step: &'static str,
        /// Why not.
        source: io::Error,
    },
}

/// ELF e_machine whose registers this program knows.
#[cfg(target_arch = "x86_64")]
const MACHINE: u32 = 62;
#[cfg(target_arch = "aarch64")]
const MACHINE: u32 = 183;
#[cfg(target_arch = "arm")]
const MACHINE: u32 = 40;

/// An event on one CPU, in the terms of `perf_event_attr`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counter {
    /// The CPU.
    pub cpu: u32,
    /// `PERF_TYPE_*` or a PMU's own number.
    pub kind: u32,
    /// Which event.
    pub config: u64,
    /// More of it.
    pub config1: u64,
    /// Still more.
    pub config2: u64,
    /// Events from one sample to the next, or samples per second.
    pub rate: u64,
    /// The rate is samples per second.
    pub frequency: bool,
    /// User code does not count.
    pub exclude_user: bool,
    /// The kernel does not count.
    pub exclude_kernel: bool,
    /// Draw each period from a range about the rate, so that it beats with no loop.
    pub jitter: bool,
}

/// What the module has counted since the session began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModuleCounts {
    /// Overflows in targets.
    pub samples: u64,
    /// Records that found no room in their ring.
    pub no_space: u64,
    /// Times that a counter was stopped for coming too often.
    pub throttled: u64,
}

/// What one counter has counted; `running < enabled`: it shared its hardware.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CounterValue {
    /// Events.
    pub value: u64,
    /// Nanoseconds that it was to count.
    pub enabled: u64,
    /// Nanoseconds that it did.
    pub running: u64,
}

/// A session with the module. Dropping it stops and frees everything.
#[derive(Debug)]
pub struct Module {
    device: File,
}

impl Module {
    /// Opens the device, after one that has shown that this user may have a session.
    pub fn open() -> Result<Self, ModuleError> {
        Self::device()?.begin(1, 0, 0)?;
        Self::device()
    }

    fn device() -> Result<Self, ModuleError> {
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_CLOEXEC)
            .open(MODULE_DEVICE);
        match opened {
            Ok(device) => Ok(Self { device }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(ModuleError::NotLoaded),
            Err(source) => Err(ModuleError::Denied {
                step: "open",
                source,
            }),
        }
    }

    /// Makes it a session whose rings have `ring_pages` (a power of two) pages of data; with
    /// raw samples come `raw_stack` bytes of stack and the registers of a mask of perf's.
    pub fn begin(&self, ring_pages: u32, raw_stack: u32, raw_regs: u64) -> Result<(), ModuleError> {
        const STEP: &str = "begin a session";
        let mut session = abi::RawSession {
            version: abi::VERSION,
            ring_pages,
            raw_stack,
            machine: 0,
            raw_regs,
        };
        match self.request(abi::SESSION, &mut session) {
            Ok(_) if session.machine != MACHINE => Err(ModuleError::Machine {
                theirs: session.machine,
            }),
            Ok(_) => Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::EPROTO) => Err(ModuleError::Version),
            Err(source) if source.raw_os_error() == Some(libc::EPERM) => {
                Err(ModuleError::Denied { step: STEP, source })
            }
            Err(source) => Err(ModuleError::Request { step: STEP, source }),
        }
    }

    /// Opens a counter, disabled; its number in the session. The error is the kernel's for the event.
    pub fn add_counter(&self, counter: &Counter) -> io::Result<u32> {
        let flag = |set, flag| if set { flag } else { 0 };
        let mut raw = abi::RawCounter {
            cpu: counter.cpu,
            kind: counter.kind,
            config: counter.config,
            config1: counter.config1,
            config2: counter.config2,
            rate: counter.rate,
            flags: flag(counter.frequency, counter_flags::FREQUENCY)
                | flag(counter.exclude_user, counter_flags::EXCLUDE_USER)
                | flag(counter.exclude_kernel, counter_flags::EXCLUDE_KERNEL)
                | flag(counter.jitter, counter_flags::JITTER),
            id: 0,
        };
        self.request(abi::COUNTER, &mut raw)?;
        Ok(raw.id)
    }

    /// All counters count from now on.
    pub fn enable(&self) -> Result<(), ModuleError> {
        self.call(abi::ENABLE, 0)
            .map_err(failed("enable the counters"))
    }

    /// No counter counts any more; what is in the rings can still be read.
    pub fn disable(&self) -> Result<(), ModuleError> {
        self.call(abi::DISABLE, 0)
            .map_err(failed("disable the counters"))
    }

    /// Admits a process (its id in the initial pid namespace), or changes what is known of it.
    pub fn set_target(&self, pid: u32, target: &Target) -> Result<(), ModuleError> {
        let mut raw = abi::RawTarget {
            pid,
            reserved: 0,
            // The module has no table of states: it leaves samples in the middle of a call to the copy of the stack.
            target: target.raw(0),
        };
        self.request(abi::TARGET, &mut raw)
            .map_err(|error| match error.raw_os_error() {
                Some(libc::ENOSPC) => ModuleError::TooManyTargets,
                _ => failed("set a target")(error),
            })
    }

    /// Admits every process that has no entry of its own.
    pub fn admit_everyone(&self, target: &Target) -> Result<(), ModuleError> {
        self.set_target(0, target)
    }

    /// Forgets a process; unknown processes are ignored.
    pub fn remove_target(&self, pid: u32) -> Result<(), ModuleError> {
        match self.call(abi::FORGET, pid) {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
            other => other.map_err(failed("forget a target")),
        }
    }

    /// What a counter has counted.
    pub fn value(&self, id: u32) -> Result<CounterValue, ModuleError> {
        let mut raw = abi::RawValue {
            id,
            ..Default::default()
        };
        self.request(abi::VALUE, &mut raw)
            .map_err(failed("read a counter"))?;
        Ok(CounterValue {
            value: raw.value,
            enabled: raw.enabled,
            running: raw.running,
        })
    }

    /// What has been counted on all CPUs.
    pub fn counts(&self) -> Result<ModuleCounts, ModuleError> {
        let mut raw = abi::RawCounts::default();
        self.request(abi::COUNTS, &mut raw)
            .map_err(failed("read its counts"))?;
        Ok(ModuleCounts {
            samples: raw.samples,
            no_space: raw.no_space,
            throttled: raw.throttled,
        })
    }

    /// `argument` is the structure of this request.
    fn request<T>(&self, request: u32, argument: &mut T) -> io::Result<()> {
        // SAFETY: each request carries the size of its structure, which is plain data that
        // the module reads and writes whole; it lives through the call.
        check(unsafe {
            libc::ioctl(
                self.device.as_raw_fd(),
                request as libc::Ioctl,
                std::ptr::from_mut(argument),
            )
        })
    }

    fn call(&self, request: u32, argument: u32) -> io::Result<()> {
        // SAFETY: takes an integer by value.
        check(unsafe {
            libc::ioctl(
                self.device.as_raw_fd(),
                request as libc::Ioctl,
                libc::c_ulong::from(argument),
            )
        })
    }
}

/// To be mapped (the ring of CPU n at n times its length) and polled.
impl AsFd for Module {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn failed(step: &'static str) -> impl Fn(io::Error) -> ModuleError {
    move |source| ModuleError::Request { step, source }
}
