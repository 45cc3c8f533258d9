//! ART's own method trace of some rounds of an app.

use crate::app::App;
use crate::testbed::{run, testbed};
use anyhow::{Context, Result};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The traces that this process has made, by the app's command line.
static MADE: Mutex<Option<HashMap<Vec<String>, PathBuf>>> = Mutex::new(None);

impl App {
    /// Returns a trace of one round, which is made once in each test program.
    pub fn traced(&self) -> Result<PathBuf> {
        let app = self.clone().without_variables().of_rounds(1);
        let arguments = app.arguments();
        let mut made = MADE
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let made = made.get_or_insert_default();
        if let Some(trace) = made.get(&arguments) {
            return Ok(trace.clone());
        }
        let folder = testbed()?.traces.clone();
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        // Another test process may make the same trace.
        let new = tempfile::NamedTempFile::new_in(&folder)?.into_temp_path();
        app.trace_to(&new)?;
        let trace = folder.join(format!("{:016x}", hash(&arguments)));
        new.persist(&trace)?;
        made.insert(arguments, trace.clone());
        Ok(trace)
    }

    /// Writes the trace of a run of the app.
    pub fn trace_to(&self, file: &Path) -> Result<()> {
        let options = [
            "-Xmethod-trace",
            &format!("-Xmethod-trace-file:{}", file.display()),
            "-Xmethod-trace-file-size:200000000",
        ];
        let options = options.iter().flat_map(|option| ["--vm-option", option]);
        let app = self.clone().options(&options.collect::<Vec<_>>());
        run(&mut app.command())
    }
}

/// Returns a name for the result of a command line.
fn hash(arguments: &[String]) -> u64 {
    let mut hasher = DefaultHasher::new();
    arguments.hash(&mut hasher);
    hasher.finish()
}
