//! Units of an event's periods.

use varid_model::perf;
use varid_recording::EventDesc;

/// Returns true if an event's samples are waits of threads, whose weight is their duration.
pub(crate) fn is_wait_event(event: &EventDesc) -> bool {
    // Output of BPF programs of the shim: thread wait times, or a tracepoint (SYSTEM:NAME).
    let by_bpf = event.config == u64::from(perf::PERF_COUNT_SW_BPF_OUTPUT);
    event.kind == perf::PERF_TYPE_SOFTWARE && by_bpf && !event.name.contains(':')
}

/// The unit of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Time: the period of a clock.
    Nanoseconds,
    /// Any other count.
    Events,
    Samples,
}

impl Unit {
    /// Returns the unit of an event's periods.
    pub fn of(event: &EventDesc) -> Self {
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
            Self::Events => "events",
            Self::Samples => "samples",
        }
    }
}
