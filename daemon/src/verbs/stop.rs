//! `varid stop`: ends sessions and prints where they are.

use crate::control::ControlError;
use crate::control::client;
use crate::control::protocol::{Ended, Reply, Request, SessionStatus};
use crate::control::running;
use crate::output;
use crate::sessions::{self, Listed};
use anyhow::{Context, bail};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Delay before the command says which process it waits for.
const PATIENCE: Duration = Duration::from_secs(5);

/// The interval at which the end of a `varid record` is checked.
const TURN: Duration = Duration::from_millis(20);

/// Ends one session or all. Returns when they are complete.
pub fn run(session: Option<String>) -> anyhow::Result<ExitCode> {
    // A relative path is relative to this command's working folder, not to the daemon's.
    let which = session.map(|which| match std::path::absolute(&which) {
        Ok(path) if which.contains('/') || Path::new(&which).is_dir() => {
            path.to_string_lossy().into_owned()
        }
        _ => which,
    });
    let daemon = match client::ask(&Request::Status) {
        Ok(Reply::Status(status)) => Some(status),
        Ok(other) => bail!("the daemon answered something else: {other:?}"),
        Err(ControlError::NoDaemon) => None,
        Err(error) => return Err(error.into()),
    };
    let foreground = running::in_foreground(daemon.as_ref().map(|daemon| daemon.pid))?;
    let mut running = daemon.map_or_else(Vec::new, |daemon| daemon.sessions);
    running.extend(foreground);
    if running.is_empty() {
        bail!("no session runs");
    }
    let whole = which.is_none();
    let chosen = match which {
        Some(which) => {
            let one = running::find(&running, SessionStatus::clone, &which);
            vec![one.map_err(anyhow::Error::msg)?.clone()]
        }
        None => running,
    };
    let mut failed = false;
    for ended in end(&chosen, whole)? {
        let lost = if ended.lost == 0 {
            String::new()
        } else {
            format!(", {} lost", ended.lost)
        };
        output::text(&format!(
            "{} samples{lost} in {}\n",
            ended.samples,
            ended.folder.display()
        ))?;
        if let Some(error) = ended.error {
            output::message(&format!("varid: {}: {error}", ended.session));
            failed = true;
        }
    }
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Ends sessions, waits until they are complete, and prints the results. `all`: these are all running sessions.
fn end(sessions: &[SessionStatus], all: bool) -> anyhow::Result<Vec<Ended>> {
    let (foreground, daemons): (Vec<_>, Vec<_>) = sessions
        .iter()
        .partition(|session| session.recorder.is_some());
    for session in &foreground {
        match recorder(session).map(|pid| kill(pid, Signal::SIGTERM)) {
            // It has already ended by itself.
            Some(Ok(()) | Err(Errno::ESRCH)) | None => {}
            Some(Err(error)) => {
                let folder = session.folder.display();
                return Err(error).with_context(|| format!("cannot end what records {folder}"));
            }
        }
    }
    let named = |session: &&SessionStatus| match session.folder.as_os_str().is_empty() {
        // It is still starting.
        true => session.target.clone(),
        false => session.folder.display().to_string(),
    };
    let stopped = match daemons.first() {
        None => Ok(Vec::new()),
        Some(first) => client::ask(&Request::Stop {
            session: (!all).then(|| named(first)),
        })
        .map_err(anyhow::Error::from)
        .and_then(|reply| match reply {
            Reply::Stopped { sessions } => Ok(sessions),
            other => bail!("the daemon answered something else: {other:?}"),
        }),
    };
    let ended = foreground.into_iter().map(|session| {
        wait_for(session);
        let Listed {
            session,
            samples,
            lost,
            folder,
            error,
            ..
        } = sessions::look(session.folder.clone());
        Ended {
            session,
            folder,
            samples,
            lost,
            error,
        }
    });
    let ended: Vec<_> = ended.collect();
    stopped.map(|stopped| stopped.into_iter().chain(ended).collect())
}

/// Returns the `varid record` that records a session.
fn recorder(session: &SessionStatus) -> Option<Pid> {
    let pid = i32::try_from(session.recorder?).ok()?;
    Some(Pid::from_raw(pid))
}

/// Waits until a session is complete, or its recorder has ended: another one may then record into the same folder.
fn wait_for(session: &SessionStatus) {
    let (recorder, begun) = (recorder(session), Instant::now());
    let mut has_said = false;
    while sessions::is_being_recorded(&session.folder)
        && recorder.is_none_or(|pid| kill(pid, None) != Err(Errno::ESRCH))
    {
        if begun.elapsed() > PATIENCE && !std::mem::replace(&mut has_said, true) {
            let folder = session.folder.display();
            output::message(&match recorder {
                Some(pid) => format!(
                    "varid: process {pid}, which records {folder}, has been told to end; waiting for it"
                ),
                None => format!("varid: waiting for {folder} to be complete"),
            });
        }
        std::thread::sleep(TURN);
    }
}
