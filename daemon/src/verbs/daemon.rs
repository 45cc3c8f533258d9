//! `varid daemon`: serve until a signal comes.

use crate::control::server::Daemon;
use crate::sandbox::{self, Recorded};
use std::process::ExitCode;
use std::time::Duration;
use varid_vm::VmKinds;

/// A daemon that `start` brought up ends when nothing has been recorded for so long.
const IDLE: Duration = Duration::from_secs(10);

/// Serves in the foreground; `background`: as `start` brings it up.
pub fn run(background: bool, vms: VmKinds) -> anyhow::Result<ExitCode> {
    if background {
        // Signals of the terminal that it was started from are not meant for it. It fails
        // only for a leader of a process group, which has none to leave.
        let _ = nix::unistd::setsid();
        close_inherited();
    }
    sandbox::enter(Recorded::Events)?;
    Daemon::open(background.then_some(IDLE), vms)?.run();
    Ok(ExitCode::SUCCESS)
}

/// Descriptors that the user's shell had open for something else: kept, they would keep a pipe
/// from ending or a file system from being unmounted.
fn close_inherited() {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten();
    let inherited: Vec<i32> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2)
        .collect();
    for fd in inherited {
        // Nothing here has opened any yet; the folder's own is closed already.
        let _ = nix::unistd::close(fd);
    }
}
