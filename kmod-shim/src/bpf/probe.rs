//! The shim on a uprobe or kprobe, or on a dynamic event of tracefs, which is one of these.

use super::object::{Object, object};
use super::{BpfError, Hook, Shim, Variant, map_error, run_at};
use aya::Ebpf;
use aya::maps::Stack;
use std::io;
use std::os::fd::BorrowedFd;

/// The programs.
pub(super) static OBJECT: Object = object!("probe");

/// The variant with bpf_loop, then the one without.
pub(super) static VARIANTS: [Variant; 2] = [
    Variant {
        entry: "varid_probe",
        any: "varid_probe_any",
    },
    Variant {
        entry: "varid_probe_no_loop",
        any: "varid_probe_any_no_loop",
    },
];

/// What a hit of a probe counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HitWeight {
    /// One.
    One,
    /// The bytes of an allocation in HotSpot: the probed function takes its `Klass`, its address and its bytes. The record has the `Klass`.
    Allocation,
}

/// The number of threads that may be preempted while the program captures them. Hits of further threads count as lost.
const PREEMPTED_THREADS: u32 = 32;

/// Returns the number of scratches for a machine with up to `cpus` CPUs.
pub(super) fn scratches(cpus: u32) -> u32 {
    cpus.saturating_add(PREEMPTED_THREADS)
}

/// Makes the scratches available to the program.
pub(super) fn fill(ebpf: &mut Ebpf, scratches: u32) -> Result<(), BpfError> {
    const IDLE: &str = "idle_scratches";
    let idle = ebpf.map_mut(IDLE).ok_or(BpfError::Missing(IDLE))?;
    let mut idle: Stack<_, u32> = Stack::try_from(idle).map_err(map_error(IDLE))?;
    // The last pushed scratch is used most often: it should be the first one.
    (0..scratches)
        .rev()
        .try_for_each(|slot| idle.push(slot, 0))
        .map_err(map_error(IDLE))
}

impl Shim {
    /// Loads the program for a probe. `period`: hits per sample, or what they count as. It runs once it is attached.
    pub fn load_for_probe(
        ring_pages: usize,
        period: u64,
        weight: HitWeight,
    ) -> Result<Self, BpfError> {
        let period = period.max(1);
        Self::load_first_of(&VARIANTS, Hook::Probe { period, weight }, ring_pages.max(1))
    }

    /// Runs the program at each hit of a probe, on all CPUs, until the event is closed.
    pub fn attach_to_probe(&self, event: BorrowedFd<'_>) -> Result<(), io::Error> {
        self.walker
            .with_object(|object| run_at(object, self.variant.entry, event))
            .map_err(io::Error::other)?
    }
}
