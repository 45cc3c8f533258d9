//! A number with the bounds within which it is known.

/// A cost in the target's unit: cycles or nanoseconds. `low <= value <= high`, not negative; only `high` may be infinite.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Price {
    /// The lower bound.
    pub low: f64,
    /// The estimate.
    pub value: f64,
    /// The upper bound.
    pub high: f64,
}

impl Price {
    /// Nothing.
    pub const ZERO: Self = Self::exact(0.0);

    /// Returns a cost that is known exactly.
    #[must_use]
    pub const fn exact(value: f64) -> Self {
        Self {
            low: value,
            value,
            high: value,
        }
    }

    /// Returns the sum of two costs.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            low: self.low + other.low,
            value: self.value + other.value,
            high: self.high + other.high,
        }
    }

    /// Returns the cost of so many executions.
    #[must_use]
    pub fn times(self, count: u64) -> Self {
        // Nothing of what has no bound is nothing.
        if count == 0 {
            return Self::ZERO;
        }
        // Counts above 2^53 lose their last bits, far below what a cost is known to.
        let count = count as f64;
        Self {
            low: self.low * count,
            value: self.value * count,
            high: self.high * count,
        }
    }

    /// Returns the cost that is one of two, with their mean as the estimate.
    #[must_use]
    pub fn either(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            value: self.value.midpoint(other.value),
            high: self.high.max(other.high),
        }
    }
}
