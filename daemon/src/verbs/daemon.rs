//! `varid daemon`: serve until a signal comes.

use crate::control::server::Daemon;
use std::process::ExitCode;
use std::time::Duration;

/// A daemon that `start` brought up ends when nothing has been recorded for so long.
const IDLE: Duration = Duration::from_secs(10);

/// Serves in the foreground; `background`: as `start` brings it up.
pub fn run(background: bool) -> anyhow::Result<ExitCode> {
    if background {
        // Signals of the terminal that it was started from are not meant for it. It fails
        // only for a leader of a process group, which has none to leave.
        let _ = nix::unistd::setsid();
    }
    Daemon::open(background.then_some(IDLE))?.run();
    Ok(ExitCode::SUCCESS)
}
