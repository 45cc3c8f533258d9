//! How much work may one file's debug information cause?

use std::sync::atomic::{AtomicU64, Ordering};

/// Entries that may still be made: units can share line programs, range lists and names, and a
/// hostile file has many share one that is long.
#[derive(Debug, Default)]
pub(super) struct Budget(AtomicU64);

impl Budget {
    /// For debug sections of `bytes` in all: an honest file needs about one entry for a byte.
    pub(super) fn new(bytes: usize) -> Self {
        Self(AtomicU64::new((bytes as u64).saturating_mul(4)))
    }

    /// Takes `entries`; none if too few are left.
    pub(super) fn take(&self, entries: usize) -> Option<()> {
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(entries as u64)
            })
            .ok()
            .map(drop)
    }
}
