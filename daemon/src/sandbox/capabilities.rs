//! The capabilities that recording needs.

use rustix::io;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, configure_capability_in_ambient_set,
    remove_capability_from_bounding_set, set_capabilities,
};
use varid_sampler::sysctl;

use super::Recorded;

/// The capabilities, each with its use.
const NEEDED: CapabilitySet = CapabilitySet::PERFMON // perf_event_open(2) for others, the BPF program's reads
    .union(CapabilitySet::BPF) // bpf(2)
    .union(CapabilitySet::CHECKPOINT_RESTORE) // /proc/PID/map_files
    .union(CapabilitySet::SYS_PTRACE) // memory and /proc files of other users' processes
    .union(CapabilitySet::DAC_READ_SEARCH) // the files that those map
    .union(CapabilitySet::SYSLOG) // addresses in /proc/kallsyms
    .union(CapabilitySet::IPC_LOCK) // rings beyond perf_event_mlock_kb
    .union(CapabilitySet::SYS_RESOURCE) // more descriptors than the hard limit, memory for BPF maps before 5.11
    .union(CapabilitySet::DAC_OVERRIDE) // a session in another user's folder
    .union(CapabilitySet::CHOWN) // the owner of that session
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::KILL); // ending a launched command that has changed its user

/// Drops all other capabilities permanently. The helper process that varid starts inherits the remaining ones, even if the user is not root.
pub fn reduce(recorded: Recorded) -> io::Result<()> {
    let before = capabilities(None)?;
    let kept = before.permitted & needed(recorded);
    if before.effective.contains(CapabilitySet::SETPCAP) {
        for capability in CapabilitySet::all().difference(kept).iter() {
            match remove_capability_from_bounding_set(capability) {
                // The kernel is older than this capability.
                Err(io::Errno::INVAL) => {}
                removed => removed?,
            }
        }
    }
    set_capabilities(
        None,
        CapabilitySets {
            effective: kept & before.effective,
            permitted: kept,
            inheritable: kept,
        },
    )?;
    for capability in kept.iter() {
        // Linux before 4.3 has no ambient set: the helper has the capabilities of the program's file.
        let _ = configure_capability_in_ambient_set(capability, true);
    }
    Ok(())
}

/// Returns the capabilities that this kernel requires for recording.
fn needed(recorded: Recorded) -> CapabilitySet {
    match recorded {
        Recorded::Events if has_fine_capabilities() => NEEDED,
        Recorded::Events | Recorded::Uprobes => NEEDED | CapabilitySet::SYS_ADMIN,
    }
}

/// Returns true if CAP_PERFMON, CAP_BPF and CAP_CHECKPOINT_RESTORE suffice. Linux before 5.9 requires CAP_SYS_ADMIN instead of them. Kernels
/// of Android and Debian require it instead of CAP_PERFMON if perf_event_paranoid is above 2.
fn has_fine_capabilities() -> bool {
    const CAP_CHECKPOINT_RESTORE: i64 = 40;
    let last: Option<i64> = sysctl::kernel("cap_last_cap");
    let paranoid: Option<i64> = sysctl::kernel("perf_event_paranoid");
    last.is_some_and(|last| last >= CAP_CHECKPOINT_RESTORE)
        && paranoid.is_some_and(|level| level <= 2)
}
