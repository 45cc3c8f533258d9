//! `varid sessions`: lists the recorded sessions.

use crate::cli::FormatArgs;
use crate::output::{self, Align};
use crate::paths;
use crate::sessions::{self, Listed};
use serde::Serialize;
use std::process::ExitCode;

#[derive(Serialize)]
struct Document {
    sessions: Vec<Listed>,
}

/// Lists the sessions, newest last.
pub fn run(format: FormatArgs) -> anyhow::Result<ExitCode> {
    let sessions = sessions::all()?;
    if format.json {
        output::json(&Document { sessions })?;
    } else if sessions.is_empty() {
        output::text(&format!(
            "nothing has been recorded in {}\n",
            paths::sessions().display()
        ))?;
    } else {
        output::text(&shown(&sessions))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn shown(sessions: &[Listed]) -> String {
    let own = paths::sessions();
    let rows: Vec<_> = sessions
        .iter()
        .map(|session| {
            // The form that -i accepts.
            let elsewhere = session.folder.parent() != Some(&*own);
            let named = match elsewhere {
                true => session.folder.display().to_string(),
                false => session.session.clone(),
            };
            [
                named,
                session.state.to_owned(),
                session.started.clone(),
                format!("{:.1}", session.seconds),
                session.samples.to_string(),
                output::size(session.bytes),
                session
                    .error
                    .clone()
                    .unwrap_or_else(|| session.target.clone()),
            ]
        })
        .collect();
    let head = [
        ("SESSION", Align::Left),
        ("STATE", Align::Left),
        ("STARTED", Align::Left),
        ("SECONDS", Align::Right),
        ("SAMPLES", Align::Right),
        ("SIZE", Align::Right),
        ("TARGET", Align::Left),
    ];
    output::table(head, &rows)
}
