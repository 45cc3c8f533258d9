//! Where does a session go, and in which form?

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The session's folder and what it holds, as far as only a command line can say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutputRequest {
    /// The session's folder; None: a new one among the sessions.
    pub folder: Option<PathBuf>,
    /// Compress the records.
    pub compress: bool,
    /// Keep the kernel's own samples beside ours.
    pub keep_raw: bool,
    /// Of which files the session keeps the symbols.
    pub keep_symbols: KeepSymbols,
    /// With [`varid_recording::Tactic::MethodInvoke`]: VMs also write a line for each call.
    pub log_calls: bool,
}

/// Of which files a session keeps the symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeepSymbols {
    /// Those that their paths do not lead to.
    #[default]
    OfUnreachable,
    /// All that were sampled.
    OfAll,
}

impl KeepSymbols {
    /// As a flag says it.
    #[must_use]
    pub const fn of_all_if(all: bool) -> Self {
        match all {
            true => Self::OfAll,
            false => Self::OfUnreachable,
        }
    }
}
