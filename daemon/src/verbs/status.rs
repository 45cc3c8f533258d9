//! `varid status`: shows what the daemon and each `varid record` are doing.

use crate::cli::FormatArgs;
use crate::control::ControlError;
use crate::control::client;
use crate::control::protocol::{DaemonStatus, Ended, Reply, Request, SessionStatus};
use crate::control::running;
use crate::output::{self, Align};
use anyhow::bail;
use serde::Serialize;
use std::process::ExitCode;

/// The JSON form. `daemon` is null if none is running.
#[derive(Serialize)]
struct Document {
    daemon: Option<DaemonFacts>,
    sessions: Vec<SessionStatus>,
    failed: Vec<Ended>,
}

#[derive(Serialize)]
struct DaemonFacts {
    pid: u32,
    varid: String,
}

/// Shows the running sessions.
pub fn run(format: FormatArgs) -> anyhow::Result<ExitCode> {
    let status = match client::ask(&Request::Status) {
        Ok(Reply::Status(status)) => Some(status),
        Ok(other) => bail!("the daemon answered something else: {other:?}"),
        Err(ControlError::NoDaemon) => None,
        Err(error) => return Err(error.into()),
    };
    let foreground = running::in_foreground(status.as_ref().map(|status| status.pid))?;
    if format.json {
        let (daemon, mut sessions, failed) = match status {
            Some(DaemonStatus {
                pid,
                varid,
                sessions,
                failed,
            }) => (Some(DaemonFacts { pid, varid }), sessions, failed),
            None => (None, Vec::new(), Vec::new()),
        };
        sessions.extend(foreground);
        output::json(&Document {
            daemon,
            sessions,
            failed,
        })?;
    } else {
        output::text(&shown(status, foreground))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn shown(daemon: Option<DaemonStatus>, foreground: Vec<SessionStatus>) -> String {
    let none = match &daemon {
        Some(_) => "no session runs\n",
        None => "no session runs, no daemon either\n",
    };
    let (mut sessions, failed) =
        daemon.map_or_else(Default::default, |daemon| (daemon.sessions, daemon.failed));
    sessions.extend(foreground);
    let mut text = String::new();
    if sessions.is_empty() {
        text.push_str(none);
    } else {
        let rows: Vec<_> = sessions
            .iter()
            .map(|session| {
                [
                    session.target.clone(),
                    session.state.name().to_owned(),
                    session.counts.samples.to_string(),
                    session.counts.lost.to_string(),
                    session
                        .counts
                        .processes
                        .map_or("-".to_owned(), |count| count.to_string()),
                    format!("{:.1}", session.counts.seconds),
                    session.folder.display().to_string(),
                ]
            })
            .collect();
        let head = [
            ("TARGET", Align::Left),
            ("STATE", Align::Left),
            ("SAMPLES", Align::Right),
            ("LOST", Align::Right),
            ("PROCESSES", Align::Right),
            ("SECONDS", Align::Right),
            ("SESSION", Align::Left),
        ];
        text.push_str(&output::table(head, &rows));
    }
    for session in &sessions {
        if let Some(report) = &session.configuration {
            text.push_str(&format!("{}: {report}\n", session.folder.display()));
        }
        if let Some(recorder) = session.recorder {
            let folder = session.folder.display();
            text.push_str(&format!(
                "{folder}: by 'varid record', process {recorder}\n"
            ));
        }
    }
    for failed in &failed {
        let error = failed.error.as_deref().unwrap_or_default();
        text.push_str(&format!("failed: {}: {error}\n", failed.folder.display()));
    }
    text
}
