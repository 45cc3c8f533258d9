//! Units of an event's periods.

use varid_model::perf;
use varid_recording::{EventDesc, EventUnit};

/// Returns true if an event's samples are waits of threads, whose weight is their duration.
pub(crate) fn is_wait_event(event: &EventDesc) -> bool {
    // Output of BPF programs of the shim: thread wait times, or a tracepoint (SYSTEM:NAME).
    let by_bpf = event.config == u64::from(perf::PERF_COUNT_SW_BPF_OUTPUT);
    let is_software = event.kind == perf::PERF_TYPE_SOFTWARE;
    event.unit.is_none() && is_software && by_bpf && !event.name.contains(':')
}

/// The unit of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Time: the period of a clock.
    Nanoseconds,
    /// Memory.
    Bytes,
    /// Any other count.
    Events,
    Samples,
}

impl Unit {
    /// Returns the unit of an event's periods.
    pub fn of(event: &EventDesc) -> Self {
        match event.unit {
            Some(EventUnit::Bytes) => return Self::Bytes,
            Some(EventUnit::Events) => return Self::Events,
            None => {}
        }
        let clocks = [
            perf::PERF_COUNT_SW_CPU_CLOCK,
            perf::PERF_COUNT_SW_TASK_CLOCK,
        ];
        let is_clock = clocks.map(u64::from).contains(&event.config) || is_wait_event(event);
        if event.kind == perf::PERF_TYPE_SOFTWARE && is_clock {
            Self::Nanoseconds
        } else {
            Self::Events
        }
    }

    /// Returns the name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::Bytes => "bytes",
            Self::Events => "events",
            Self::Samples => "samples",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use varid_model::Rate;

    #[test]
    fn a_unit_that_an_event_names_precedes_that_of_its_type() {
        let output = u64::from(perf::PERF_COUNT_SW_BPF_OUTPUT);
        let of = |unit| EventDesc {
            unit,
            ..EventDesc::new("alloc", Rate::Period(1), perf::PERF_TYPE_SOFTWARE, output)
        };
        for (unit, expected, is_wait) in [
            (None, Unit::Nanoseconds, true),
            (Some(EventUnit::Bytes), Unit::Bytes, false),
            (Some(EventUnit::Events), Unit::Events, false),
        ] {
            let event = of(unit);
            assert_eq!(
                (Unit::of(&event), is_wait_event(&event)),
                (expected, is_wait)
            );
        }
    }
}
