//! How soon may a VM use memory again that it has freed?

use std::time::Duration;
use varid_model::MonotonicNs;

/// The VM takes longer than this to free code that a thread has executed, or a method, and to use its memory again.
pub(in crate::hotspot) const REUSED_AFTER: Duration = Duration::from_millis(500);
/// The same for a VM that unloads classes all the time.
pub(super) const REUSED_SOON_AFTER: Duration = Duration::from_millis(10);

/// Returns the time a while before another one.
pub(in crate::hotspot) fn before(time: MonotonicNs, a_while: Duration) -> MonotonicNs {
    let a_while = u64::try_from(a_while.as_nanos()).unwrap_or(u64::MAX);
    MonotonicNs::new(time.get().saturating_sub(a_while))
}
