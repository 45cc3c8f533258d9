//! The target of a session: the processes that it profiles.

use crate::config::{Config, ProcessPattern};
use std::fmt;
use varid_model::Pid;
use varid_recording::TargetKind;

/// The processes that the command line names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TargetRequest {
    /// Packages, as patterns.
    pub apps: Vec<String>,
    /// Names of services.
    pub services: Vec<String>,
    /// Process ids.
    pub pids: Vec<Pid>,
    /// Every process.
    pub all: bool,
}

impl TargetRequest {
    /// Returns true if it names any process.
    pub fn is_named(&self) -> bool {
        let names = !self.apps.is_empty() || !self.services.is_empty();
        names || !self.pids.is_empty() || self.all
    }

    /// Returns the named processes as a configuration, which has no key for process ids.
    pub fn as_configured(&self) -> Config {
        // The patterns were checked when they were parsed.
        let apps = self.apps.iter().flat_map(|app| ProcessPattern::new(app));
        Config {
            all: self.all,
            apps: apps.collect(),
            services: self.services.clone(),
            ..Config::default()
        }
    }

    /// Returns the target: the process ids, else what the configuration names. None if neither names any process.
    pub fn target(&self, config: &Config) -> Option<TargetSpec> {
        match self.pids.as_slice() {
            [] if config.all => Some(TargetSpec::All),
            [] => TargetSpec::named(config),
            pids => Some(TargetSpec::Pids(pids.to_vec())),
        }
    }
}

/// The target of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetSpec {
    /// Processes whose command line has one of the selected names, and their children: the kind of names, and the names as shown.
    Named(TargetKind, String),
    /// These processes and their children.
    Pids(Vec<Pid>),
    /// Every process.
    All,
    /// A command that varid starts, and its children: its process and its command line.
    Command(Pid, String),
}

impl TargetSpec {
    /// Returns the apps and services of a configuration, or None if it has none.
    pub fn named(config: &Config) -> Option<Self> {
        let (apps, services) = (&config.apps, &config.services);
        let kind = match (apps.len(), services.len()) {
            (0, 0) => return None,
            (1, 0) => TargetKind::App,
            (0, 1) => TargetKind::Service,
            _ => TargetKind::Several,
        };
        let apps = apps.iter().map(|app| app.text());
        let names: Vec<_> = apps.chain(services.iter().map(String::as_str)).collect();
        Some(Self::Named(kind, names.join(", ")))
    }
}

impl fmt::Display for TargetSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(_, names) => f.write_str(names),
            Self::Pids(pids) => write!(f, "pid {}", with_commas(pids)),
            Self::Command(pid, _) => write!(f, "pid {pid}"),
            Self::All => f.write_str("all"),
        }
    }
}

/// Formats process ids as the command line takes them.
pub fn with_commas(pids: &[Pid]) -> String {
    let pids: Vec<String> = pids.iter().map(Pid::to_string).collect();
    pids.join(",")
}
