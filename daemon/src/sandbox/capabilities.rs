//! The capabilities that recording needs.

use rustix::io;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, configure_capability_in_ambient_set,
    remove_capability_from_bounding_set, set_capabilities,
};
use varid_sampler::sysctl;

/// With what a capability is needed for.
const NEEDED: CapabilitySet = CapabilitySet::PERFMON // perf_event_open(2) for others, the BPF program's reads
    .union(CapabilitySet::BPF) // bpf(2)
    .union(CapabilitySet::CHECKPOINT_RESTORE) // /proc/PID/map_files
    .union(CapabilitySet::SYS_PTRACE) // others' memory and what /proc says of them
    .union(CapabilitySet::DAC_READ_SEARCH) // the files that they map
    .union(CapabilitySet::SYSLOG) // addresses in /proc/kallsyms
    .union(CapabilitySet::IPC_LOCK) // rings beyond perf_event_mlock_kb
    .union(CapabilitySet::SYS_RESOURCE) // more descriptors than the hard limit, memory for BPF maps before 5.11
    .union(CapabilitySet::DAC_OVERRIDE) // a session in another user's folder
    .union(CapabilitySet::CHOWN) // and to hand it to that user
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::KILL); // the end of a command that has become another user

/// Gives up the others, for good; a helper process is started with these, whoever the user is.
pub fn reduce() -> io::Result<()> {
    let before = capabilities(None)?;
    let kept = before.permitted & needed();
    if before.effective.contains(CapabilitySet::SETPCAP) {
        for capability in CapabilitySet::all().difference(kept).iter() {
            match remove_capability_from_bounding_set(capability) {
                // This kernel does not know it.
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
        // Before 4.3 there is no such set: a helper has what the program's file gives it.
        let _ = configure_capability_in_ambient_set(capability, true);
    }
    Ok(())
}

/// On this kernel.
fn needed() -> CapabilitySet {
    match is_enough() {
        true => NEEDED,
        false => NEEDED | CapabilitySet::SYS_ADMIN,
    }
}

/// Whether the kernel asks for no more than these: CAP_SYS_ADMIN stands for the first three before 5.9, and for CAP_PERFMON
/// where perf_event_paranoid goes beyond 2, as Android's and Debian's kernels have it.
fn is_enough() -> bool {
    const CAP_CHECKPOINT_RESTORE: i64 = 40;
    let last: Option<i64> = sysctl::kernel("cap_last_cap");
    let paranoid: Option<i64> = sysctl::kernel("perf_event_paranoid");
    last.is_some_and(|last| last >= CAP_CHECKPOINT_RESTORE)
        && paranoid.is_some_and(|level| level <= 2)
}
