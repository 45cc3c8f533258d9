//! Records the session that top shows.
//!
//! `varid record` runs in a separate process, which drops privileges that top keeps. Its output, and that of the command that it launches,
//! would disturb the screen, so the end of it is shown afterwards. The pipe also ties both processes: the recording ends when top is killed.

use crate::cli::{Cli, TopArgs, arguments};
use crate::output;
use crate::sessions;
use crate::verbs::record::TIED;
use anyhow::{Context, bail};
use clap::{ArgMatches, CommandFactory};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::VecDeque;
use std::io::{PipeReader, Read, pipe};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use varid_recording::SESSION_JSON;
use varid_session::request::ConfigError;
use varid_session::request::TargetSpec;

/// Number of bytes of output that are kept.
const KEPT: usize = 64 << 10;
/// How long output may still arrive after the command has ended.
const GRACE: Duration = Duration::from_millis(100);

/// The arguments that belong to top itself, and the session's folder, which top chooses.
const NOT_RECORDS: [&str; 6] = ["session", "delay", "snapshots", "rows", "output", "command"];

/// The recording process.
#[derive(Debug)]
pub struct Recorder {
    child: Child,
    folder: PathBuf,
    output: Arc<Mutex<VecDeque<u8>>>,
    ended: Option<ExitStatus>,
}

impl Recorder {
    /// Starts a recording. The inner error is one of the configuration.
    pub fn start(
        args: &TopArgs,
        matches: &ArgMatches,
    ) -> anyhow::Result<Result<Self, ConfigError>> {
        let configured = match args.record.request().read() {
            Ok(configured) => configured,
            Err(error) => return Ok(Err(error)),
        };
        let words = args.command.iter().map(|word| word.to_string_lossy());
        let line = words.collect::<Vec<_>>().join(" ");
        let target = configured.target();
        let target = target.unwrap_or_else(|| TargetSpec::Command(Default::default(), line));
        let folder = match &args.record.output.folder {
            Some(output) => std::path::absolute(output)?,
            None => sessions::create(&target).context("cannot create a session")?,
        };
        let (reader, writer) = pipe().context("cannot make a pipe")?;
        let errors = writer.try_clone().context("cannot make a pipe")?;
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0("varid")
            .args(["record", "--quiet"])
            .args(arguments::options(&Cli::command(), matches, &NOT_RECORDS))
            .arg("--output")
            .arg(&folder);
        if !args.command.is_empty() {
            command.arg("--").args(&args.command);
        }
        let child = command
            .env(TIED, "1")
            .stdin(Stdio::null())
            .stdout(writer)
            .stderr(errors)
            .spawn()
            .context("cannot start 'varid record'")?;
        // Only the child may have the write ends.
        drop(command);
        let output = Arc::default();
        keep_output(reader, Arc::clone(&output));
        Ok(Ok(Self {
            child,
            folder,
            output,
            ended: None,
        }))
    }

    /// The session's folder. It may not contain a session yet.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns true if it is recording. Returns an error if it has ended without a recording.
    pub fn runs(&mut self) -> anyhow::Result<bool> {
        if self.ended.is_none() {
            self.ended = self
                .child
                .try_wait()
                .context("cannot wait for 'varid record'")?;
        }
        if self.ended.is_none() {
            return Ok(true);
        }
        if !self.folder.join(SESSION_JSON).exists() {
            std::thread::sleep(GRACE);
            // It is empty, or belongs to another session.
            let _ = std::fs::remove_dir(&self.folder);
            let said = self.take_output();
            let said = said.trim();
            bail!("{}", said.strip_prefix("varid: ").unwrap_or(said));
        }
        Ok(false)
    }

    /// Ends the recording. Prints where it is, and the messages of the recorder and the command.
    pub fn end(mut self) -> anyhow::Result<()> {
        if self.ended.is_none() {
            // The id of a process that has not been reaped cannot be reused.
            let pid = i32::try_from(self.child.id()).context("no process")?;
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
            self.child
                .wait()
                .context("cannot wait for 'varid record'")?;
            std::thread::sleep(GRACE);
        }
        let said = self.take_output();
        if !said.is_empty() {
            output::message(said.trim_end());
        }
        if self.folder.join(SESSION_JSON).exists() {
            output::message(&format!(
                "varid: recorded in {}: 'varid report' shows all of it",
                self.folder.display()
            ));
        }
        Ok(())
    }

    fn take_output(&self) -> String {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = output.drain(..).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Reads output until all writers are gone, and keeps the end of it.
fn keep_output(mut reader: PipeReader, output: Arc<Mutex<VecDeque<u8>>>) {
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = reader.read(&mut bytes) {
            let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
            output.extend(bytes.iter().take(count));
            let excess = output.len().saturating_sub(KEPT);
            output.drain(..excess);
        }
    });
}
