//! A daemon with its own home, both of which end with the test.

use crate::command::printed;
use crate::testbed::testbed;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// The home of a daemon, including its recordings.
#[derive(Debug)]
pub struct Home(tempfile::TempDir);

impl Home {
    /// Makes an empty home.
    pub fn new() -> Result<Self> {
        Ok(Self(tempfile::tempdir()?))
    }

    /// Returns varid as a command that uses this daemon.
    pub fn varid(&self) -> Result<Command> {
        let mut varid = testbed()?.varid();
        varid.env("VARID_HOME", self.0.path().join("home"));
        Ok(varid)
    }

    /// Returns the path of a file with this name.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.path(name);
        std::fs::write(&path, text)?;
        Ok(path)
    }

    /// Returns the daemon's status.
    pub fn status(&self) -> Result<Value> {
        let status = printed(self.varid()?.args(["status", "--json"]))?;
        Ok(serde_json::from_str(&status)?)
    }

    /// Waits until the daemon's status of its session fulfils a condition. Fails if the daemon or a recorded process
    /// ends before.
    pub fn wait(&self, apps: &mut [&mut Running], until: impl Fn(&Value) -> bool) -> Result<Value> {
        loop {
            let status = self.status()?;
            let session = &status["sessions"][0];
            ensure!(session.is_object(), "it has ended: {status}");
            if until(session) {
                return Ok(session.clone());
            }
            for app in apps.iter_mut() {
                ensure!(app.runs()?, "an app has ended before: {status}");
            }
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Ok(mut varid) = self.varid() {
            let _ = varid.arg("stop").output();
        }
    }
}

/// A process that ends with the test, whether it passes or fails.
#[derive(Debug)]
pub struct Running(pub Child);

impl Running {
    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Returns true if it has not ended.
    pub fn runs(&mut self) -> Result<bool> {
        Ok(self.0.try_wait()?.is_none())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the manifest of a session.
pub fn manifest(session: &Path) -> Result<Value> {
    let path = session.join("session.json");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(serde_json::from_str(&text)?)
}
