//! Finds probes that have a name in tracefs, such as `perf probe` makes.

use std::fs;
use std::path::Path;

/// The default prefix of perf's dynamic events: `probe:vfs_read`, `probe_libc:malloc`.
const DYNAMIC: &str = "probe";

/// Returns true if a system's events are dynamic ones. Their names may look like modifiers.
pub fn is_dynamic(system: &str) -> bool {
    system == DYNAMIC || system.starts_with("probe_")
}

/// The mount points of tracefs, relative to the root.
const MOUNTS: [&str; 2] = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];
/// Fields that only the samples of probes have: the probed address, or the return address.
const PROBE_FIELDS: [&str; 2] = [" __probe_ip;", " __probe_ret_ip;"];

/// Returns the number of the kprobe or uprobe with this name, or None if there is no such event or it is a tracepoint. The root is `/`
/// except in tests.
pub fn probe_id(root: &Path, system: &str, name: &str) -> Option<u64> {
    let read = |mount: &&str| {
        let event = root.join(mount).join("events").join(system).join(name);
        fs::read_to_string(event.join("format")).ok()
    };
    let format = MOUNTS.iter().find_map(read)?;
    if !PROBE_FIELDS.iter().any(|field| format.contains(field)) {
        return None;
    }
    let id = format.lines().find_map(|line| line.strip_prefix("ID:"))?;
    id.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_have_a_number_and_tracepoints_none() {
        let root = tempfile::tempdir().unwrap();
        let write = |event: &str, format: &str| {
            let folder = root.path().join("sys/kernel/tracing/events").join(event);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("format"), format).unwrap();
        };
        write(
            "probe_libc/malloc",
            "name: malloc\nID: 1713\nformat:\n\tfield:unsigned long __probe_ip;\toffset:8;\tsize:8;\tsigned:0;\n",
        );
        write(
            "sched/sched_switch",
            "name: sched_switch\nID: 316\nformat:\n\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n",
        );
        let id = |system, name| probe_id(root.path(), system, name);
        assert_eq!(id("probe_libc", "malloc"), Some(1713));
        assert_eq!(id("sched", "sched_switch"), None);
        assert_eq!(id("probe_libc", "free"), None);
    }
}
