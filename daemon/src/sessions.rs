//! The sessions of a user: those in their folder, and those that were recorded elsewhere, each of which has a link there.

use crate::control::protocol::{Activity, SessionStatus};
use crate::paths::{self, LAST};
use anyhow::Context;
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::geteuid;
use serde::Serialize;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use varid_model::Rate;
use varid_recording::{
    Manifest, PERF_DATA, Record, SESSION_JSON, SessionReader, State, TargetKind,
};

/// The state of a session that runs.
const RECORDING: &str = "recording";

/// What has been recorded.
#[derive(Debug, Serialize)]
pub struct Listed {
    /// The last part of its folder.
    pub session: String,
    /// `recording`, `complete`, `failed`; `interrupted`: its recorder was killed, what it had
    /// written is there; `unreadable`.
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

/// Those of this user, oldest first.
///
/// # Errors
///
/// The folder of sessions exists and cannot be read.
pub fn all() -> anyhow::Result<Vec<Listed>> {
    let folder = paths::sessions();
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read {}", folder.display()));
        }
    };
    let mut sessions: Vec<_> = entries
        .flatten()
        .filter(|entry| entry.file_name() != LAST)
        // What a link leads to may be gone, or have moved.
        .filter_map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_symlink() => fs::read_link(entry.path()).ok(),
            Ok(kind) => kind.is_dir().then(|| entry.path()),
            Err(_) => None,
        })
        // One whose start failed or was killed has no records.
        .filter(|path| path.join(SESSION_JSON).is_file() && path.join(PERF_DATA).is_file())
        .map(look)
        .collect();
    sessions.sort_by(|a, b| (&a.started, &a.session).cmp(&(&b.started, &b.session)));
    Ok(sessions)
}

/// Those that a `varid record` of this user is recording, oldest first, each with its process; `daemon`: whose are not meant.
///
/// # Errors
///
/// Those of [`all`].
pub fn in_foreground(daemon: Option<u32>) -> anyhow::Result<Vec<SessionStatus>> {
    let live = all()?
        .into_iter()
        .filter(|listed| listed.state == RECORDING);
    let status = |listed: Listed| {
        let manifest = Manifest::read(&listed.folder.join(SESSION_JSON)).ok()?;
        let recorder = recorder(&listed.folder).filter(|recorder| Some(*recorder) != daemon)?;
        let (frequency, period) = match manifest.events.first.rate {
            Rate::Frequency(hz) => (Some(hz), None),
            Rate::Period(period) => (None, Some(period)),
        };
        Some(SessionStatus {
            session: listed.session,
            target: listed.target,
            state: Activity::Recording,
            event: manifest.events.names(),
            frequency,
            period,
            source: manifest.source.name().to_owned(),
            samples: manifest.counts.samples,
            lost: manifest.counts.lost,
            processes: None,
            seconds: listed.seconds,
            bytes: fs::metadata(listed.folder.join(PERF_DATA)).map_or(0, |file| file.len()),
            folder: listed.folder,
            notes: manifest.notes,
            configuration: None,
            recorder: Some(recorder),
        })
    };
    Ok(live.filter_map(status).collect())
}

/// The one of that name, folder or target among those that run, or why it is none or several. A relative path is no folder.
pub fn find<'a, T>(
    running: &'a [T],
    status: impl Fn(&T) -> SessionStatus,
    which: &str,
) -> Result<&'a T, String> {
    let folder = Path::new(which);
    let of = |matches: &dyn Fn(SessionStatus) -> bool| -> Vec<&T> {
        running
            .iter()
            .filter(|session| matches(status(session)))
            .collect()
    };
    let by_name =
        of(&|status| status.session == which || (folder.is_absolute() && status.folder == folder));
    let found = if by_name.is_empty() {
        of(&|status| status.target == which)
    } else {
        by_name
    };
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err(format!(
            "no session '{which}' runs; 'varid status' lists those that do"
        )),
        several => {
            let folders = several
                .iter()
                .map(|session| status(session).folder.display().to_string());
            let folders = folders.collect::<Vec<_>>().join(", ");
            Err(format!(
                "'{which}' may be any of {folders}: give its folder"
            ))
        }
    }
}

/// The `varid record` of this user that records into a folder: the process in which the lock on it is.
fn recorder(folder: &Path) -> Option<u32> {
    let folder = fs::canonicalize(folder).ok()?;
    let own = geteuid().as_raw();
    let holds = |pid: &u32| {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let is_varid = fs::metadata(&process).is_ok_and(|process| process.uid() == own)
            && fs::read_link(process.join("exe")).is_ok_and(|exe| named(&exe).starts_with("varid"));
        let files = fs::read_dir(process.join("fd"))
            .into_iter()
            .flatten()
            .flatten();
        is_varid
            && files
                .filter(|file| fs::read_link(file.path()).is_ok_and(|path| path == folder))
                .any(|file| locks(&process.join("fdinfo").join(file.file_name())))
    };
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    pids.find(holds)
}

/// Whether a descriptor, of which this is the file in fdinfo, holds the only lock on its file.
fn locks(fdinfo: &Path) -> bool {
    let holds =
        |line: &str| line.starts_with("lock:") && line.contains("FLOCK") && line.contains("WRITE");
    fs::read_to_string(fdinfo).is_ok_and(|text| text.lines().any(holds))
}

/// The last part of a path.
fn named(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// What a folder holds.
pub fn look(folder: PathBuf) -> Listed {
    let mut listed = Listed {
        session: named(&folder),
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
        State::Complete => "complete",
        State::Failed => "failed",
        State::Recording if is_being_recorded(&listed.folder) => RECORDING,
        State::Recording => "interrupted",
    };
    listed.started = manifest.wall_start;
    listed.seconds = manifest.duration_ns as f64 / 1e9;
    listed.samples = manifest.counts.samples;
    listed.lost = manifest.counts.lost;
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
pub fn is_being_recorded(folder: &Path) -> bool {
    let Ok(folder) = File::open(folder) else {
        return false;
    };
    matches!(
        Flock::lock(folder, FlockArg::LockSharedNonblock),
        Err((_, nix::errno::Errno::EWOULDBLOCK))
    )
}

/// Bytes that the files in a session's folder, which is two levels deep, take on the disk: code that was made at run time is
/// named by a file with holes.
fn size_of(folder: &Path) -> u64 {
    const BLOCK: u64 = 512;
    let files = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let blocks = |metadata: fs::Metadata| metadata.blocks();
    let blocks: u64 = files(folder)
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => files(&entry.path())
                .filter_map(|entry| entry.metadata().ok().map(blocks))
                .sum(),
            Ok(metadata) => blocks(metadata),
            Err(_) => 0,
        })
        .sum();
    blocks.saturating_mul(BLOCK)
}
