//! The events that measure how long threads wait.

use super::modifiers::Modifiers;
use super::{Encoding, Event, Rate};
use varid_model::perf;
use varid_shim::WaitKind;

/// An event of time, in nanoseconds. A thread is sampled when its waits add up to a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeEvent {
    /// The time of one kind of wait: `off-cpu`, `runnable`.
    Wait(WaitKind),
    /// `wall`: all time of a thread. A timer samples it while the thread runs.
    Wall,
}

const NANOSECONDS: u64 = 1_000_000_000;

impl TimeEvent {
    /// All events of time.
    pub const ALL: [Self; 3] = [
        Self::Wait(WaitKind::Blocked),
        Self::Wait(WaitKind::Runnable),
        Self::Wall,
    ];

    /// The event's name in `-e`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wait(kind) => kind.name(),
            Self::Wall => "wall",
        }
    }

    /// Looks up an event by name. Case is ignored, and underscores equal hyphens.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase().replace('_', "-");
        Self::ALL.into_iter().find(|event| event.name() == name)
    }

    /// Returns true if waits of this kind are samples of the event.
    pub fn has(self, kind: WaitKind) -> bool {
        match self {
            Self::Wait(own) => own == kind,
            Self::Wall => true,
        }
    }

    /// Returns the event under the name that the user gave.
    pub fn event(self, name: &str, rate: Rate) -> Event {
        let (config, rate) = match self {
            Self::Wait(_) => (
                perf::PERF_COUNT_SW_BPF_OUTPUT,
                Rate::Period(nanoseconds(rate)),
            ),
            Self::Wall => (perf::PERF_COUNT_SW_CPU_CLOCK, rate),
        };
        Event {
            name: name.to_owned(),
            encodings: vec![Encoding {
                kind: perf::PERF_TYPE_SOFTWARE,
                config: [u64::from(config), 0, 0],
                cpus: None,
                max_precise: 0,
            }],
            modifiers: Modifiers::default(),
            rate,
            time: Some(self),
            hits: None,
        }
    }
}

/// Returns the period in nanoseconds that corresponds to a rate.
pub fn nanoseconds(rate: Rate) -> u64 {
    match rate {
        Rate::Frequency(hz) => NANOSECONDS.checked_div(hz).unwrap_or(NANOSECONDS).max(1),
        Rate::Period(period) => period.max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frequency_is_a_period_in_nanoseconds() {
        assert_eq!(nanoseconds(Rate::Frequency(1_000)), 1_000_000);
        assert_eq!(nanoseconds(Rate::Frequency(0)), NANOSECONDS);
        assert_eq!(nanoseconds(Rate::Period(0)), 1);
    }

    #[test]
    fn events_of_time_have_their_waits_and_no_others() {
        let has = |name: &str| {
            let event = TimeEvent::named(name).unwrap();
            WaitKind::ALL.map(|kind| event.has(kind))
        };
        assert_eq!(has("off-cpu"), [true, false]);
        assert_eq!(has("RUNNABLE"), [false, true]);
        assert_eq!(has("wall"), [true, true]);
        assert_eq!(TimeEvent::named("off_cpu"), TimeEvent::named("off-cpu"));
        assert_eq!(TimeEvent::named("cpu-clock"), None);
    }
}
