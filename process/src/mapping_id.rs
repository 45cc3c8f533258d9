//! How does another crate remember which mappings it has seen?

use std::sync::atomic::{AtomicU64, Ordering};

/// A mapping of an address space as long as it stays what and where it is. Every change gives another id: another mapping at its
/// address, a part of it that is left, the same mapping in a forked process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MappingId {
    /// Its slot in the address space. Few slots are used: one that is free is used again.
    pub slot: u32,
    /// A number that no other mapping of any address space has; 0: it is in none.
    pub serial: u64,
}

/// A number that has not been given before, from 1 on.
pub(crate) fn next_serial() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
}

/// The slots of an address space.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slots {
    /// How many there have been at once.
    used: u32,
    free: Vec<u32>,
}

impl Slots {
    /// The id of a mapping that is new.
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

    /// A mapping has gone.
    pub(crate) fn release(&mut self, id: MappingId) {
        self.free.push(id.slot);
    }
}
