//! The sessions of a user: those in the sessions folder, and links in it to those that were recorded elsewhere.

use crate::paths;
use anyhow::Context;
use nix::fcntl::{Flock, FlockArg};
use serde::Serialize;
use std::fs::{self, File};
use std::io;
#[cfg(feature = "host")]
use std::io::Read;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
#[cfg(feature = "host")]
use varid_import::perfdata::is_perf_data;
use varid_model::MonotonicNs;
#[cfg(feature = "host")]
use varid_recording::RAW_DATA;
use varid_recording::manifest::rfc3339;
use varid_recording::{
    CONTEXTS_DATA, Manifest, PERF_DATA, RECORDS_DATA, SESSION_JSON, SessionReader, SessionRecord,
    SessionState, SessionTarget, TargetKind,
};
use varid_session::request::{TargetSpec, with_commas};

/// The state of a running session.
pub const RECORDING: &str = "recording";

/// The link to the last recorded session, among the sessions.
pub const LAST: &str = "last";

/// A recorded session.
#[derive(Debug, Serialize)]
pub struct Listed {
    /// The last part of its folder.
    pub session: String,
    /// `recording`, `complete`, `failed`, `interrupted` (its recorder was killed; what it had written is there), or `unreadable`.
    pub state: &'static str,
    /// RFC 3339.
    pub started: String,
    pub seconds: f64,
    pub samples: u64,
    pub lost: u64,
    pub bytes: u64,
    pub target: String,
    pub folder: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Returns the sessions of this user, oldest first.
///
/// # Errors
///
/// The folder of sessions exists and cannot be read.
pub fn all() -> anyhow::Result<Vec<Listed>> {
    let mut sessions: Vec<_> = folders()?.into_iter().map(look).collect();
    sessions.sort_by(|a, b| (&a.started, &a.session).cmp(&(&b.started, &b.session)));
    Ok(sessions)
}

/// Returns the folders of this user's sessions, in no order.
///
/// # Errors
///
/// The folder of sessions exists and cannot be read.
pub fn folders() -> anyhow::Result<Vec<PathBuf>> {
    let folder = paths::sessions();
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read {}", folder.display()));
        }
    };
    let folders = entries
        .flatten()
        .filter(|entry| entry.file_name() != LAST)
        // The target of a link may be gone or moved.
        .filter_map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_symlink() => fs::read_link(entry.path()).ok(),
            Ok(kind) => kind.is_dir().then(|| entry.path()),
            Err(_) => None,
        })
        .filter(|path| path.join(SESSION_JSON).is_file() && has_data(path));
    Ok(folders.collect())
}

/// Returns true if a session's folder has records or calling contexts. If not, its start failed or was killed.
fn has_data(folder: &Path) -> bool {
    [PERF_DATA, RECORDS_DATA, CONTEXTS_DATA]
        .into_iter()
        .any(|name| folder.join(name).is_file())
}

/// Returns the last component of a path.
pub fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Reads the session in a folder.
pub fn look(folder: PathBuf) -> Listed {
    let mut listed = Listed {
        session: file_name(&folder),
        state: "unreadable",
        started: String::new(),
        seconds: 0.0,
        samples: 0,
        lost: 0,
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
        SessionState::Complete => "complete",
        SessionState::Failed => "failed",
        SessionState::Recording if is_being_recorded(&listed.folder) => RECORDING,
        SessionState::Recording => "interrupted",
    };
    listed.started = manifest.wall_start;
    listed.seconds = manifest.duration_ns as f64 / 1e9;
    listed.samples = manifest.counts.samples;
    listed.lost = manifest.counts.lost;
    if listed.state == "interrupted" {
        // The manifest is as old as its last save, but the records are up to date.
        if let Some((samples, last)) = recorded(&listed.folder) {
            listed.samples = samples;
            listed.seconds = last.since(manifest.start_time_ns).as_secs_f64();
        }
    }
    listed.target = shown_target(&manifest.target);
    listed
}

/// Formats a target for lists.
pub fn shown_target(target: &SessionTarget) -> String {
    match target.kind {
        TargetKind::All => "all".to_owned(),
        TargetKind::Pid => format!("pid {}", target.value),
        TargetKind::App | TargetKind::Command | TargetKind::Service | TargetKind::Several => {
            target.value.clone()
        }
    }
}

/// Returns the number of samples in a recording, and the time of the last one.
fn recorded(folder: &Path) -> Option<(u64, MonotonicNs)> {
    let records = SessionReader::open(folder)
        .and_then(|reader| reader.records())
        .ok()?;
    let mut last = None;
    let mut samples = 0u64;
    for record in records.map_while(Result::ok) {
        if let SessionRecord::Sample(sample) = record {
            samples = samples.saturating_add(1);
            last = last.max(Some(sample.time));
        }
    }
    last.map(|last| (samples, last))
}

/// Returns true if the session's writer holds a lock on the folder. The kernel releases the lock of a killed writer.
pub fn is_being_recorded(folder: &Path) -> bool {
    let Ok(folder) = File::open(folder) else {
        return false;
    };
    matches!(
        Flock::lock(folder, FlockArg::LockSharedNonblock),
        Err((_, nix::errno::Errno::EWOULDBLOCK))
    )
}

/// Returns the disk usage of the files in a session's folder, which is three levels deep, in bytes. The symbol file of generated
/// code is sparse.
fn size_of(folder: &Path) -> u64 {
    const BLOCK: u64 = 512;
    blocks_in(folder, 3).saturating_mul(BLOCK)
}

fn blocks_in(folder: &Path, levels: u32) -> u64 {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let blocks = files.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => match levels.checked_sub(1) {
            Some(levels) if levels > 0 => blocks_in(&entry.path(), levels),
            _ => 0,
        },
        Ok(metadata) => metadata.blocks(),
        Err(_) => 0,
    });
    blocks.fold(0, u64::saturating_add)
}

/// Makes the name of a new session from the time and the target.
pub fn name_for(target: &TargetSpec) -> String {
    let what = match target {
        TargetSpec::Named(_, names) => names.clone(),
        TargetSpec::Pids(pids) => format!("pid{}", with_commas(pids)),
        TargetSpec::All => "all".to_owned(),
        TargetSpec::Command(_, line) => {
            let program = line.split_whitespace().next().unwrap_or_default();
            program.rsplit('/').next().unwrap_or_default().to_owned()
        }
    };
    let safe = |c: char| {
        if c.is_ascii_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '_'
        }
    };
    let moment: String = rfc3339(SystemTime::now())
        .chars()
        .filter(char::is_ascii_digit)
        .take(14)
        .collect();
    let what: String = what.chars().map(safe).take(64).collect();
    format!("{moment}-{what}")
}

/// Creates a folder for a new session, with an unused name made from the time and the target.
pub fn create(target: &TargetSpec) -> io::Result<PathBuf> {
    let stem = name_for(target);
    let sessions = paths::sessions();
    paths::make_private(&sessions)?;
    let made = free(&stem, |name| {
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(sessions.join(name))
    });
    made.map(|name| sessions.join(name)).map_err(|error| {
        let path = sessions.join(stem);
        io::Error::new(
            error.kind(),
            format!("cannot create {}: {error}", path.display()),
        )
    })
}

/// Creates something under an unused name: `stem`, or `stem` with a number. Returns the name.
fn free(stem: &str, make: impl Fn(&str) -> io::Result<()>) -> io::Result<String> {
    let mut name = stem.to_owned();
    for number in 1.. {
        match make(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| name),
        }
        name = format!("{stem}.{number}");
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Adds a link to a session that is recorded elsewhere. Removes links to sessions that are gone.
pub fn list_elsewhere(session: &Path, target: &TargetSpec) -> io::Result<()> {
    let sessions = paths::sessions();
    paths::make_private(&sessions)?;
    let session = std::fs::canonicalize(session)?;
    if session.parent() == Some(&std::fs::canonicalize(&sessions)?) {
        return Ok(());
    }
    for entry in std::fs::read_dir(&sessions)?.flatten() {
        let Ok(linked) = std::fs::read_link(entry.path()) else {
            continue;
        };
        if entry.file_name() != LAST && (linked == session || !linked.join(SESSION_JSON).exists()) {
            std::fs::remove_file(entry.path())?;
        }
    }
    free(&name_for(target), |name| {
        std::os::unix::fs::symlink(&session, sessions.join(name))
    })
    .map(drop)
}

/// Makes a session the last one, which reports use by default.
pub fn set_last(session: &Path) -> io::Result<()> {
    let sessions = paths::sessions();
    paths::make_private(&sessions)?;
    let new = sessions.join(format!(".last.{}", std::process::id()));
    std::os::unix::fs::symlink(std::path::absolute(session)?, &new)?;
    std::fs::rename(&new, sessions.join(LAST))
}

/// Returns the folder of a session that is named by its folder, a file in it, its pack, or its name among the sessions.
///
/// # Errors
///
/// Nothing has that name, or it is a file that does not belong to a session.
#[cfg(feature = "host")]
pub fn named(named: &Path) -> anyhow::Result<PathBuf> {
    let shown = named.display();
    if named.is_file() {
        let is_part = [
            CONTEXTS_DATA,
            PERF_DATA,
            RAW_DATA,
            RECORDS_DATA,
            SESSION_JSON,
        ]
        .iter()
        .any(|part| named.ends_with(part));
        let folder = Path::new(".").join(named.parent().unwrap_or(Path::new("")));
        if is_part && folder.join(SESSION_JSON).is_file() {
            // As perf accepts it.
            return Ok(folder);
        }
        if let Some(folder) = crate::packs::folder(named)? {
            return Ok(folder);
        }
        let mut start = [0; 8];
        let is_recording = File::open(named)
            .and_then(|mut file| file.read_exact(&mut start))
            .is_ok_and(|()| is_perf_data(&start));
        anyhow::ensure!(
            !is_recording,
            "{shown} is a recording of another profiler: 'varid import {shown}' makes a session of it"
        );
        anyhow::bail!("{shown} is a file, not a session");
    }
    if named.exists() {
        return Ok(named.to_owned());
    }
    let sessions = paths::sessions();
    let folder = sessions.join(named);
    anyhow::ensure!(
        !matches!(folder.try_exists(), Ok(false)),
        "there is no session '{shown}', here or in {}: 'varid sessions' lists them",
        sessions.display()
    );
    Ok(folder)
}

/// Returns the last session, if there is one.
#[cfg(feature = "host")]
pub fn last() -> io::Result<PathBuf> {
    std::fs::canonicalize(paths::sessions().join(LAST))
}
