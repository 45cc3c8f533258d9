//! The clock of a chunk's events.

/// The clock of a chunk's events.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    /// The beginning of the chunk in nanoseconds since 1970.
    pub(super) start_ns: i64,
    /// The same instant by the clock of the events.
    pub(super) start_ticks: i64,
    /// Not zero.
    pub(super) ticks_per_second: i64,
}

impl Clock {
    /// Returns the time of an event in nanoseconds since 1970.
    pub(super) fn time(self, ticks: i64) -> u64 {
        let since = i128::from(ticks).saturating_sub(self.start_ticks.into());
        let time = self.nanoseconds(since).saturating_add(self.start_ns.into());
        u64::try_from(time.max(0)).unwrap_or(u64::MAX)
    }

    /// Returns a duration in nanoseconds. A negative one is none.
    pub(super) fn duration(self, ticks: i64) -> u64 {
        let duration = self.nanoseconds(ticks.into());
        u64::try_from(duration.max(0)).unwrap_or(u64::MAX)
    }

    fn nanoseconds(self, ticks: i128) -> i128 {
        let ticks = ticks.saturating_mul(1_000_000_000);
        ticks.checked_div(self.ticks_per_second.into()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_from_the_chunk_s_start() {
        let clock = Clock {
            start_ns: 1_000,
            start_ticks: 50,
            ticks_per_second: 500_000_000,
        };
        assert_eq!((clock.time(60), clock.duration(7)), (1_020, 14));
        assert_eq!((clock.time(40), clock.duration(-7)), (980, 0));
        // Neither wraps.
        assert_eq!((clock.time(i64::MIN), clock.time(i64::MAX)), (0, u64::MAX));
    }
}
