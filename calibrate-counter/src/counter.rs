//! The processor's time stamp counter as a native method.

use std::ffi::c_void;

/// Implements `static native long counter()` of the class `varid.calibrate.Counter`. All instructions before the call are complete when the
/// counter is read.
#[unsafe(no_mangle)]
pub extern "system" fn Java_varid_calibrate_Counter_counter(
    _environment: *mut c_void,
    _class: *mut c_void,
) -> i64 {
    read().cast_signed()
}

#[cfg(target_arch = "x86_64")]
fn read() -> u64 {
    let mut processor = 0;
    // SAFETY: each x86-64 processor that runs Linux of this decade has rdtscp, and the kernel lets programs use it.
    unsafe { core::arch::x86_64::__rdtscp(&raw mut processor) }
}

#[cfg(target_arch = "aarch64")]
fn read() -> u64 {
    let value: u64;
    // SAFETY: Linux lets programs read the virtual counter; nothing else is touched.
    unsafe {
        core::arch::asm!("isb", "mrs {}, cntvct_el0", out(reg) value, options(nomem, nostack));
    }
    value
}

/// Other machines have no counter for programs. A constant is no clock: the caller sees that it does not advance.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn read() -> u64 {
    0
}
