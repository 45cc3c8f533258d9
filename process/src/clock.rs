//! Moments of the monotonic clock.

use std::time::{Duration, Instant};

/// The moment that is `patience` from now; a patience beyond the clock's end is none at all.
pub fn after(patience: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(patience).unwrap_or(now)
}
