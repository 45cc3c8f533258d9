//! Kernel settings (sysctl).

use std::fs;
use std::str::FromStr;

/// Returns the value of `/proc/sys/kernel/NAME`, or None if the kernel does not have it or it cannot be parsed.
pub fn kernel<T: FromStr>(name: &str) -> Option<T> {
    let value = fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?;
    value.trim().parse().ok()
}
