//! Starts a daemon if none is running.

use super::client;
use super::error::ControlError;
use super::protocol::{Reply, Request};
use super::runtime::private_runtime;
use super::server::{MAX_LOG, SUCCESSION};
use crate::paths;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use varid_process::clock;

/// How long a new daemon may take to listen. It may first wait for one that is ending.
const PATIENCE: Duration = SUCCESSION.saturating_add(Duration::from_secs(10));
/// The number of attempts for a request. A daemon may end between the connection and the request.
const TRIES: usize = 3;

/// Sends a request to the daemon. Starts a daemon first if none runs.
pub fn ask(request: &Request) -> Result<Reply, ControlError> {
    let mut last = ControlError::NoDaemon;
    for _ in 0..TRIES {
        match client::ask(request) {
            // An idle daemon may end at the moment of the request.
            Err(error @ (ControlError::NoDaemon | ControlError::Gone(_))) => last = error,
            answer => return answer,
        }
        bring_up()?;
    }
    Err(last)
}

fn bring_up() -> Result<(), ControlError> {
    private_runtime()?;
    let path = paths::log();
    let mut log = open_log()?;
    let logged = log
        .seek(SeekFrom::End(0))
        .map_err(ControlError::io("read", &path))?;
    let clone = || log.try_clone().map_err(ControlError::io("open", &path));
    let mut daemon = Command::new("/proc/self/exe");
    let environment = std::env::vars_os().filter(|(name, _)| is_for_the_daemon(name));
    daemon.env_clear().envs(environment);
    if let Some(home) = paths::own_home() {
        // The daemon has another working folder.
        daemon.env(paths::HOME, home);
    }
    let mut child = daemon
        .arg0("varid")
        .args(["daemon", "--background"])
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(clone()?)
        .stderr(clone()?)
        .spawn()
        .map_err(ControlError::io("start", "/proc/self/exe"))?;
    let deadline = clock::after(PATIENCE);
    loop {
        // The child is checked first. If it has ended because another daemon was faster, the connection reaches that daemon.
        let gone = child
            .try_wait()
            .map_err(ControlError::io("wait for", "/proc/self/exe"))?;
        match client::connect() {
            Ok(_) => return Ok(()),
            Err(ControlError::NoDaemon) => {}
            Err(error) => return Err(error),
        }
        if gone.is_some() || Instant::now() >= deadline {
            let said = last_line(&mut log, logged).unwrap_or_default();
            let reason = match gone {
                Some(status) if said.is_empty() => status.to_string(),
                None if said.is_empty() => format!("no answer for {} s", PATIENCE.as_secs()),
                _ => said,
            };
            return Err(ControlError::NotUp { reason, log: path });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns true if the daemon inherits a variable from the environment of the client that starts it. It serves all clients of its user,
/// so it inherits only those that define its user and where its files are.
fn is_for_the_daemon(name: &OsStr) -> bool {
    let name = name.as_bytes();
    let is_own = name.starts_with(b"VARID_") || name.starts_with(b"XDG_");
    let others: [&[u8]; 5] = [
        b"HOME",
        b"SUDO_UID",
        b"SUDO_GID",
        b"NO_COLOR",
        b"RUST_BACKTRACE",
    ];
    is_own || others.contains(&name)
}

fn open_log() -> Result<File, ControlError> {
    let path = paths::log();
    let mut options = OpenOptions::new();
    options
        .create(true)
        .read(true)
        .append(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW);
    let open = || -> io::Result<File> {
        let log = options.open(&path)?;
        if log.metadata()?.len() > MAX_LOG {
            log.set_len(0)?;
        }
        Ok(log)
    };
    open().map_err(ControlError::io("open", &path))
}

fn last_line(log: &mut File, from: u64) -> io::Result<String> {
    let mut text = Vec::new();
    log.seek(SeekFrom::Start(from))?;
    log.take(MAX_LOG).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text)
        .lines()
        .rfind(|line| !line.trim().is_empty())
        .unwrap_or_default()
        .to_owned())
}
