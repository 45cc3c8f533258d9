//! A separate VARID_HOME for each test, the program in it, and processes to profile.

use serde_json::Value;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use varid_recording::{SessionReader, SessionRecord};

pub const VARID: &str = env!("CARGO_BIN_EXE_varid");

/// A timeout that only a failure reaches; it is no measurement.
const NEVER: Duration = Duration::from_secs(120);

/// A VARID_HOME. Its daemon is ended and its files are removed at the end of the test.
pub struct Home {
    pub path: PathBuf,
}

impl Home {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // Short, because a socket's path has at most 107 bytes.
        let path = std::env::temp_dir().join(format!("varid-{}-{number}", std::process::id()));
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .unwrap();
        Self { path }
    }

    /// Returns a command of the program with these arguments, in this home.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(VARID);
        command
            .args(words)
            .env("VARID_HOME", &self.path)
            .stdin(Stdio::null());
        if words.first() == Some(&"start") && !words.contains(&"--ring-pages") && !is_root() {
            // The memory that an ordinary user may lock must suffice for all simultaneous tests.
            command.args(["--ring-pages", "16"]);
        }
        command
    }

    pub fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Returns the standard output of a command that must succeed.
    pub fn ok(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns the single error line of a command that must fail with exit code 1.
    pub fn fails(&self, words: &[&str]) -> String {
        self.fails_with(1, words)
    }

    /// The same with another exit code.
    pub fn fails_with(&self, code: i32, words: &[&str]) -> String {
        one_line_of_failure(code, &self.run(words))
    }

    pub fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.ok(words)).unwrap()
    }

    pub fn status(&self) -> Value {
        self.json(&["status", "--json"])
    }

    pub fn daemon_pid(&self) -> Option<u32> {
        self.status()["daemon"]["pid"]
            .as_u64()
            .map(|pid| u32::try_from(pid).unwrap())
    }

    /// Returns the running session of a target.
    pub fn session(&self, target: &str) -> Option<Value> {
        find(&self.status(), target)
    }

    /// Returns the recorded sessions, newest last.
    pub fn sessions(&self) -> Vec<Value> {
        self.json(&["sessions", "--json"])["sessions"]
            .as_array()
            .unwrap()
            .clone()
    }

    /// Waits until samples of a target are in its file, and not only counted.
    pub fn wait_for_samples(&self, target: &str) {
        let samples = |home: &Self| home.session(target).unwrap()["samples"].as_u64().unwrap();
        wait_until(&format!("samples of {target}"), || samples(self) > 0);
        let counted = samples(self);
        wait_until(&format!("more samples of {target}"), || {
            samples(self) > counted
        });
    }

    pub fn socket(&self) -> PathBuf {
        self.path.join("run/control.sock")
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let status = self.run(&["status", "--json"]);
        let pid = serde_json::from_slice::<Value>(&status.stdout)
            .ok()
            .and_then(|status| status["daemon"]["pid"].as_u64());
        if let Some(pid) = pid {
            kill(pid as u32, libc::SIGKILL);
        }
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Another user, nobody, with a readable copy of the program.
pub struct User<'a> {
    home: &'a Home,
    program: PathBuf,
}

impl<'a> User<'a> {
    /// Makes the user. Only root can do this.
    pub fn new(home: &'a Home) -> Self {
        let program = home.path.join("varid");
        // By another process: a child of another test could otherwise still have it open for writing.
        let copied = Command::new("cp").arg(VARID).arg(&program).status();
        assert!(copied.unwrap().success());
        open_to(&program, 0o755);
        Self { home, program }
    }

    /// Returns a command of the program as this user, with a home below the test's.
    pub fn command(&self, words: &[&str]) -> Command {
        let own = self.home.path.join("nobody");
        if !own.exists() {
            std::fs::create_dir(&own).unwrap();
            std::os::unix::fs::chown(&own, Some(NOBODY), Some(NOBODY)).unwrap();
            open_to(&self.home.path, 0o755);
        }
        self.in_place(&own, words)
    }

    /// Returns a command of the program as this user, with this home.
    pub fn in_place(&self, place: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(words)
            .env("VARID_HOME", place)
            .stdin(Stdio::null());
        command.uid(NOBODY).gid(NOBODY);
        command
    }
}

/// Sets a file's mode.
pub fn open_to(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// The uid of the user nobody.
pub const NOBODY: u32 = 65534;

fn find(status: &Value, target: &str) -> Option<Value> {
    status["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|session| session["target"] == target)
        .cloned()
}

pub fn one_line_of_failure(code: i32, output: &Output) -> String {
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    let reason: Vec<_> = said
        .lines()
        .filter(|line| line.starts_with("varid: "))
        .collect();
    assert_eq!(reason.len(), 1, "one line says why: {said}");
    reason[0].to_owned()
}

/// Polls until a condition is true.
pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < NEVER, "never came: {what}");
        std::thread::yield_now();
    }
}

pub fn kill(pid: u32, signal: i32) {
    let signal = nix::sys::signal::Signal::try_from(signal).unwrap();
    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), signal);
}

pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// A process that computes until it is dropped. Its name is `name`, like an app's package.
pub struct App(pub Child);

impl App {
    pub fn run(name: &str) -> Self {
        Self::with_work(name, 0)
    }

    /// Makes a process that ends by itself after some rounds.
    pub fn with_work(name: &str, rounds: u64) -> Self {
        let child = Command::new(program())
            .arg0(name)
            .arg(rounds.to_string())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for App {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const SOURCE: &str = "\
#include <stdlib.h>
volatile unsigned long sum;
static void spin(unsigned long n) { for (unsigned long i = 0; !n || i < n; i++) sum += i; }
int main(int argc, char **argv) { spin(argc > 1 ? strtoul(argv[1], 0, 10) : 0); return 0; }
";

/// Returns a C program that computes for a given number of rounds; 0: for ever. It is compiled once.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let mut hasher = DefaultHasher::new();
        SOURCE.hash(&mut hasher);
        let program =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("busy-{:016x}", hasher.finish()));
        if !program.exists() {
            let new = program.with_extension(std::process::id().to_string());
            let mut cc = Command::new("cc")
                .args(["-O1", "-x", "c", "-", "-o"])
                .arg(&new)
                .stdin(Stdio::piped())
                .spawn()
                .expect("a C compiler, cc");
            cc.stdin
                .take()
                .unwrap()
                .write_all(SOURCE.as_bytes())
                .unwrap();
            assert!(cc.wait().unwrap().success());
            // Another test may do the same at this moment: both results are equal.
            std::fs::rename(&new, &program).unwrap();
        }
        program
    })
}

/// Returns the processes with samples in a recording, and the number of samples.
pub fn sampled(session: &Path) -> (BTreeSet<u32>, usize) {
    read(session).unwrap()
}

fn read(session: &Path) -> Result<(BTreeSet<u32>, usize), varid_recording::Error> {
    let reader = SessionReader::open(session)?;
    let mut pids = BTreeSet::new();
    let mut count = 0;
    for record in reader.records()? {
        if let SessionRecord::Sample(sample) = record? {
            pids.insert(sample.pid.get());
            count += 1;
        }
    }
    Ok((pids, count))
}

/// Waits until samples of a process are in a running recording.
pub fn wait_for_process(session: &Path, pid: u32) {
    wait_until(&format!("samples of process {pid}"), || {
        read(session).is_ok_and(|(pids, _)| pids.contains(&pid))
    });
}

/// Returns the folder at the end of a line such as `recording into FOLDER`.
pub fn folder(said: &str) -> PathBuf {
    let line = said
        .lines()
        .find(|line| line.contains(" into ") || line.contains(" in "))
        .unwrap();
    PathBuf::from(&line[line.find('/').unwrap()..])
}
