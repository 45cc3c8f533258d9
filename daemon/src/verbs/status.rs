//! `varid status`: what the daemon is doing.

use super::out::{self, Align};
use crate::cli::FormatArgs;
use crate::control::ControlError;
use crate::control::client;
use crate::control::protocol::{DaemonStatus, Ended, Reply, Request, SessionStatus};
use anyhow::bail;
use serde::Serialize;
use std::process::ExitCode;

/// The JSON form: `daemon` is null where none runs.
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

/// Shows the sessions that run.
pub fn run(format: FormatArgs) -> anyhow::Result<ExitCode> {
    let status = match client::ask(&Request::Status) {
        Ok(Reply::Status(status)) => Some(status),
        Ok(other) => bail!("the daemon answered something else: {other:?}"),
        Err(ControlError::NoDaemon) => None,
        Err(error) => return Err(error.into()),
    };
    if format.json {
        let (daemon, sessions, failed) = match status {
            Some(DaemonStatus {
                pid,
                varid,
                sessions,
                failed,
            }) => (Some(DaemonFacts { pid, varid }), sessions, failed),
            None => (None, Vec::new(), Vec::new()),
        };
        out::json(&Document {
            daemon,
            sessions,
            failed,
        })?;
    } else {
        out::text(&status.map_or_else(
            || "no session runs, no daemon either\n".to_owned(),
            |status| shown(&status),
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn shown(status: &DaemonStatus) -> String {
    let mut text = String::new();
    if status.sessions.is_empty() {
        text.push_str("no session runs\n");
    } else {
        let rows: Vec<_> = status
            .sessions
            .iter()
            .map(|session| {
                [
                    session.target.clone(),
                    session.state.name().to_owned(),
                    session.samples.to_string(),
                    session.lost.to_string(),
                    session.processes.to_string(),
                    format!("{:.1}", session.seconds),
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
        text.push_str(&out::table(head, &rows));
    }
    for session in &status.sessions {
        if let Some(told) = &session.configuration {
            text.push_str(&format!("{}: {told}\n", session.folder.display()));
        }
    }
    for failed in &status.failed {
        let error = failed.error.as_deref().unwrap_or_default();
        text.push_str(&format!("failed: {}: {error}\n", failed.folder.display()));
    }
    text
}
