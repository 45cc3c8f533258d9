//! The arguments of `varid top`.

use super::SessionArgs;
use clap::Args;
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;
use varid_session::config::units;

/// `varid top`.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// Show this session, by folder or by name [default: all that run].
    #[arg(value_name = "SESSION", conflicts_with_all = ["apps", "services", "pids", "all", "command"])]
    pub session: Option<PathBuf>,
    /// Show anew after so many seconds (or with a unit: 500ms).
    #[arg(short, long, value_name = "T", default_value = "1", value_parser = parse_delay)]
    pub delay: Duration,
    /// Print so many times as text, one each --delay, and end: no terminal is needed.
    #[arg(short = 'n', long, value_name = "N")]
    pub snapshots: Option<NonZeroU32>,
    /// With -n: so many rows.
    #[arg(long, value_name = "N", default_value_t = 20, requires = "snapshots")]
    pub rows: usize,
    /// Launch a command and profile it, or, with --all or --pid, those until it ends. What it writes is shown when top ends.
    #[arg(last = true)]
    pub command: Vec<OsString>,
    #[command(flatten)]
    pub record: SessionArgs,
}

impl TopArgs {
    /// Returns true if a session is to be recorded.
    pub fn records(&self) -> bool {
        let target = &self.record.target;
        target.all
            || !(self.command.is_empty()
                && target.apps.is_empty()
                && target.services.is_empty()
                && target.pids.is_empty())
            || self.record.sampling.config.is_some()
    }
}

fn parse_delay(text: &str) -> Result<Duration, String> {
    const SHORTEST: Duration = Duration::from_millis(100);
    let delay = units::duration(text)?;
    if delay < SHORTEST {
        return Err("it is at least 100ms".to_owned());
    }
    Ok(delay)
}
