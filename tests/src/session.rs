//! How is an app recorded? By `varid record`, while its mappings are read as any other process could.

use crate::app::App;
use crate::testbed::testbed;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};

/// A session on disk, and what was seen from outside while it was recorded.
#[derive(Debug)]
pub struct Recording {
    folder: tempfile::TempDir,
    /// What varid printed, and the app.
    pub output: Output,
}

impl Recording {
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
    let varid = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(maps) = maps_of_child(&varid, app) {
        std::fs::write(folder.path().join("maps"), maps)?;
    }
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
    let printed = String::from_utf8_lossy(&recording.output.stdout);
    ensure!(
        printed == app.expected()?,
        "the app printed {printed:?} when it was profiled"
    );
    Ok(recording)
}

/// The mappings of varid's child when the app's files are among them; None: it ended before.
fn maps_of_child(varid: &Child, app: &App) -> Option<String> {
    let files: Vec<String> = [Some(app.dex()), app.library()]
        .into_iter()
        .flatten()
        .map(|path| path.display().to_string())
        .collect();
    let children = format!("/proc/{0}/task/{0}/children", varid.id());
    while Path::new(&format!("/proc/{}/exe", varid.id())).exists() {
        let child = std::fs::read_to_string(&children).unwrap_or_default();
        let Some(child) = child.split_whitespace().next() else {
            std::thread::yield_now();
            continue;
        };
        // An exited child that nobody has waited for has no mappings.
        let maps = std::fs::read_to_string(format!("/proc/{child}/maps")).unwrap_or_default();
        if files.iter().all(|file| maps.contains(file.as_str())) {
            return Some(maps);
        }
        std::thread::yield_now();
    }
    None
}
