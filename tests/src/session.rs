//! How is an app recorded? By `varid record`, while its mappings are read as any other process could.

use crate::app::App;
use crate::testbed::testbed;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A session on disk, and what was seen from outside while it was recorded.
#[derive(Debug)]
pub struct Recording {
    folder: tempfile::TempDir,
    /// What varid printed, and the app.
    pub output: Output,
}

impl Recording {
    /// One that was made elsewhere: `fetch` brings its session to a path.
    pub(crate) fn fetched(output: Output, fetch: impl FnOnce(&Path) -> Result<()>) -> Result<Self> {
        let recording = Self {
            folder: tempfile::tempdir()?,
            output,
        };
        ensure!(
            recording.output.status.success(),
            "{}: {}",
            recording.output.status,
            recording.stderr()
        );
        fetch(&recording.session())?;
        Ok(recording)
    }

    /// The session's folder.
    pub fn session(&self) -> PathBuf {
        self.folder.path().join("session")
    }

    /// A copy of the app's /proc/PID/maps.
    pub fn maps(&self) -> PathBuf {
        self.folder.path().join("maps")
    }

    /// The counts in session.json.
    pub fn counts(&self) -> Result<serde_json::Value> {
        let path = self.session().join("session.json");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Ok(serde_json::from_str::<serde_json::Value>(&text)?["counts"].clone())
    }

    /// What was said on standard error.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }
}

/// Records an app to its end with `varid record OPTIONS`; it must succeed, and the app's result must be the right one.
pub fn record(app: &App, options: &[&str]) -> Result<Recording> {
    let folder = tempfile::tempdir()?;
    let mut command = testbed()?.varid();
    command
        .arg("record")
        .args(options)
        .arg("-o")
        .arg(folder.path().join("session"))
        .arg("--")
        .args(app.arguments());
    let varid = start(&mut command)?;
    if let Some(maps) = maps_of_child(&varid, &app.files()) {
        std::fs::write(folder.path().join("maps"), maps)?;
    }
    let recording = finish(&command, varid, folder)?;
    let printed = String::from_utf8_lossy(&recording.output.stdout);
    ensure!(
        printed == app.expected()?,
        "the app printed {printed:?} when it was profiled"
    );
    Ok(recording)
}

/// Records an app that runs already, from when its files are mapped to its end.
pub fn attach(app: &App, options: &[&str]) -> Result<Recording> {
    let (recording, printed) = attach_to(&mut app.command(), &app.files(), options)?;
    ensure!(
        printed == app.expected()?,
        "the app printed {printed:?} when it was profiled"
    );
    Ok(recording)
}

/// Records any program that runs already, from when `files` are mapped to its end; also what it printed.
pub fn attach_to(
    program: &mut Command,
    files: &[String],
    options: &[&str],
) -> Result<(Recording, String)> {
    let folder = tempfile::tempdir()?;
    let child = program.stdout(Stdio::piped()).spawn()?;
    let pid = child.id().to_string();
    if let Some(maps) = maps_with_files(&pid, files) {
        std::fs::write(folder.path().join("maps"), maps)?;
    }
    let mut command = testbed()?.varid();
    command
        .arg("record")
        .args(options)
        .arg("-o")
        .arg(folder.path().join("session"))
        .args(["--pid", &pid]);
    let varid = start(&mut command)?;
    let printed = child.wait_with_output()?.stdout;
    let recording = finish(&command, varid, folder)?;
    Ok((recording, String::from_utf8_lossy(&printed).into_owned()))
}

/// Starts varid, to be heard when it ends.
fn start(command: &mut Command) -> Result<Child> {
    let piped = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Ok(piped.spawn()?)
}

/// Waits for varid's end, which must be a good one.
fn finish(command: &Command, varid: Child, folder: tempfile::TempDir) -> Result<Recording> {
    let recording = Recording {
        output: varid.wait_with_output()?,
        folder,
    };
    ensure!(
        recording.output.status.success(),
        "{command:?}: {}\n{}",
        recording.output.status,
        recording.stderr()
    );
    Ok(recording)
}

/// The mappings of varid's child when the files are among them; None: it ended before.
fn maps_of_child(varid: &Child, files: &[String]) -> Option<String> {
    let children = format!("/proc/{0}/task/{0}/children", varid.id());
    while is_alive(&varid.id().to_string()) {
        let child = std::fs::read_to_string(&children).unwrap_or_default();
        if let Some(child) = child.split_whitespace().next() {
            return maps_with_files(child, files);
        }
        std::thread::yield_now();
    }
    None
}

/// The mappings of a process when the files are among them; None: it ended before.
fn maps_with_files(pid: &str, files: &[String]) -> Option<String> {
    while is_alive(pid) {
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        if files.iter().all(|file| maps.contains(file.as_str())) {
            return Some(maps);
        }
        std::thread::yield_now();
    }
    None
}

/// Whether a process runs: one that nobody has waited for does not.
pub fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ")
        .next()
        .is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}
