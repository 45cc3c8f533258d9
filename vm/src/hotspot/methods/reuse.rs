//! How soon may a VM use memory again that it has freed?

use std::time::Duration;
use varid_model::MonotonicNs;

/// The VM takes longer than this to free code that a thread has executed, or a method, and to use its memory again.
pub(in crate::hotspot) const REUSED_AFTER: Duration = Duration::from_millis(500);

/// Returns since when there was what was read at a time. `replaces`: something else was seen in its place before.
pub(in crate::hotspot) fn there_since(read: MonotonicNs, replaces: bool) -> MonotonicNs {
    match replaces {
        true => read,
        false => {
            let reused_after = u64::try_from(REUSED_AFTER.as_nanos()).unwrap_or(u64::MAX);
            MonotonicNs::new(read.get().saturating_sub(reused_after))
        }
    }
}
