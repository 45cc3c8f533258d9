//! How is an app recorded? By `varid record`, while its mappings are read as any other process could.

use crate::app::App;
use crate::home::Running;
use crate::process::{is_alive, ticks};
use crate::testbed::testbed;
use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

/// How long a program works before it is looked at, in hundredths of a second of its own: longer than a VM takes from its last
/// mapping until it says that it is up.
const WARM: u64 = 5;

/// Options for samples at a rate by BPF, with the kernel's own beside. The rings hold what comes while varid has no processor for some
/// seconds.
pub fn beside_raw(rate: &str) -> [&str; 7] {
    let pages = "8192";
    [
        "-F",
        rate,
        "--shim",
        "bpf",
        "--keep-raw",
        "--ring-pages",
        pages,
    ]
}

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

/// What a session's notes say of processes.
pub fn processes_noted(session: &Path) -> Result<Vec<String>> {
    let manifest = crate::home::manifest(session)?;
    let notes = manifest["notes"].as_array().into_iter().flatten();
    let notes = notes.filter_map(|note| note.as_str());
    let of_processes = notes.filter(|note| note.starts_with("process "));
    Ok(of_processes.map(str::to_owned).collect())
}

/// How often an app is recorded that was over before its mappings could be read: where the reader stood still meanwhile.
const TRIES: usize = 3;

/// Records an app to its end with `varid record OPTIONS`; it must succeed, and the app's result must be the right one.
pub fn record(app: &App, options: &[&str]) -> Result<Recording> {
    for _ in 1..TRIES {
        let recording = record_once(app, options)?;
        if recording.maps().exists() {
            return Ok(recording);
        }
    }
    record_once(app, options)
}

fn record_once(app: &App, options: &[&str]) -> Result<Recording> {
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
    if let Some(maps) = maps_of_child(&varid, &Ready::app(app)) {
        std::fs::write(folder.path().join("maps"), maps)?;
    }
    let recording = finished(&command, varid.wait_with_output()?, folder)?;
    let printed = String::from_utf8_lossy(&recording.output.stdout);
    ensure!(
        printed == app.expected()?,
        "the app printed {printed:?} when it was profiled"
    );
    Ok(recording)
}

/// Records an app that runs already, from when it is about to call its method to its end.
pub fn attach(app: &App, options: &[&str]) -> Result<Recording> {
    let (recording, printed) = attach_when(&mut app.command(), &Ready::app(app), options)?;
    ensure!(
        printed == app.expected()?,
        "the app printed {printed:?} when it was profiled"
    );
    Ok(recording)
}

/// Records any program that runs already, from when it works with `files` mapped to its end; also what it printed. It stands still
/// until varid samples it: however long that takes, what comes then is recorded.
pub fn attach_to(
    program: &mut Command,
    files: &[String],
    options: &[&str],
) -> Result<(Recording, String)> {
    attach_when(program, &Ready::with_mapped(files), options)
}

/// Records a program that runs already for as long as the options say, from when it works with `files` mapped; then it is ended.
pub fn sample(program: &mut Command, files: &[String], options: &[&str]) -> Result<Recording> {
    Attached::new(program, &Ready::with_mapped(files), options)?.finished()
}

fn attach_when(
    program: &mut Command,
    ready: &Ready,
    options: &[&str],
) -> Result<(Recording, String)> {
    let mut attached = Attached::new(program, ready, options)?;
    let mut printed = Vec::new();
    let stdout = attached.program.0.stdout.take();
    stdout.context("it is piped")?.read_to_end(&mut printed)?;
    attached.program.0.wait()?;
    let recording = attached.finished()?;
    Ok((recording, String::from_utf8_lossy(&printed).into_owned()))
}

/// varid, and the program that it samples.
struct Attached {
    program: Running,
    command: Command,
    varid: Child,
    stderr: BufReader<ChildStderr>,
    said: String,
    folder: tempfile::TempDir,
}

impl Attached {
    /// Starts both.
    fn new(program: &mut Command, ready: &Ready, options: &[&str]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let program = Running(program.stdout(Stdio::piped()).spawn()?);
        let pid = program.pid().to_string();
        ready
            .maps(&pid)
            .and_then(|_| works(&pid))
            .context("it ended before it was looked at")?;
        let process = Pid::from_raw(program.pid().try_into()?);
        kill(process, Signal::SIGSTOP)?;
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
        std::fs::write(folder.path().join("maps"), maps)?;
        let mut command = testbed()?.varid();
        command
            .arg("record")
            .args(options)
            .arg("-o")
            .arg(folder.path().join("session"))
            .args(["--pid", &pid]);
        let mut varid = start(&mut command)?;
        let mut stderr = BufReader::new(varid.stderr.take().context("it is piped")?);
        let mut said = String::new();
        // At its end varid has said why it samples nothing.
        while !said.contains("profiling process") && stderr.read_line(&mut said)? > 0 {}
        kill(process, Signal::SIGCONT)?;
        Ok(Self {
            program,
            command,
            varid,
            stderr,
            said,
            folder,
        })
    }

    /// What varid has made when it ends.
    fn finished(mut self) -> Result<Recording> {
        self.stderr.read_to_string(&mut self.said)?;
        let mut output = self.varid.wait_with_output()?;
        output.stderr = self.said.into_bytes();
        finished(&self.command, output, self.folder)
    }
}

/// Returns when a process has worked for a while from now on; None: it ended before.
fn works(pid: &str) -> Option<()> {
    let begun = ticks(pid)?;
    while is_alive(pid) {
        if ticks(pid)? >= begun + WARM {
            return Some(());
        }
        std::thread::yield_now();
    }
    None
}

/// Starts varid, to be heard when it ends.
fn start(command: &mut Command) -> Result<Child> {
    let piped = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Ok(piped.spawn()?)
}

/// What varid has made, whose end must have been a good one.
fn finished(command: &Command, output: Output, folder: tempfile::TempDir) -> Result<Recording> {
    let recording = Recording { folder, output };
    ensure!(
        recording.output.status.success(),
        "{command:?}: {}\n{}",
        recording.output.status,
        recording.stderr()
    );
    let malformed = &recording.counts()?["malformed"];
    ensure!(
        malformed.is_null(),
        "{command:?}: {malformed} malformed records"
    );
    Ok(recording)
}

/// When a process has all the mappings that its samples are in.
struct Ready {
    /// Its command line begins so.
    name: String,
    /// It has mapped these.
    files: Vec<String>,
}

impl Ready {
    /// The VM is up when the app has its name, and its library is the last.
    fn app(app: &App) -> Self {
        Self {
            name: format!("org.example.{}", app.name),
            files: app.mapped_files(),
        }
    }

    /// A program of any name has mapped these files.
    fn with_mapped(files: &[String]) -> Self {
        Self {
            name: String::new(),
            files: files.to_vec(),
        }
    }

    /// The mappings of a process that is ready; None: it ended before.
    fn maps(&self, pid: &str) -> Option<String> {
        while is_alive(pid) {
            let name = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
            let has_files = self.files.iter().all(|file| is_mapped(file, &maps));
            if has_files && name.starts_with(self.name.as_bytes()) {
                return Some(maps);
            }
            std::thread::yield_now();
        }
        None
    }
}

/// The mappings of varid's child when it is ready; None: it ended before.
fn maps_of_child(varid: &Child, ready: &Ready) -> Option<String> {
    let children = format!("/proc/{0}/task/{0}/children", varid.id());
    while is_alive(&varid.id().to_string()) {
        let child = std::fs::read_to_string(&children).unwrap_or_default();
        if let Some(child) = child.split_whitespace().next() {
            return ready.maps(child);
        }
        std::thread::yield_now();
    }
    None
}

/// Whether a file is mapped; of a library, whose parts are mapped one after the other, its code.
fn is_mapped(file: &str, maps: &str) -> bool {
    let is_library = file.ends_with(".so");
    // A memfd has a word more behind its name.
    let mut lines = maps.lines().filter(|line| line.contains(file));
    lines.any(|line| !is_library || line.contains(" r-xp "))
}
