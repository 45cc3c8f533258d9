//! Settings of the kernel.

use std::fs;
use std::str::FromStr;

/// What is set as `/proc/sys/kernel/NAME`; none: this kernel has no such setting, or it is something else.
pub fn kernel<T: FromStr>(name: &str) -> Option<T> {
    let value = fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?;
    value.trim().parse().ok()
}
