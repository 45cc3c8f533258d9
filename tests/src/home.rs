//! How is a daemon asked? One with a home of its own, which ends with the test.

use crate::command::printed;
use crate::testbed::testbed;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// A home for a daemon, and whatever it records there.
#[derive(Debug)]
pub struct Home(tempfile::TempDir);

impl Home {
    /// Nothing is in it.
    pub fn new() -> Result<Self> {
        Ok(Self(tempfile::tempdir()?))
    }

    /// varid, whose daemon is this one.
    pub fn varid(&self) -> Result<Command> {
        let mut varid = testbed()?.varid();
        varid.env("VARID_HOME", self.0.path().join("home"));
        Ok(varid)
    }

    /// Where a file of this name is, or will be.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.path(name);
        std::fs::write(&path, text)?;
        Ok(path)
    }

    /// What the daemon says of itself.
    pub fn status(&self) -> Result<Value> {
        let status = printed(self.varid()?.args(["status", "--json"]))?;
        Ok(serde_json::from_str(&status)?)
    }

    /// Waits until the daemon says something of its session, as long as it and what it records live.
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

/// A process that ends with the test, whatever becomes of that.
#[derive(Debug)]
pub struct Running(pub Child);

impl Running {
    /// Its id.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Whether it has not ended.
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

/// What a session says of itself.
pub fn manifest(session: &Path) -> Result<Value> {
    let path = session.join("session.json");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(serde_json::from_str(&text)?)
}
