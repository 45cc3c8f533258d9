//! Finds the permission that a process lacks to use BPF.

use std::error::Error;
use std::{fmt, fs, io, iter};

/// The capabilities that permit BPF, by their bits in `CapEff` of /proc/PID/status.
const CAPABILITIES: [(&str, u32); 2] = [("CAP_BPF", 39), ("CAP_PERFMON", 38)];
/// CAP_SYS_ADMIN includes both.
const CAP_SYS_ADMIN: u32 = 21;
/// The number of ids in /proc/PID/uid_map of the initial user namespace. No container has all of them.
const ALL_USERS: u64 = 4_294_967_295;

/// The reason why BPF is denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denied {
    /// These capabilities are missing.
    Capabilities(Vec<&'static str>),
    /// The process has them only in a container's user namespace, where they have no effect.
    UserNamespace,
    /// The process has them: something else denies it.
    Elsewhere,
}

impl Denied {
    /// Finds the reason for this process.
    pub fn of_this_process() -> Self {
        let read = |name: &str| fs::read_to_string(format!("/proc/self/{name}"));
        let [status, users] = ["status", "uid_map"].map(|name| read(name).unwrap_or_default());
        Self::of(&status, &users)
    }

    /// Finds the reason for a process with these files in /proc.
    fn of(status: &str, users: &str) -> Self {
        let mut lines = status.lines();
        let effective = lines.find_map(|line| line.strip_prefix("CapEff:"));
        let effective = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
        let effective = effective.unwrap_or_default();
        let has = |bit: u32| effective & (1 << bit) != 0;
        let missing = CAPABILITIES.into_iter().filter(|(_, bit)| !has(*bit));
        let missing: Vec<_> = missing.map(|(name, _)| name).collect();
        let mut counts = users.split_whitespace().skip(2).step_by(3);
        let all = counts.any(|count| count.parse() == Ok(ALL_USERS));
        if !missing.is_empty() && !has(CAP_SYS_ADMIN) {
            Self::Capabilities(missing)
        } else if !all {
            Self::UserNamespace
        } else {
            Self::Elsewhere
        }
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capabilities(missing) => {
                write!(f, "this process lacks {}, which root has", missing.join(" and "))
            }
            Self::UserNamespace => f.write_str(
                "CAP_BPF and CAP_PERFMON of a container's user namespace do not count: run varid on the host, or the container without one",
            ),
            Self::Elsewhere => f.write_str(
                "CAP_BPF and CAP_PERFMON are there, but the kernel is locked down, a seccomp filter forbids bpf(), or, before Linux 5.11, no more memory may be locked (ulimit -l)",
            ),
        }
    }
}

/// Returns true if the kernel has refused something for lack of a permission. The verifier refuses programs with other errors.
pub fn is_denied(error: &(dyn Error + 'static)) -> bool {
    let mut causes = iter::successors(Some(error), |error| (*error).source());
    causes.any(|cause| {
        let cause = cause.downcast_ref::<io::Error>();
        cause.is_some_and(|cause| cause.raw_os_error() == Some(libc::EPERM))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use aya::maps::MapError;

    const EVERYBODY: &str = "         0          0 4294967295\n";

    fn said(effective: &str, users: &str) -> String {
        let status = format!("Name:\tvarid\nCapPrm:\t0000000000000000\nCapEff:\t{effective}\n");
        Denied::of(&status, users).to_string()
    }

    #[test]
    fn the_capabilities_that_are_missing_are_named() {
        let none = said("0000000000000000", EVERYBODY);
        assert_eq!(
            none,
            "this process lacks CAP_BPF and CAP_PERFMON, which root has"
        );
        let with_bpf = said("0000008000000000", EVERYBODY);
        assert_eq!(with_bpf, "this process lacks CAP_PERFMON, which root has");
        let with_both = said("000000c000000000", EVERYBODY);
        assert!(with_both.contains("locked down"), "{with_both}");
        let administrator = said("0000000000200000", EVERYBODY);
        assert!(administrator.contains("locked down"), "{administrator}");
        let in_container = said("000001ffffffffff", "0 100000 65536\n");
        assert!(in_container.contains("user namespace"), "{in_container}");
        assert_eq!(said("x", EVERYBODY), none);
    }

    #[test]
    fn a_map_that_is_not_permitted_is_no_map_s_fault() {
        let refused = |code| MapError::CreateError {
            name: "states".to_owned(),
            io_error: io::Error::from_raw_os_error(code),
        };
        assert!(is_denied(&refused(libc::EPERM)));
        assert!(!is_denied(&refused(libc::EINVAL)));
    }
}
