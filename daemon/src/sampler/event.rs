//! Which event is sampled, how often, and the kernel's form of it.

use crate::perf_abi as perf;
use crate::sampler::SamplerError;
use std::fs;
use std::os::fd::OwnedFd;

/// A sampling rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// Samples per second and CPU.
    Frequency(u64),
    /// Events from one sample to the next.
    Period(u64),
}

/// An event as perf names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its name, with modifiers: `cycles:u`.
    pub name: String,
    /// `PERF_TYPE_*`.
    pub kind: u32,
    /// `PERF_COUNT_*`.
    pub config: u64,
    /// Only the kernel's part counts.
    pub exclude_user: bool,
    /// Only the user's part counts.
    pub exclude_kernel: bool,
}

/// The events that the kernel itself names (linux/perf_event.h).
const EVENTS: &[(&str, u32, u32)] = &[
    (
        "cycles",
        perf::PERF_TYPE_HARDWARE,
        perf::PERF_COUNT_HW_CPU_CYCLES,
    ),
    (
        "cpu-cycles",
        perf::PERF_TYPE_HARDWARE,
        perf::PERF_COUNT_HW_CPU_CYCLES,
    ),
    (
        "instructions",
        perf::PERF_TYPE_HARDWARE,
        perf::PERF_COUNT_HW_INSTRUCTIONS,
    ),
    (
        "cache-references",
        perf::PERF_TYPE_HARDWARE,
        perf::PERF_COUNT_HW_CACHE_REFERENCES,
    ),
    (
        "cache-misses",
        perf::PERF_TYPE_HARDWARE,
        perf::PERF_COUNT_HW_CACHE_MISSES,
    ),
    (
        "branches",
        perf::PERF_TYPE_HARDWARE,
        perf::PERF_COUNT_HW_BRANCH_INSTRUCTIONS,
    ),
    (
        "branch-misses",
        perf::PERF_TYPE_HARDWARE,
        perf::PERF_COUNT_HW_BRANCH_MISSES,
    ),
    (
        "bus-cycles",
        perf::PERF_TYPE_HARDWARE,
        perf::PERF_COUNT_HW_BUS_CYCLES,
    ),
    (
        "cpu-clock",
        perf::PERF_TYPE_SOFTWARE,
        perf::PERF_COUNT_SW_CPU_CLOCK,
    ),
    (
        "task-clock",
        perf::PERF_TYPE_SOFTWARE,
        perf::PERF_COUNT_SW_TASK_CLOCK,
    ),
    (
        "page-faults",
        perf::PERF_TYPE_SOFTWARE,
        perf::PERF_COUNT_SW_PAGE_FAULTS,
    ),
    (
        "context-switches",
        perf::PERF_TYPE_SOFTWARE,
        perf::PERF_COUNT_SW_CONTEXT_SWITCHES,
    ),
    (
        "cpu-migrations",
        perf::PERF_TYPE_SOFTWARE,
        perf::PERF_COUNT_SW_CPU_MIGRATIONS,
    ),
];

impl Event {
    /// The names that [`Event::parse`] knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        EVENTS.iter().map(|(name, ..)| *name)
    }

    /// Parses `NAME[:uk]`.
    pub fn parse(text: &str) -> Result<Self, SamplerError> {
        let (name, modifiers) = text.split_once(':').unwrap_or((text, ""));
        let known = EVENTS.iter().find(|(known, ..)| *known == name);
        let (_, kind, config) = known.ok_or_else(|| SamplerError::UnknownEvent {
            event: text.to_owned(),
            known: EVENTS
                .iter()
                .map(|(name, ..)| *name)
                .collect::<Vec<_>>()
                .join(", "),
        })?;
        if let Some(unknown) = modifiers.chars().find(|c| !"uk".contains(*c)) {
            return Err(SamplerError::UnknownModifier {
                event: text.to_owned(),
                modifier: unknown,
            });
        }
        let only = |c| modifiers.contains(c) && modifiers.len() == 1;
        Ok(Self {
            name: text.to_owned(),
            kind: *kind,
            config: u64::from(*config),
            exclude_user: only('k'),
            exclude_kernel: only('u'),
        })
    }

    /// `cycles` where a PMU is there and counts, else `cpu-clock`.
    pub fn default_of_this_machine() -> Self {
        let cpu_clock = Self {
            name: "cpu-clock".to_owned(),
            kind: perf::PERF_TYPE_SOFTWARE,
            config: u64::from(perf::PERF_COUNT_SW_CPU_CLOCK),
            exclude_user: false,
            exclude_kernel: false,
        };
        Self::parse("cycles")
            .ok()
            .filter(|cycles| cycles.opens())
            .unwrap_or(cpu_clock)
    }

    /// Whether this process may count the event in its own user code.
    pub fn opens(&self) -> bool {
        let mut attr = self.attr(Rate::Period(1_000_000));
        attr.set_exclude_kernel(true);
        open(&mut attr, 0, -1).is_ok()
    }

    /// The attribute that all uses of the event share: on CLOCK_MONOTONIC, disabled, with
    /// the same identification behind every record.
    pub fn attr(&self, rate: Rate) -> perf::perf_event_attr {
        let mut attr = base_attr(self.kind, self.config);
        attr.set_exclude_user(self.exclude_user);
        attr.set_exclude_kernel(self.exclude_kernel);
        attr.set_exclude_hv(true);
        match rate {
            Rate::Frequency(hz) => {
                attr.set_freq(true);
                attr.sample_period = hz;
            }
            Rate::Period(period) => attr.sample_period = period,
        }
        attr
    }
}

/// What every record of every event of ours ends with (`sample_id_all`), and samples begin
/// with: this is what `decode` relies on.
pub const COMMON_SAMPLE: u64 = (perf::PERF_SAMPLE_IDENTIFIER
    | perf::PERF_SAMPLE_TID
    | perf::PERF_SAMPLE_TIME
    | perf::PERF_SAMPLE_CPU) as u64;

/// An attribute with the common settings.
pub fn base_attr(kind: u32, config: u64) -> perf::perf_event_attr {
    let mut attr = perf::perf_event_attr {
        type_: kind,
        size: size_of::<perf::perf_event_attr>() as u32,
        config,
        sample_type: COMMON_SAMPLE,
        clockid: libc::CLOCK_MONOTONIC,
        ..Default::default()
    };
    attr.set_disabled(true);
    attr.set_sample_id_all(true);
    attr.set_use_clockid(true);
    attr
}

/// perf_event_open for a process (or -1: all) and a CPU (or -1: all).
pub fn open(attr: &mut perf::perf_event_attr, pid: i32, cpu: i32) -> std::io::Result<OwnedFd> {
    perf::perf_event_open(attr, pid, cpu, -1, perf::PERF_FLAG_FD_CLOEXEC)
}

/// The frequency that the kernel allows at most.
pub fn max_frequency() -> Option<u64> {
    fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate")
        .ok()?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modifiers_exclude_the_other_half() {
        let user = Event::parse("cycles:u").unwrap();
        assert!(user.exclude_kernel && !user.exclude_user);
        let both = Event::parse("cycles:uk").unwrap();
        assert!(!both.exclude_kernel && !both.exclude_user);
        assert!(matches!(
            Event::parse("cycles:x"),
            Err(SamplerError::UnknownModifier { modifier: 'x', .. })
        ));
        assert!(
            Event::parse("no-such")
                .unwrap_err()
                .to_string()
                .contains("cpu-clock")
        );
    }
}
