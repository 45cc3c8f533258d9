//! What the numbers of an event count.

use varid_model::perf;
use varid_recording::EventDesc;

/// Whether an event's samples are waits of threads, each of which weighs as long as it took.
pub(crate) fn is_wait_event(event: &EventDesc) -> bool {
    // What programs of the BPF shim tell: the time that threads wait, or a tracepoint, SYSTEM:NAME.
    let by_bpf = event.config == u64::from(perf::PERF_COUNT_SW_BPF_OUTPUT);
    event.kind == perf::PERF_TYPE_SOFTWARE && by_bpf && !event.name.contains(':')
}

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Of time: the period of a clock.
    Nanoseconds,
    /// Of anything else that has a period.
    Events,
    Samples,
}

impl Unit {
    /// What the periods of an event count.
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

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::Events => "events",
            Self::Samples => "samples",
        }
    }
}
