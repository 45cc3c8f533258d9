//! What can be configured?

use super::methods::MethodFilter;
use super::processes::{ProcessPattern, built_in};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;
use varid_model::{Rate, Stack};
use varid_recording::Tactic;

/// A configuration file. What it does not say is empty or None, and is as the command line or the
/// default says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    /// Every process is recorded.
    pub all: bool,
    /// Apps that are recorded, by package.
    pub apps: Vec<ProcessPattern>,
    /// Services that are recorded, by name: of [`Config::service`], or built in.
    pub services: Vec<String>,
    /// What a command line can say, too.
    pub settings: Settings,
    /// What is asked of some apps besides.
    pub app: BTreeMap<ProcessPattern, AppSettings>,
    /// Services of the user's own, and what is asked of some besides.
    pub service: BTreeMap<String, ServiceSettings>,
}

/// What a command line and a configuration file both can say of a recording. What they do not say is empty or None.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Methods that are recorded, of every process.
    pub methods: MethodFilter,
    /// Events, as `-e` takes them.
    pub events: Vec<String>,
    /// How often they are sampled.
    pub rate: Option<Rate>,
    /// How much of each stack.
    pub stack: Option<Stack>,
    /// What VMs do at a call.
    pub tactic: Option<Tactic>,
    /// What a session may take.
    pub limits: Limits,
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

/// Bytes of perf.data that a session may be limited to, and the same as a text. Below, a session would end before it had said anything;
/// above, no disk has so much.
pub const SIZES: (RangeInclusive<u64>, &str) =
    (1_000_000..=1_000_000_000_000_000, "from 1 MB to 1000000 GB");
/// Processes that a session may be limited to.
pub const PROCESSES: RangeInclusive<u64> = 1..=1_000_000;

/// What a session may take; it ends, or goes without more, where that is reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
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

impl Settings {
    /// How often events are sampled: as it says, or by default.
    pub fn rate_or_default(&self) -> Rate {
        self.rate.unwrap_or(Rate::Frequency(DEFAULT_FREQUENCY))
    }

    /// These settings, and those of `file` for what these do not say.
    #[must_use]
    pub fn over(&self, file: Self) -> Self {
        Self {
            methods: match self.methods.is_empty() {
                true => file.methods,
                false => self.methods.clone(),
            },
            events: match self.events.is_empty() {
                true => file.events,
                false => self.events.clone(),
            },
            rate: self.rate.or(file.rate),
            stack: self.stack.or(file.stack),
            tactic: self.tactic.or(file.tactic),
            limits: self.limits.over(file.limits),
        }
    }

    /// Checks that the rate and the limits are within the bounds of the command line and of a file.
    ///
    /// # Errors
    ///
    /// One is not.
    pub fn check(&self) -> Result<(), String> {
        match self.rate {
            Some(Rate::Frequency(hz)) => check_within("frequency", hz, &FREQUENCIES)?,
            Some(Rate::Period(period)) => check_within("period", period, &PERIODS)?,
            None => {}
        }
        self.limits.check()
    }
}

impl Limits {
    fn over(self, file: Self) -> Self {
        Self {
            duration: self.duration.or(file.duration),
            size: self.size.or(file.size),
            processes: self.processes.or(file.processes),
        }
    }

    fn check(self) -> Result<(), String> {
        self.duration.map_or(Ok(()), check_duration)?;
        let (sizes, as_text) = SIZES;
        if self.size.is_some_and(|size| !sizes.contains(&size)) {
            return Err(format!("a size may be {as_text}"));
        }
        let processes = self.processes;
        processes.map_or(Ok(()), |count| {
            check_within("number of processes", count, &PROCESSES)
        })
    }
}

/// Checks that a session may record for so long.
///
/// # Errors
///
/// It is too short or too long.
pub fn check_duration(duration: Duration) -> Result<(), String> {
    let (bounds, as_text) = DURATIONS;
    match bounds.contains(&duration) {
        true => Ok(()),
        false => Err(format!("it may be {as_text}")),
    }
}

/// Checks that a number is within its bounds. `what`: of which number the error speaks.
///
/// # Errors
///
/// It is not.
pub fn check_within(what: &str, number: u64, bounds: &RangeInclusive<u64>) -> Result<(), String> {
    if bounds.contains(&number) {
        return Ok(());
    }
    let (from, to) = (bounds.start(), bounds.end());
    Err(format!("{what} {number} is not from {from} to {to}"))
}

impl Config {
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
