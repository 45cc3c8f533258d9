//! The arguments with values that varid knows, so that a shell can offer them.

use clap::{Arg, ValueEnum};

/// Values that a shell offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Values {
    /// Sessions that are there.
    Sessions,
    /// Events that this machine may have.
    Events,
    /// Events of the last session.
    RecordedEvents,
    /// Apps that run, and those that were recorded.
    Apps,
    /// What 'varid help' knows.
    Topics,
}

impl Values {
    /// All kinds of values.
    pub const ALL: [Self; 5] = [
        Self::Sessions,
        Self::Events,
        Self::RecordedEvents,
        Self::Apps,
        Self::Topics,
    ];

    /// The name that `varid complete` takes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Events => "events",
            Self::RecordedEvents => "recorded-events",
            Self::Apps => "apps",
            Self::Topics => "topics",
        }
    }

    /// Returns the values of a verb's argument.
    pub fn of(verb: &str, argument: &Arg) -> Option<Self> {
        const RECORDS: [&str; 4] = ["record", "start", "top", "show"];
        let id = argument.get_id().as_str();
        let named = argument.get_value_names().and_then(|names| names.first());
        match named.map_or(id, |name| name.as_str()) {
            // It is a new session, or one of a device, which is not known here.
            "SESSION" | "session" if id == "output" || verb == "pull" => None,
            "SESSION" | "session" => Some(Self::Sessions),
            "EVENT" if RECORDS.contains(&verb) => Some(Self::Events),
            "EVENT" => Some(Self::RecordedEvents),
            "PACKAGE" => Some(Self::Apps),
            "TOPIC" => Some(Self::Topics),
            _ => None,
        }
    }
}
