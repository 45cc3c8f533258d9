//! The ioctls of an open perf event.

use super::SamplerError;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use varid_model::perf;

/// Starts counting.
pub fn enable(cpu: u32, event: &OwnedFd) -> Result<(), SamplerError> {
    control(
        cpu,
        event,
        perf::PERF_EVENT_IOC_ENABLE,
        "PERF_EVENT_IOC_ENABLE",
    )
}

/// Stops counting.
pub fn disable(cpu: u32, event: &OwnedFd) -> Result<(), SamplerError> {
    control(
        cpu,
        event,
        perf::PERF_EVENT_IOC_DISABLE,
        "PERF_EVENT_IOC_DISABLE",
    )
}

/// Redirects its records to the ring of `owner`, an event of the same CPU.
pub fn set_output(cpu: u32, event: &OwnedFd, owner: &OwnedFd) -> Result<(), SamplerError> {
    // SAFETY: takes a descriptor by value.
    let result = unsafe {
        libc::ioctl(
            event.as_raw_fd(),
            perf::PERF_EVENT_IOC_SET_OUTPUT as libc::Ioctl,
            owner.as_raw_fd(),
        )
    };
    check(cpu, "PERF_EVENT_IOC_SET_OUTPUT", result)
}

/// Changes the frequency or the period, depending on how the event was opened.
pub fn set_period(cpu: u32, event: &OwnedFd, value: u64) -> Result<(), SamplerError> {
    // SAFETY: the kernel reads one 64-bit word from the address given.
    let result = unsafe {
        libc::ioctl(
            event.as_raw_fd(),
            perf::PERF_EVENT_IOC_PERIOD as libc::Ioctl,
            &raw const value,
        )
    };
    check(cpu, "PERF_EVENT_IOC_PERIOD", result)
}

/// Returns the kernel's identifier of the event, which is in its records.
pub fn identifier(cpu: u32, event: &OwnedFd) -> Result<u64, SamplerError> {
    let mut id = 0u64;
    // SAFETY: the kernel writes one 64-bit word to the address given.
    let result = unsafe {
        libc::ioctl(
            event.as_raw_fd(),
            perf::PERF_EVENT_IOC_ID as libc::Ioctl,
            &raw mut id,
        )
    };
    check(cpu, "PERF_EVENT_IOC_ID", result).map(|()| id)
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
