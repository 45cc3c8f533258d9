//! The settings of a configuration.

use super::methods::MethodFilter;
use super::processes::{ProcessPattern, built_in};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;
use varid_model::{Rate, Stack};
use varid_recording::Tactic;

/// A configuration. Settings that the file does not contain are empty or None; the command line or the default applies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    /// Record every process.
    pub all: bool,
    /// Recorded apps, by package.
    pub apps: Vec<ProcessPattern>,
    /// Recorded services, by name: from [`Config::service`], or built in.
    pub services: Vec<String>,
    /// Settings that the command line can also give.
    pub settings: Settings,
    /// Additional settings of some apps.
    pub app: BTreeMap<ProcessPattern, AppSettings>,
    /// Services that the user defines, and additional settings of services.
    pub service: BTreeMap<String, ServiceSettings>,
}

/// Settings of a recording that both a command line and a configuration file can contain. Those that are not given are empty or None.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Recorded methods of every process.
    pub methods: MethodFilter,
    /// Events, in the syntax of `-e`.
    pub events: Vec<String>,
    /// The rate of sampling.
    pub rate: Option<Rate>,
    /// How much of each stack is recorded.
    pub stack: Option<Stack>,
    /// What VMs do at a call.
    pub tactic: Option<Tactic>,
    /// Limits of a session.
    pub limits: Limits,
}

/// Valid frequencies, in samples per second.
pub const FREQUENCIES: RangeInclusive<u64> = 1..=1_000_000;
/// Valid periods.
pub const PERIODS: RangeInclusive<u64> = 1..=1 << 62;
/// Valid durations of a session, and the same as text.
pub const DURATIONS: (RangeInclusive<Duration>, &str) = (
    Duration::from_millis(1)..=Duration::from_secs(30 * 24 * 3600),
    "from 1ms to 30 days (720h)",
);

/// Valid limits of perf.data's size in bytes, and the same as text. Smaller limits would end a session before it has recorded
/// anything; larger ones exceed any disk.
pub const SIZES: (RangeInclusive<u64>, &str) =
    (1_000_000..=1_000_000_000_000_000, "from 1 MB to 1000000 GB");
/// Valid limits of the number of processes.
pub const PROCESSES: RangeInclusive<u64> = 1..=1_000_000;

/// Limits of a session. It ends when one is reached, or stops adding processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// It ends after this long.
    pub duration: Option<Duration>,
    /// It ends when perf.data has this many bytes.
    pub size: Option<u64>,
    /// Maximum number of processes that are recorded at once. Further ones are not recorded.
    pub processes: Option<u64>,
}

/// The settings of an app.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AppSettings {
    /// Methods of it that are recorded, in addition to those of every process.
    pub methods: MethodFilter,
}

/// A named set of processes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceSettings {
    /// Its processes. If empty, those of the built-in service with this name.
    pub processes: Vec<ProcessPattern>,
    /// Methods of it that are recorded, in addition to those of every process.
    pub methods: MethodFilter,
}

/// Prime, so that sampling does not alias with the program's own loops.
const DEFAULT_FREQUENCY: u64 = 997;

impl Settings {
    /// Returns the given or default rate.
    pub fn rate_or_default(&self) -> Rate {
        self.rate.unwrap_or(Rate::Frequency(DEFAULT_FREQUENCY))
    }

    /// Returns these settings, with those of `file` where these have none.
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

    /// Checks that the rate and the limits are within the bounds that apply to the command line and to a file.
    ///
    /// # Errors
    ///
    /// A value is outside its bounds.
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

/// Checks the duration of a session.
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

/// Checks that a number is within its bounds. `what`: the number's name in the error.
///
/// # Errors
///
/// The number is outside them.
pub fn check_within(what: &str, number: u64, bounds: &RangeInclusive<u64>) -> Result<(), String> {
    if bounds.contains(&number) {
        return Ok(());
    }
    let (from, to) = (bounds.start(), bounds.end());
    Err(format!("{what} {number} is not from {from} to {to}"))
}

impl Config {
    /// Returns the processes of a service, or None if there is no such service.
    pub fn processes_of(&self, service: &str) -> Option<Vec<ProcessPattern>> {
        let own = self.service.get(service).map(|service| &service.processes);
        match own.filter(|own| !own.is_empty()) {
            Some(own) => Some(own.clone()),
            None => built_in(service),
        }
    }

    /// Returns the names of all services: the configured ones, then the built-in ones.
    pub fn known_services(&self) -> Vec<&str> {
        let own = self.service.keys().map(String::as_str);
        let built_in = super::BUILT_IN.iter().map(|(name, _)| *name);
        let built_in = built_in.filter(|name| !self.service.contains_key(*name));
        own.chain(built_in).collect()
    }

    /// Returns the message for an unknown service.
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
