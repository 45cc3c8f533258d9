//! The system call: what every event of ours has in common, and how it is opened.

use crate::perf_abi as perf;
use crate::sysctl;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// What every record of every event of ours ends with (`sample_id_all`), and samples begin
/// with: this is what `decode` relies on.
pub const COMMON_SAMPLE: u64 = (perf::PERF_SAMPLE_IDENTIFIER
    | perf::PERF_SAMPLE_TID
    | perf::PERF_SAMPLE_TIME
    | perf::PERF_SAMPLE_CPU) as u64;

/// An attribute with the common settings.
pub fn base_attr(kind: u32, config: u64) -> perf::perf_event_attr {
    let mut attr = perf::perf_event_attr {
        type_: kind,
        size: size_of::<perf::perf_event_attr>() as u32,
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

/// perf_event_open for a process (or -1: all) and a CPU (or -1: all), as a leader or in the
/// group of one.
pub fn open(
    attr: &mut perf::perf_event_attr,
    pid: i32,
    cpu: i32,
    leader: Option<BorrowedFd<'_>>,
) -> std::io::Result<OwnedFd> {
    let leader = leader.map_or(-1, |leader| leader.as_raw_fd());
    perf::perf_event_open(attr, pid, cpu, leader, perf::PERF_FLAG_FD_CLOEXEC)
}

/// The frequency that the kernel allows at most.
pub fn max_frequency() -> Option<u64> {
    sysctl::kernel("perf_event_max_sample_rate")
}
