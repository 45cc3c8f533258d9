//! What can be configured?

use super::methods::MethodFilter;
use super::processes::{ProcessPattern, built_in};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;
use varid_model::{Rate, Stack};
use varid_recording::Tactic;

/// A configuration. What a file does not say is empty or None, and is as the command line or the
/// default says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    /// Every process is recorded.
    pub all: bool,
    /// Apps that are recorded, by package.
    pub apps: Vec<ProcessPattern>,
    /// Services that are recorded, by name: of [`Config::service`], or built in.
    pub services: Vec<String>,
    /// Methods that are recorded, of every process.
    pub methods: MethodFilter,
    /// Events, as `-e` takes them.
    pub events: Vec<String>,
    /// How often they are sampled.
    pub rate: Option<Rate>,
    /// How much of each stack.
    pub stack: Option<Stack>,
    /// What happens in the VM.
    pub tactic: Option<Tactic>,
    /// What a session may take.
    pub limits: Limits,
    /// What is asked of some apps besides.
    pub app: BTreeMap<ProcessPattern, AppSettings>,
    /// Services of the user's own, and what is asked of some besides.
    pub service: BTreeMap<String, ServiceSettings>,
}

/// Samples per second that may be asked for.
pub const FREQUENCIES: RangeInclusive<u64> = 1..=1_000_000;
/// Periods that may be asked for.
pub const PERIODS: RangeInclusive<u64> = 1..=1 << 62;
/// How long a session may be asked for, and the same as a text.
pub const DURATIONS: (RangeInclusive<Duration>, &str) = (
    Duration::from_millis(1)..=Duration::from_secs(30 * 24 * 3600),
    "from 1ms to 30 days (720h)",
);

/// What a session may take; it ends, or goes without more, where that is reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// It ends after this long.
    pub duration: Option<Duration>,
    /// It ends when perf.data has so many bytes.
    pub size: Option<u64>,
    /// So many processes are recorded at once, no further ones.
    pub processes: Option<u64>,
}

/// What is asked of an app.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AppSettings {
    /// Methods that are recorded of it, besides those of every process.
    pub methods: MethodFilter,
}

/// A set of processes with a name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceSettings {
    /// Its processes; empty: those of the service of this name that is built in.
    pub processes: Vec<ProcessPattern>,
    /// Methods that are recorded of it, besides those of every process.
    pub methods: MethodFilter,
}

/// Prime, so that sampling does not beat with the program's own loops.
const DEFAULT_FREQUENCY: u64 = 997;

impl Config {
    /// How often events are sampled: as it says, or by default.
    pub fn rate_or_default(&self) -> Rate {
        self.rate.unwrap_or(Rate::Frequency(DEFAULT_FREQUENCY))
    }

    /// The processes of a service; None: there is none of this name.
    pub fn processes_of(&self, service: &str) -> Option<Vec<ProcessPattern>> {
        let own = self.service.get(service).map(|service| &service.processes);
        match own.filter(|own| !own.is_empty()) {
            Some(own) => Some(own.clone()),
            None => built_in(service),
        }
    }

    /// The names of all services that there are: the configured ones, then those that are built in.
    pub fn known_services(&self) -> Vec<&str> {
        let own = self.service.keys().map(String::as_str);
        let built_in = super::BUILT_IN.iter().map(|(name, _)| *name);
        let built_in = built_in.filter(|name| !self.service.contains_key(*name));
        own.chain(built_in).collect()
    }

    /// Why a service is not known.
    pub fn no_service(&self, name: &str) -> String {
        const SHOWN: usize = 24;
        let known = self.known_services();
        let more = if known.len() > SHOWN {
            " and others"
        } else {
            ""
        };
        let known: Vec<_> = known.into_iter().take(SHOWN).collect();
        let known = known.join(", ");
        format!("no service is called '{name}': {known}{more} are; [service.{name}] makes one")
    }
}
