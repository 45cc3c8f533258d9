//! The system call: the common settings of all events, and how they are opened.

use crate::sysctl;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use varid_model::perf;

/// The fields at the end of every record (`sample_id_all`) and at the start of every sample. `decode` relies on them.
pub const COMMON_SAMPLE: u64 = (perf::PERF_SAMPLE_IDENTIFIER
    | perf::PERF_SAMPLE_TID
    | perf::PERF_SAMPLE_TIME
    | perf::PERF_SAMPLE_CPU) as u64;

/// Returns an attribute with the common settings.
pub fn base_attr(kind: u32, config: u64) -> perf::EventAttr {
    let mut attr = perf::EventAttr {
        type_: kind,
        config,
        sample_type: COMMON_SAMPLE,
        clockid: libc::CLOCK_MONOTONIC,
        ..Default::default()
    };
    attr.set_disabled(true);
    attr.set_sample_id_all(true);
    attr.set_use_clockid(true);
    attr
}

/// Calls perf_event_open(2) for a process (-1: all) and a CPU (-1: all). The event joins the group of `leader`, if there is one.
pub fn open(
    attr: &mut perf::EventAttr,
    pid: i32,
    cpu: i32,
    leader: Option<BorrowedFd<'_>>,
) -> io::Result<OwnedFd> {
    let leader = leader.map_or(-1, |leader| leader.as_raw_fd());
    // SAFETY: `attr` is a whole attribute. The kernel reads it, and writes at most its size field.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw mut *attr,
            pid,
            cpu,
            leader,
            perf::PERF_FLAG_FD_CLOEXEC as libc::c_ulong,
        )
    };
    let fd = i32::try_from(fd).map_err(io::Error::other)?;
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Returns the maximum frequency that the kernel permits.
pub fn max_frequency() -> Option<u64> {
    sysctl::kernel("perf_event_max_sample_rate")
}
