//! `varid sessions`: what has been recorded.

use super::out::{self, Align};
use crate::cli::FormatArgs;
use crate::paths;
use anyhow::Context;
use nix::fcntl::{Flock, FlockArg};
use serde::Serialize;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use varid_recording::{
    Manifest, PERF_DATA, Record, SESSION_JSON, SessionReader, State, TargetKind,
};

#[derive(Serialize)]
struct Document {
    sessions: Vec<Listed>,
}

/// A folder among the sessions.
#[derive(Debug, Serialize)]
struct Listed {
    session: String,
    /// `recording`, `complete`, `failed`; `interrupted`: its recorder was killed, what it had
    /// written is there; `unreadable`.
    state: &'static str,
    /// RFC 3339.
    started: String,
    seconds: f64,
    samples: u64,
    bytes: u64,
    target: String,
    folder: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Lists them, newest last.
pub fn run(format: FormatArgs) -> anyhow::Result<ExitCode> {
    let sessions = list(&paths::sessions())?;
    if format.json {
        out::json(&Document { sessions })?;
    } else if sessions.is_empty() {
        out::text(&format!(
            "nothing has been recorded in {}\n",
            paths::sessions().display()
        ))?;
    } else {
        out::text(&shown(&sessions))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn list(folder: &Path) -> anyhow::Result<Vec<Listed>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read {}", folder.display()));
        }
    };
    let mut sessions: Vec<_> = entries
        .flatten()
        // Not the link to the last one.
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        // One whose start failed or was killed has no records.
        .filter(|path| path.join(SESSION_JSON).is_file() && path.join(PERF_DATA).is_file())
        .map(look)
        .collect();
    sessions.sort_by(|a, b| (&a.started, &a.session).cmp(&(&b.started, &b.session)));
    Ok(sessions)
}

fn look(folder: PathBuf) -> Listed {
    let mut listed = Listed {
        session: folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        state: "unreadable",
        started: String::new(),
        seconds: 0.0,
        samples: 0,
        bytes: size_of(&folder),
        target: String::new(),
        folder,
        error: None,
    };
    let manifest = match Manifest::read(&listed.folder.join(SESSION_JSON)) {
        Ok(manifest) => manifest,
        Err(error) => {
            listed.error = Some(error.to_string());
            return listed;
        }
    };
    listed.state = match manifest.state {
        State::Complete => "complete",
        State::Failed => "failed",
        State::Recording if is_being_recorded(&listed.folder) => "recording",
        State::Recording => "interrupted",
    };
    listed.started = manifest.wall_start;
    listed.seconds = manifest.duration_ns as f64 / 1e9;
    listed.samples = manifest.counts.samples;
    if listed.state == "interrupted" {
        // The manifest is as old as its last save; the records are what is there.
        if let Some((samples, last)) = recorded(&listed.folder) {
            listed.samples = samples;
            listed.seconds = last.saturating_sub(manifest.start_time_ns) as f64 / 1e9;
        }
    }
    listed.target = match manifest.target.kind {
        TargetKind::All => "all".to_owned(),
        TargetKind::Pid => format!("pid {}", manifest.target.value),
        TargetKind::App | TargetKind::Command | TargetKind::Service | TargetKind::Several => {
            manifest.target.value
        }
    };
    listed
}

/// How many samples a recording holds, and the time of the last one.
fn recorded(folder: &Path) -> Option<(u64, u64)> {
    let records = SessionReader::open(folder)
        .and_then(|reader| reader.records())
        .ok()?;
    let mut last = None;
    let mut samples = 0u64;
    for record in records.map_while(Result::ok) {
        if let Record::Sample(sample) = record {
            samples = samples.saturating_add(1);
            last = last.max(Some(sample.time));
        }
    }
    last.map(|last| (samples, last))
}

/// Its writer holds a lock on the folder; the kernel releases that of a killed one.
fn is_being_recorded(folder: &Path) -> bool {
    let Ok(folder) = File::open(folder) else {
        return false;
    };
    matches!(
        Flock::lock(folder, FlockArg::LockSharedNonblock),
        Err((_, nix::errno::Errno::EWOULDBLOCK))
    )
}

/// Bytes of the files in a session's folder, which is two levels deep.
fn size_of(folder: &Path) -> u64 {
    let files = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    files(folder)
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => files(&entry.path())
                .filter_map(|entry| entry.metadata().ok())
                .map(|metadata| metadata.len())
                .sum(),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}

fn shown(sessions: &[Listed]) -> String {
    let rows: Vec<_> = sessions
        .iter()
        .map(|session| {
            [
                session.session.clone(),
                session.state.to_owned(),
                session.started.clone(),
                format!("{:.1}", session.seconds),
                session.samples.to_string(),
                out::size(session.bytes),
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
    out::table(head, &rows)
}
