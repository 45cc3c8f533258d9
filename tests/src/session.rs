//! Records apps by `varid record`, while their mappings are read from outside.

use crate::app::App;
use crate::command::printed;
use crate::home::Running;
use crate::process::{is_alive, ticks};
use crate::testbed::testbed;
use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

/// The CPU time of a program before it is examined, in hundredths of a second. It is longer than a VM takes from its
/// last mapping until it publishes that it is ready.
const WARM: u64 = 5;

/// Options for samples at a rate by BPF, with the kernel's own in addition. The rings have space for several seconds
/// without a processor for varid.
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

/// A session on disk, with observations from outside during the recording.
#[derive(Debug)]
pub struct Recording {
    folder: tempfile::TempDir,
    /// The output of varid and the app.
    pub output: Output,
}

impl Recording {
    /// Moves the session to a path, which may be on another file system.
    ///
    /// # Errors
    ///
    /// It cannot be moved.
    pub fn move_session(&self, to: &Path) -> Result<()> {
        printed(Command::new("mv").arg(self.session()).arg(to)).map(|_| ())
    }

    /// Makes a recording from elsewhere. `fetch` copies its session to a path.
    pub(crate) fn fetched(output: Output, fetch: impl FnOnce(&Path) -> Result<()>) -> Result<Self> {
        let recording = Self {
            folder: in_memory()?,
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

    /// Returns the session's folder.
    pub fn session(&self) -> PathBuf {
        self.folder.path().join("session")
    }

    /// Returns a copy of the app's /proc/PID/maps.
    pub fn maps(&self) -> PathBuf {
        self.folder.path().join("maps")
    }

    /// Returns the counts in session.json.
    pub fn counts(&self) -> Result<serde_json::Value> {
        let path = self.session().join("session.json");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Ok(serde_json::from_str::<serde_json::Value>(&text)?["counts"].clone())
    }

    /// Returns the text on standard error.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }
}

/// Returns the processes in a session's notes.
pub fn processes_noted(session: &Path) -> Result<Vec<String>> {
    let manifest = crate::home::manifest(session)?;
    let notes = manifest["notes"].as_array().into_iter().flatten();
    let notes = notes.filter_map(|note| note.as_str());
    let of_processes = notes.filter(|note| note.starts_with("process "));
    Ok(of_processes.map(str::to_owned).collect())
}

/// The number of attempts to record an app that ends before its mappings can be read because the reader was delayed.
const TRIES: usize = 3;

/// Records an app by `varid record OPTIONS` until it ends. varid must succeed, and the app's result must be correct.
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
    let folder = in_memory()?;
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

/// Makes a temporary folder for a session in memory. With whole stacks and raw samples, a recording has some hundred
/// megabytes per second: on a slow disk varid would wait for it, and read methods too late.
fn in_memory() -> Result<tempfile::TempDir> {
    let memory = Path::new("/dev/shm");
    Ok(match memory.is_dir() {
        true => tempfile::tempdir_in(memory)?,
        false => tempfile::tempdir()?,
    })
}

/// Records a running app, from shortly before it calls its method until it ends.
pub fn attach(app: &App, options: &[&str]) -> Result<Recording> {
    let (recording, printed) = attach_when(&mut app.command(), &Ready::app(app), options)?;
    ensure!(
        printed == app.expected()?,
        "the app printed {printed:?} when it was profiled"
    );
    Ok(recording)
}

/// Records any running program until it ends, from when it works with `files` mapped. The recording includes the
/// program's output. The program is stopped until varid samples it, so that everything afterwards is recorded, however
/// long that takes.
pub fn attach_to(
    program: &mut Command,
    files: &[String],
    options: &[&str],
) -> Result<(Recording, String)> {
    attach_when(program, &Ready::with_mapped(files), options)
}

/// Records a running program for the time in the options, from when it works with `files` mapped. Then the program is
/// ended.
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
        let folder = in_memory()?;
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
        // If varid ends here, its output has the reason.
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

    /// Waits until varid ends, and returns the recording.
    fn finished(mut self) -> Result<Recording> {
        self.stderr.read_to_string(&mut self.said)?;
        let mut output = self.varid.wait_with_output()?;
        output.stderr = self.said.into_bytes();
        finished(&self.command, output, self.folder)
    }
}

/// Waits until a process has worked for a while from now on. None if it ends before.
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

/// Starts varid with piped output.
fn start(command: &mut Command) -> Result<Child> {
    let piped = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Ok(piped.spawn()?)
}

/// Returns the recording. varid must have succeeded.
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

/// The condition under which a process has all mappings that its samples need.
struct Ready {
    /// The prefix of its command line.
    name: String,
    /// The files that it has mapped.
    files: Vec<String>,
}

impl Ready {
    /// The VM is ready when the app has its name and has mapped its library, the last one.
    fn app(app: &App) -> Self {
        Self {
            name: format!("org.example.{}", app.name),
            files: app.mapped_files(),
        }
    }

    /// Accepts a program of any name that has mapped these files.
    fn with_mapped(files: &[String]) -> Self {
        Self {
            name: String::new(),
            files: files.to_vec(),
        }
    }

    /// Returns the mappings of a process that is ready. None if it ended before.
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

/// Returns the mappings of varid's child when it is ready. None if it ended before.
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

/// Returns true if a file is mapped. A library's parts are mapped one after the other; it counts as mapped when its
/// code is.
fn is_mapped(file: &str, maps: &str) -> bool {
    let is_library = file.ends_with(".so");
    // A memfd has an additional word after its name.
    let mut lines = maps.lines().filter(|line| line.contains(file));
    lines.any(|line| !is_library || line.contains(" r-xp "))
}
