//! `varid daemon`: serves until a signal arrives.

use crate::control::server::Daemon;
use crate::priority;
use crate::sandbox::{self, Recorded};
use std::process::ExitCode;
use std::time::Duration;
use varid_vm::VmKinds;

/// How long a daemon that `start` has started stays without a running session.
const IDLE: Duration = Duration::from_secs(10);

/// Serves in the foreground. `background`: started by `start`.
pub fn run(background: bool, vms: VmKinds) -> anyhow::Result<ExitCode> {
    if background {
        // The daemon must not get signals of the terminal that it was started in. This fails only for the leader of a process
        // group, which is not the case.
        let _ = nix::unistd::setsid();
        close_inherited();
    }
    priority::raise();
    sandbox::enter(Recorded::Events)?;
    Daemon::open(background.then_some(IDLE), vms)?.run();
    Ok(ExitCode::SUCCESS)
}

/// Closes descriptors that the user's shell had open. If inherited, they would keep pipes open or prevent the unmounting of a file
/// system.
fn close_inherited() {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten();
    let inherited: Vec<i32> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2)
        .collect();
    for fd in inherited {
        // This program has not opened any yet, and the folder's own is already closed.
        let _ = nix::unistd::close(fd);
    }
}
