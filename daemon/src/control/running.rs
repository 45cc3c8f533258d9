//! Finds running sessions, in the daemon or in a `varid record` of this user.

use super::protocol::{Activity, SessionStatus, StatusCounts, StatusSampling};
use crate::sessions::{self, file_name};
use nix::unistd::geteuid;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use varid_recording::{Manifest, PERF_DATA, SESSION_JSON};

/// Returns the sessions that a `varid record` of this user is recording, oldest first. Those of the process `daemon` are left out.
///
/// # Errors
///
/// The errors of [`sessions::all`].
pub fn in_foreground(daemon: Option<u32>) -> anyhow::Result<Vec<SessionStatus>> {
    let live = sessions::all()?
        .into_iter()
        .filter(|listed| listed.state == sessions::RECORDING);
    let status = |listed: sessions::Listed| {
        let manifest = Manifest::read(&listed.folder.join(SESSION_JSON)).ok()?;
        let recorder = recorder(&listed.folder).filter(|recorder| Some(*recorder) != daemon)?;
        Some(SessionStatus {
            session: listed.session,
            target: listed.target,
            state: Activity::Recording,
            sampling: StatusSampling::new(
                manifest.events.names(),
                manifest.events.first.rate,
                manifest.source.name(),
            ),
            counts: StatusCounts {
                samples: manifest.counts.samples,
                lost: manifest.counts.lost,
                processes: None,
                seconds: listed.seconds,
                bytes: fs::metadata(listed.folder.join(PERF_DATA)).map_or(0, |file| file.len()),
            },
            folder: listed.folder,
            notes: manifest.notes,
            configuration: None,
            recorder: Some(recorder),
        })
    };
    Ok(live.filter_map(status).collect())
}

/// Finds the running session with that name, folder or target. Returns an error if there is none or several. A relative path does
/// not name a folder.
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

/// Returns the `varid record` of this user that records into a folder: the process that holds the lock on it.
fn recorder(folder: &Path) -> Option<u32> {
    let folder = fs::canonicalize(folder).ok()?;
    let own = geteuid().as_raw();
    let holds = |pid: &u32| {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let is_varid = fs::metadata(&process).is_ok_and(|process| process.uid() == own)
            && fs::read_link(process.join("exe"))
                .is_ok_and(|exe| file_name(&exe).starts_with("varid"));
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

/// Returns true if a descriptor, of which this is the file in fdinfo, holds the only lock on its file.
fn locks(fdinfo: &Path) -> bool {
    let holds =
        |line: &str| line.starts_with("lock:") && line.contains("FLOCK") && line.contains("WRITE");
    fs::read_to_string(fdinfo).is_ok_and(|text| text.lines().any(holds))
}
