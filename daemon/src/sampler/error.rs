//! Why sampling cannot start or go on, and what would help.

use std::io;
use thiserror::Error;

/// Why sampling cannot start or go on.
#[derive(Debug, Error)]
pub enum SamplerError {
    /// No such event.
    #[error("unknown event '{event}'. Known here: {known}")]
    UnknownEvent {
        /// As it was given.
        event: String,
        /// What would have been understood.
        known: String,
    },
    /// No such modifier.
    #[error(
        "unknown modifier '{modifier}' of event '{event}': 'u' (user) and 'k' (kernel) are known"
    )]
    UnknownModifier {
        /// As it was given.
        event: String,
        /// The letter.
        modifier: char,
    },
    /// The kernel refuses an event.
    #[error("cannot open event '{event}' on CPU {cpu}{}: {source}. {}", thread.map_or(String::new(), |t| format!(" for thread {t}")), advice(source))]
    Open {
        /// Its name.
        event: String,
        /// The CPU.
        cpu: u32,
        /// The thread, or none: all of the CPU.
        thread: Option<u32>,
        /// Why.
        source: io::Error,
    },
    /// A ring cannot be mapped.
    #[error(
        "cannot map a ring of {pages} pages on CPU {cpu}: {source}. Raise /proc/sys/kernel/perf_event_mlock_kb or the memlock limit"
    )]
    Map {
        /// The CPU.
        cpu: u32,
        /// The smallest size that was tried.
        pages: usize,
        /// Why.
        source: io::Error,
    },
    /// An ioctl failed.
    #[error("perf event on CPU {cpu}: {call}: {source}")]
    Control {
        /// The CPU.
        cpu: u32,
        /// The call.
        call: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The shim cannot be used in a container.
    #[error("{0}; run it outside of the container")]
    PidNamespace(&'static str),
    /// The shim failed.
    #[error(transparent)]
    Shim(#[from] varid_shim::Error),
    /// The kernel module failed.
    #[error(transparent)]
    Module(#[from] varid_shim::ModuleError),
    /// The machine does not say which CPUs it has.
    #[error("cannot read /sys/devices/system/cpu/online: {0}")]
    Cpus(io::Error),
}

fn advice(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            "Run as root or with CAP_PERFMON, or lower /proc/sys/kernel/perf_event_paranoid; 'varid doctor' says what each needs"
        }
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
            "This machine does not count it; 'varid events' lists what it does, cpu-clock always works"
        }
        Some(libc::EMFILE) => "Raise the limit of open files (ulimit -n)",
        _ => "'varid doctor' says what this machine offers",
    }
}
