//! The budget for the work that the debug information of one file may cause.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of table entries that may still be made. Units can share line programs, range lists and names: in a hostile file
/// many units share a long one.
#[derive(Debug, Default)]
pub(super) struct Budget(AtomicU64);

impl Budget {
    /// For debug sections of `bytes` in total. A compiler's output needs about one entry per byte; four are allowed.
    pub(super) fn new(bytes: usize) -> Self {
        Self(AtomicU64::new((bytes as u64).saturating_mul(4)))
    }

    /// Takes `entries`. `None` if fewer are left.
    pub(super) fn take(&self, entries: usize) -> Option<()> {
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(entries as u64)
            })
            .ok()
            .map(drop)
    }
}
