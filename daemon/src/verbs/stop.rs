//! `varid stop`: end sessions and say where they are.

use super::out;
use crate::control::ControlError;
use crate::control::client;
use crate::control::protocol::{Reply, Request};
use anyhow::bail;
use std::path::Path;
use std::process::ExitCode;

/// Ends one session or all; returns when they are complete.
pub fn run(session: Option<String>) -> anyhow::Result<ExitCode> {
    // A path is one from here, not from the daemon's working folder.
    let session = session.map(|which| match std::path::absolute(&which) {
        Ok(path) if which.contains('/') || Path::new(&which).is_dir() => {
            path.to_string_lossy().into_owned()
        }
        _ => which,
    });
    let ended = match client::ask(&Request::Stop { session }) {
        Ok(Reply::Stopped { sessions }) => sessions,
        Ok(other) => bail!("the daemon answered something else: {other:?}"),
        Err(ControlError::NoDaemon) => bail!("no session runs"),
        Err(error) => return Err(error.into()),
    };
    let mut failed = false;
    for session in ended {
        let lost = if session.lost == 0 {
            String::new()
        } else {
            format!(", {} lost", session.lost)
        };
        out::text(&format!(
            "{} samples{lost} in {}\n",
            session.samples,
            session.folder.display()
        ))?;
        if let Some(error) = session.error {
            eprintln!("varid: {}: {error}", session.session);
            failed = true;
        }
    }
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
