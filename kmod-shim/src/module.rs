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

/// An error that prevents the use of the kernel module.
#[derive(Debug, Error)]
pub enum ModuleError {
    /// The module is not loaded.
    #[error(
        "the kernel module is not loaded: there is no {MODULE_DEVICE}. Build it from kmod-shim/module (make, or dkms install) and load it as root with 'modprobe varid' or 'insmod varid.ko'"
    )]
    NotLoaded,
    /// The device cannot be opened or does not start a session.
    #[error(
        "{MODULE_DEVICE}: {step}: {source}. It needs root, or CAP_PERFMON and the right to open the device"
    )]
    Denied {
        /// The failed step.
        step: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// The module was built from another version of the sources.
    #[error(
        "the loaded kernel module speaks another version of its interface: build and load the one that comes with this varid"
    )]
    Version,
    /// The module was built for a machine whose registers this program does not support.
    #[error(
        "the kernel module hands over registers of ELF machine {theirs}, this program knows those of {MACHINE}: take the build of varid for that machine"
    )]
    Machine {
        /// ELF e_machine.
        theirs: u32,
    },
    /// The module's table of targets is full.
    #[error("the kernel module has no room for another process: record fewer at once")]
    TooManyTargets,
    /// A request failed.
    #[error("{MODULE_DEVICE}: {step}: {source}")]
    Request {
        /// The failed request.
        step: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

/// The ELF e_machine whose registers this program supports.
#[cfg(target_arch = "x86_64")]
const MACHINE: u32 = 62;
#[cfg(target_arch = "aarch64")]
const MACHINE: u32 = 183;
#[cfg(target_arch = "arm")]
const MACHINE: u32 = 40;

/// An event on one CPU, with the fields of `perf_event_attr`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counter {
    /// The CPU.
    pub cpu: u32,
    /// `PERF_TYPE_*` or the type of a PMU.
    pub kind: u32,
    /// `config`.
    pub config: u64,
    /// `config1`.
    pub config1: u64,
    /// `config2`.
    pub config2: u64,
    /// The period, or samples per second.
    pub rate: u64,
    /// True if the rate is in samples per second.
    pub frequency: bool,
    /// Do not count user code.
    pub exclude_user: bool,
    /// Do not count the kernel.
    pub exclude_kernel: bool,
    /// Draw each period from a range around the rate, so that it does not alias with a loop.
    pub jitter: bool,
}

/// Counts of the module since the start of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModuleCounts {
    /// Overflows in targets.
    pub samples: u64,
    /// Records lost for lack of space in their ring.
    pub no_space: u64,
    /// Number of times that a counter was throttled.
    pub throttled: u64,
}

/// The value of a counter. `running < enabled`: the hardware was shared with other events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CounterValue {
    /// Events.
    pub value: u64,
    /// Nanoseconds that it was enabled.
    pub enabled: u64,
    /// Nanoseconds that it counted.
    pub running: u64,
}

/// A session with the module. Dropping it stops and frees everything.
#[derive(Debug)]
pub struct Module {
    device: File,
}

impl Module {
    /// Opens the device, after a test session has shown that this user has the permission.
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

    /// Starts a session. Its rings have `ring_pages` (a power of two) pages of data. Raw samples have `raw_stack` bytes of stack
    /// and the registers of perf's mask `raw_regs`.
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

    /// Opens a disabled counter. Returns its id in the session. The error is the kernel's for the event.
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

    /// Enables all counters.
    pub fn enable(&self) -> Result<(), ModuleError> {
        self.call(abi::ENABLE, 0)
            .map_err(failed("enable the counters"))
    }

    /// Disables all counters. The rings can still be read.
    pub fn disable(&self) -> Result<(), ModuleError> {
        self.call(abi::DISABLE, 0)
            .map_err(failed("disable the counters"))
    }

    /// Adds or changes the target of a process (its id in the initial pid namespace).
    pub fn set_target(&self, pid: u32, target: &Target) -> Result<(), ModuleError> {
        let mut raw = abi::RawTarget {
            pid,
            reserved: 0,
            // The module has no table of states: for samples in a prologue or epilogue it relies on the copy of the stack.
            target: target.raw(0),
        };
        self.request(abi::TARGET, &mut raw)
            .map_err(|error| match error.raw_os_error() {
                Some(libc::ENOSPC) => ModuleError::TooManyTargets,
                _ => failed("set a target")(error),
            })
    }

    /// Sets the target of all processes without one of their own.
    pub fn admit_everyone(&self, target: &Target) -> Result<(), ModuleError> {
        self.set_target(0, target)
    }

    /// Removes the target of a process; unknown processes are ignored.
    pub fn remove_target(&self, pid: u32) -> Result<(), ModuleError> {
        match self.call(abi::FORGET, pid) {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
            other => other.map_err(failed("forget a target")),
        }
    }

    /// Returns the value of a counter.
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

    /// Returns the module's counts, summed over all CPUs.
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

    /// Sends a request whose structure is `argument`.
    fn request<T>(&self, request: u32, argument: &mut T) -> io::Result<()> {
        // SAFETY: each request carries the size of its structure, which is plain data that the module reads and writes completely;
        // it lives through the call.
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

/// For mapping (the ring of CPU n at n times its length) and polling.
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
