//! The request's settings for the session's folder, and what it holds.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The session's folder and what it holds: the settings that a configuration file cannot contain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutputRequest {
    /// The session's folder, or None for a new one among the sessions.
    pub folder: Option<PathBuf>,
    /// Compress the records.
    pub compress: bool,
    /// Keep the kernel's own samples beside varid's.
    pub keep_raw: bool,
    /// The files whose symbols the session keeps.
    pub keep_symbols: KeepSymbols,
    /// With [`varid_recording::Tactic::MethodInvoke`]: VMs also log a line for each call.
    pub log_calls: bool,
}

/// The files whose symbols a session keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeepSymbols {
    /// Files that reports could not find by their paths.
    #[default]
    OfUnreachable,
    /// All sampled files.
    OfAll,
}

impl KeepSymbols {
    /// Converts from a flag.
    #[must_use]
    pub const fn of_all_if(all: bool) -> Self {
        match all {
            true => Self::OfAll,
            false => Self::OfUnreachable,
        }
    }
}
