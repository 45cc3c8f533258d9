//! The target of a session: the processes that it profiles.

use crate::config::{Config, ProcessPattern};
use serde::{Deserialize, Serialize};
use std::fmt;
use varid_model::Pid;
use varid_recording::TargetKind;

/// The requested processes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum TargetRequest {
    /// The processes that the configuration file names.
    #[default]
    Configured,
    /// The processes of apps and services, and their children.
    Named {
        /// Packages, as patterns.
        #[serde(default)]
        apps: Vec<ProcessPattern>,
        /// Names of services.
        #[serde(default)]
        services: Vec<String>,
    },
    /// These processes and their children.
    Pids(Vec<Pid>),
    /// Every process.
    All,
    /// The command that is launched for the recording, and its children.
    Command,
}

impl TargetRequest {
    /// Checks that a client of the daemon may request these processes.
    pub(super) fn check(&self) -> Result<(), String> {
        match self {
            Self::Pids(pids) if pids.is_empty() => {
                Err("an empty list of process ids names no process".to_owned())
            }
            Self::Command => Err("a daemon launches no command".to_owned()),
            _ => Ok(()),
        }
    }

    /// Returns the configuration with these processes instead of its own. Process ids and a command have no key in a configuration.
    #[must_use]
    pub fn over(&self, config: Config) -> Config {
        let (all, apps, services) = match self {
            Self::Configured => return config,
            Self::Named { apps, services } => (false, apps.clone(), services.clone()),
            Self::Pids(_) | Self::Command => (false, Vec::new(), Vec::new()),
            Self::All => (true, Vec::new(), Vec::new()),
        };
        Config {
            all,
            apps,
            services,
            ..config
        }
    }

    /// Returns the target: the process ids, or else the apps and services of the configuration. None if neither names a
    /// process. `config` is the result of [`over`](Self::over).
    pub fn target(&self, config: &Config) -> Option<TargetSpec> {
        match self {
            Self::Pids(pids) => Some(TargetSpec::Pids(pids.clone())),
            _ if config.all => Some(TargetSpec::All),
            _ => TargetSpec::named(config),
        }
    }
}

/// The target of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetSpec {
    /// Processes whose command line has one of the selected names, and their children. The fields are the kind of
    /// names, and the names as shown.
    Named(TargetKind, String),
    /// These processes and their children.
    Pids(Vec<Pid>),
    /// Every process.
    All,
    /// A command that varid starts, and its children. The fields are its process and its command line.
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
