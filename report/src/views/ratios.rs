//! Computes ratios of the events in a group.

use crate::{columns::Value, profile::Profile, weights::EventId};

/// The ratios of an event to others in its group.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Ratios {
    /// For instructions: instructions per cycle.
    per_cycle: Option<f64>,
    /// For other events: number per thousand instructions.
    per_thousand: Option<f64>,
}

impl Ratios {
    /// Returns the ratios of each of these counts. Only events in one group are counted at the same time.
    pub fn of_group(profile: &Profile, counts: &[(EventId, u64)]) -> Vec<Self> {
        let group = |id: EventId| profile.description(id).leader.unwrap_or(id.index());
        let counted = |id: EventId, names: &[&str]| {
            let other = counts.iter().find(|(other, _)| {
                let name = plain(&profile.description(*other).name);
                group(*other) == group(id) && names.contains(&name)
            });
            other.map(|(_, count)| *count)
        };
        let ratios = |&(id, count): &(EventId, u64)| {
            if plain(&profile.description(id).name) == "instructions" {
                let cycles = counted(id, &CYCLES);
                return Self {
                    per_cycle: cycles.and_then(|cycles| ratio(count, cycles)),
                    per_thousand: None,
                };
            }
            let instructions = counted(id, &["instructions"]);
            let per_instruction = instructions.and_then(|all| ratio(count, all));
            Self {
                per_cycle: None,
                per_thousand: per_instruction.map(|ratio| ratio * 1_000.0),
            }
        };
        counts.iter().map(ratios).collect()
    }

    /// Instructions per cycle. Absent for other events.
    pub fn per_cycle<'p>(self) -> Value<'p> {
        self.per_cycle.map_or(Value::Absent, Value::Ratio)
    }

    /// Number per thousand instructions. Absent for instructions.
    pub fn per_thousand<'p>(self) -> Value<'p> {
        self.per_thousand.map_or(Value::Absent, Value::Ratio)
    }
}

/// The names of the event that counts cycles.
const CYCLES: [&str; 2] = ["cycles", "cpu-cycles"];

/// Returns true if an event with this name counts cycles.
pub fn is_cycles(name: &str) -> bool {
    CYCLES.contains(&plain(name))
}

/// Returns an event's name without modifiers.
pub fn plain(name: &str) -> &str {
    name.split(':').next().unwrap_or(name)
}

#[allow(clippy::cast_precision_loss)] // six decimals are shown at most
fn ratio(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}
