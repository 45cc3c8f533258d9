//! Records when the JIT writes which code.

use crate::app::App;
use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A log of an app's JIT code for the oracle. It is removed when this is dropped.
#[derive(Debug)]
pub struct JitLog(TempDir);

impl JitLog {
    /// Builds the logger.
    pub fn new() -> Result<Self> {
        let log = Self(tempfile::tempdir()?);
        // The JIT may not write anything.
        std::fs::write(log.file(), "")?;
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/jit_log.cc");
        let status = Command::new("c++")
            .args(["-std=c++17", "-O1", "-fPIC", "-shared", "-o"])
            .arg(log.library())
            .arg(&source)
            .status()?;
        ensure!(status.success(), "c++ {}: {status}", source.display());
        Ok(log)
    }

    /// Returns the app with logging enabled.
    #[must_use]
    pub fn written_by(&self, app: App) -> App {
        app.variable("LD_PRELOAD", &self.library())
            .variable("JIT_LOG", &self.file())
    }

    /// Returns the file for the oracle.
    pub fn file(&self) -> PathBuf {
        self.0.path().join("app.jitdump")
    }

    fn library(&self) -> PathBuf {
        self.0.path().join("jit_log.so")
    }
}
