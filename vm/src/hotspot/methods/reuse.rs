//! How soon may a VM use memory again that it has freed?

use std::time::Duration;
use varid_model::MonotonicNs;

/// The VM takes longer than this to free code that a thread has executed, or a method, and to use its memory again.
pub(in crate::hotspot) const REUSED_AFTER: Duration = Duration::from_millis(500);
/// The same for code of a VM that reuses its memory sooner. JDK 17 with a code cache of 8 MB, and classes that are unloaded all the time, took 80 ms
/// or more for each of 7,929 compiled methods, and less than half a second for every second one.
pub(in crate::hotspot) const CODE_REUSED_SOON_AFTER: Duration = Duration::from_millis(30);
/// A VM with less memory for code than this, in bytes, is taken to free code all the time. The least that a VM takes by itself is 48 MB.
pub(in crate::hotspot) const SMALL_CODE_CACHE: u64 = 32 << 20;
/// The same for a VM that unloads classes all the time.
pub(super) const REUSED_SOON_AFTER: Duration = Duration::from_millis(10);
/// A VM that has unloaded classes is taken to do so all the time until it has unloaded none for so long.
pub(in crate::hotspot) const UNLOADS_AGAIN: Duration = Duration::from_secs(2);

/// Returns the time a while before another one.
pub(in crate::hotspot) fn before(time: MonotonicNs, a_while: Duration) -> MonotonicNs {
    let a_while = u64::try_from(a_while.as_nanos()).unwrap_or(u64::MAX);
    MonotonicNs::new(time.get().saturating_sub(a_while))
}
