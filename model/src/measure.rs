//! Times, event counts, and distances in bytecode.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// A moment of `CLOCK_MONOTONIC`, in nanoseconds. Every time in a recording is one.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct MonotonicNs(u64);

impl MonotonicNs {
    /// The start of the clock. Records that hold for the whole recording have this time.
    pub const ZERO: Self = Self(0);

    /// A time later than any in a recording.
    pub const MAX: Self = Self(u64::MAX);

    /// Makes the time at this many nanoseconds.
    #[must_use]
    pub const fn new(nanoseconds: u64) -> Self {
        Self(nanoseconds)
    }

    /// Nanoseconds since the clock's start.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The time since an earlier moment. Zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// The weight of a sample, in the event's own unit.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Period(u64);

impl Period {
    /// Makes a period of this many events.
    #[must_use]
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The number of events.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// A distance in bytecode, in the bytecode's own unit: 16 bits for dex, a byte for class files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CodeUnits(u32);

impl CodeUnits {
    /// Makes a distance of this many units.
    #[must_use]
    pub const fn new(units: u32) -> Self {
        Self(units)
    }

    /// The number of units.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The distance in bytes, for units of this size.
    #[must_use]
    pub const fn to_bytes(self, unit: u8) -> u64 {
        (self.0 as u64).saturating_mul(unit as u64)
    }
}

impl fmt::Display for MonotonicNs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_differ_by_a_duration_and_never_by_less_than_nothing() {
        let (early, late) = (MonotonicNs::new(5), MonotonicNs::new(12));
        assert_eq!(late.since(early), Duration::from_nanos(7));
        assert_eq!(early.since(late), Duration::ZERO);
    }

    #[test]
    fn dex_counts_in_units_of_two_bytes() {
        assert_eq!(CodeUnits::new(7).to_bytes(2), 14);
        assert_eq!(CodeUnits::new(u32::MAX).to_bytes(2), 0x1_ffff_fffe);
    }
}
