//! Moments of the monotonic clock.

use nix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};
use varid_model::MonotonicNs;

/// Returns the present time, by the clock of all samples.
pub fn now() -> MonotonicNs {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from);
    let now = now.unwrap_or_default().as_nanos();
    MonotonicNs::new(u64::try_from(now).unwrap_or(u64::MAX))
}

/// Returns the moment `patience` from now. If that is beyond the end of the clock, it is now.
pub fn after(patience: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(patience).unwrap_or(now)
}
