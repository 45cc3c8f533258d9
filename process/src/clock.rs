//! Moments of the monotonic clock.

use std::time::{Duration, Instant};

/// Returns the moment `patience` from now. If that is beyond the end of the clock, it is now.
pub fn after(patience: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(patience).unwrap_or(now)
}
