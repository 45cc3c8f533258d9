//! Sums up the events that are missing in the counts or the log, by reason.

use std::collections::BTreeMap;
use varid_tunnel::abi;

/// The reason why an event is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Missing {
    /// The VM had no room for a further method.
    Room,
    /// The app cannot write the log.
    Log,
    /// The method could not be named.
    Name,
}

/// The number of missing events of a session, by reason.
#[derive(Debug, Default)]
pub struct MissingEvents(BTreeMap<Missing, u64>);

impl MissingEvents {
    /// Adds the missing events of a process.
    pub fn add(&mut self, missing: impl IntoIterator<Item = (Missing, u64)>) {
        for (missing, events) in missing {
            let sum = self.0.entry(missing).or_default();
            *sum = sum.saturating_add(events);
        }
    }

    /// Returns the session's notes about missing events.
    pub fn sentences(&self) -> impl Iterator<Item = String> {
        let missing = self.0.iter().filter(|(_, events)| **events > 0);
        missing.map(|(missing, events)| match missing {
            Missing::Room => format!(
                "{events} calls, returns and unwinds are not counted: a VM counts {} methods, it called more",
                abi::MAX_CALLS
            ),
            Missing::Log => format!(
                "{events} calls, returns and unwinds are not in the log: the app cannot write it"
            ),
            Missing::Name => format!(
                "{events} calls, returns and unwinds are of methods that could not be named"
            ),
        })
    }
}
