//! Describes the events of a session: what was counted, how often it was sampled, and for how much of the time it was counted.

use serde::{Deserialize, Serialize};
use varid_model::{
    Rate,
    perf::{PERF_COUNT_SW_DUMMY, PERF_TYPE_SOFTWARE},
};

/// An event, as perf_event_open(2) takes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventDesc {
    /// The name, as the user wrote it or perf has it (`cycles:u`, `cpu-clock`).
    pub name: String,
    /// How often it is sampled: the key `frequency` or `period`.
    #[serde(flatten)]
    pub rate: Rate,
    /// `perf_event_attr.type`. An event of several PMUs has the type of the first.
    #[serde(rename = "type")]
    pub kind: u32,
    /// `perf_event_attr.config`.
    pub config: u64,
    /// The place in [`SessionEvents`] of the event that leads its group. `None` if it leads a group or stands alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<usize>,
    /// The nanoseconds in which it was to be counted, summed over CPUs. 0 if that is not known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub enabled_ns: u64,
    /// The part of these nanoseconds in which it had a counter. It is less than the whole if events took turns.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub running_ns: u64,
    /// The unit of its periods. `None` if its type and its number tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<EventUnit>,
}

/// The unit of an event's periods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventUnit {
    /// Bytes.
    Bytes,
    /// What the event's name says.
    Events,
}

impl EventDesc {
    /// Creates an event that belongs to no group.
    #[must_use]
    pub fn new(name: impl Into<String>, rate: Rate, kind: u32, config: u64) -> Self {
        Self {
            name: name.into(),
            rate,
            kind,
            config,
            leader: None,
            enabled_ns: 0,
            running_ns: 0,
            unit: None,
        }
    }

    /// Creates the event of a session without samples, whose counts are exact.
    #[must_use]
    pub fn without_samples(name: impl Into<String>) -> Self {
        let (kind, config) = (PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY.into());
        Self::new(name, Rate::Period(1), kind, config)
    }

    /// Returns the share of the time in which the event had a counter. `None` if it had one all the time, or that is not known.
    #[must_use]
    pub fn multiplexed(&self) -> Option<f64> {
        // Reading two clocks takes a moment, which does not count as another event's turn.
        let shared = self.running_ns < self.enabled_ns.saturating_sub(self.enabled_ns / 1_000);
        shared.then(|| self.running_ns as f64 / self.enabled_ns as f64)
    }

    /// Estimates the count of the whole time from what was counted in the event's share of it. Returns `None` if it never had a counter.
    #[must_use]
    pub fn estimate(&self, counted: u64) -> Option<u64> {
        if self.multiplexed().is_none() {
            return Some(counted);
        }
        let scaled = u128::from(counted).saturating_mul(u128::from(self.enabled_ns));
        let scaled = scaled.checked_div(u128::from(self.running_ns))?;
        Some(u64::try_from(scaled).unwrap_or(u64::MAX))
    }
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// The events of a session: at least one. A sample names its event by its place here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEvents {
    /// The first.
    #[serde(rename = "event")]
    pub first: EventDesc,
    /// The others. The members of a group directly follow its leader.
    #[serde(
        default,
        rename = "further_events",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub others: Vec<EventDesc>,
}

impl SessionEvents {
    /// Iterates over all events in order.
    pub fn iter(&self) -> impl Iterator<Item = &EventDesc> + Clone {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Returns their names, separated by commas.
    #[must_use]
    pub fn names(&self) -> String {
        let names: Vec<_> = self.iter().map(|event| event.name.as_str()).collect();
        names.join(", ")
    }

    /// Returns the number of events, at least one.
    #[must_use]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.others.len().saturating_add(1)
    }

    /// Returns the event in this place.
    #[must_use]
    pub fn get(&self, place: usize) -> Option<&EventDesc> {
        self.iter().nth(place)
    }

    /// Returns the event in this place for changes.
    pub fn get_mut(&mut self, place: usize) -> Option<&mut EventDesc> {
        match place.checked_sub(1) {
            None => Some(&mut self.first),
            Some(other) => self.others.get_mut(other),
        }
    }

    /// Returns the groups of more than one event: the leader's place and the number of events, the leader included.
    #[must_use]
    pub fn groups(&self) -> Vec<(usize, usize)> {
        let mut groups: Vec<(usize, usize)> = Vec::new();
        for leader in self.iter().filter_map(|event| event.leader) {
            match groups.last_mut() {
                Some((last, members)) if *last == leader => *members = members.saturating_add(1),
                _ => groups.push((leader, 2)),
            }
        }
        groups
    }
}

impl From<EventDesc> for SessionEvents {
    fn from(first: EventDesc) -> Self {
        Self {
            first,
            others: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(enabled_ns: u64, running_ns: u64) -> EventDesc {
        EventDesc {
            enabled_ns,
            running_ns,
            ..EventDesc::new("cycles", Rate::Frequency(997), 0, 0)
        }
    }

    #[test]
    fn a_count_is_scaled_by_the_time_in_which_it_had_no_counter() {
        assert_eq!(event(4_000, 1_000).estimate(10), Some(40));
        assert_eq!(event(4_000, 4_000).estimate(10), Some(10));
        assert_eq!(event(0, 0).estimate(10), Some(10));
        assert_eq!(event(4_000, 0).estimate(10), None);
        assert_eq!(event(u64::MAX, 1).estimate(u64::MAX), Some(u64::MAX));
        assert_eq!(event(1 << 62, 1 << 61).estimate(3), Some(6));
    }

    #[test]
    fn the_moment_between_two_clocks_is_no_multiplexing() {
        assert_eq!(event(1_000_000, 999_500).multiplexed(), None);
        assert_eq!(event(1_000_000, 500_000).multiplexed(), Some(0.5));
        assert_eq!(event(1_000_000, 0).multiplexed(), Some(0.0));
    }

    #[test]
    fn groups_are_runs_of_the_same_leader() {
        let member = |leader| EventDesc {
            leader,
            ..event(0, 0)
        };
        let events = SessionEvents {
            first: member(None),
            others: [Some(0), Some(0), None, None, Some(4)].map(member).to_vec(),
        };
        assert_eq!(events.groups(), [(0, 3), (4, 2)]);
    }
}
