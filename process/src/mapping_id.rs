//! Ids by which other crates recognise mappings.

use std::sync::atomic::{AtomicU64, Ordering};

/// Identifies a mapping of an address space while its place and its contents are unchanged. Every change gives another id: another mapping
/// at its address, a remaining part of it, the same mapping in a forked process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MappingId {
    /// Its slot in the address space. Slots are reused, so that few are needed.
    pub slot: u32,
    /// A number that no other mapping of any address space has. 0: it is in no address space.
    pub serial: u64,
}

/// Returns a number that has not been returned before, from 1 on.
pub(crate) fn next_serial() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
}

/// The slots of an address space.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slots {
    /// The most slots that were used at the same time.
    used: u32,
    free: Vec<u32>,
}

impl Slots {
    /// Returns the id of a new mapping.
    pub(crate) fn assign(&mut self) -> MappingId {
        let slot = self.free.pop().unwrap_or_else(|| {
            let slot = self.used;
            self.used = self.used.saturating_add(1);
            slot
        });
        MappingId {
            slot,
            serial: next_serial(),
        }
    }

    /// Frees the slot of a mapping that has gone.
    pub(crate) fn release(&mut self, id: MappingId) {
        self.free.push(id.slot);
    }
}
