//! Boots an ARM board with the programs under test, once for each test program that needs it.
//!
//! QEMU emulates the board. Its kernel and root file system are Debian's (`board/` beside this folder). Tests connect
//! by adb through a server of their own. Emulator and server end with the test program, however it ends.

mod compiled;
mod emulator;
mod java;
mod judged;
mod made;
mod module;

use crate::app::App;
use crate::session::Recording;
use anyhow::{Context, Result, bail, ensure};
pub use compiled::{BoardCode, CompiledApp};
use emulator::{AdbServer, Emulator};
pub use java::board_with_java;
use made::{Made, succeeded};
pub use module::board_with_module;
use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The processor of a board, as the scripts of `board/` name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Processor {
    /// 64-bit ARM: a Cortex-A57.
    Arm64,
    /// 32-bit ARM: a Cortex-A15. Its kernel has no BTF.
    Armhf,
}

impl Processor {
    fn name(self) -> &'static str {
        match self {
            Self::Arm64 => "arm64",
            Self::Armhf => "armhf",
        }
    }

    /// Returns the prefix of cross compilers.
    fn triplet(self) -> &'static str {
        match self {
            Self::Arm64 => "aarch64-linux-gnu",
            Self::Armhf => "arm-linux-gnueabihf",
        }
    }
}

/// A running board.
#[derive(Debug)]
pub struct Board {
    processor: Processor,
    emulator: Emulator,
    server: AdbServer,
    serial: String,
}

/// A running board, or the reason why it did not boot.
type Booted = std::result::Result<Mutex<Board>, String>;

/// Returns the 64-bit board, for one test at a time. None if the test must be skipped; the reason is printed.
pub fn board(test: &str) -> Result<Option<MutexGuard<'static, Board>>> {
    board_of(Processor::Arm64, test)
}

/// Like [`board`], for the board with this processor.
pub fn board_of(processor: Processor, test: &str) -> Result<Option<MutexGuard<'static, Board>>> {
    static ARM64: OnceLock<Booted> = OnceLock::new();
    static ARMHF: OnceLock<Booted> = OnceLock::new();
    let Some(made) = Made::for_board(processor, test)? else {
        return Ok(None);
    };
    let board = match processor {
        Processor::Arm64 => &ARM64,
        Processor::Armhf => &ARMHF,
    };
    let boot = || Board::boot(processor, made).map_err(|error| format!("{error:#}"));
    match board.get_or_init(|| boot().map(Mutex::new)) {
        Err(error) => bail!("{error}"),
        // After a failed test, other tests may still pass on the board.
        Ok(board) => Ok(Some(board.lock().unwrap_or_else(PoisonError::into_inner))),
    }
}

impl Board {
    /// The folder on the board with varid, artvm, its agent and libraries, boot.dex and the workloads.
    pub const PROGRAMS: &str = "/data/local/tmp/programs";

    /// The folder on the board with the last session of [`Board::record`].
    pub const SESSION: &str = "/data/local/tmp/session";

    fn boot(processor: Processor, made: &Made) -> Result<Self> {
        let server = AdbServer::start(&made.target.join("board/adb"), processor.name())?;
        let emulator = Emulator::start(|port| {
            let mut boot = made.boot();
            boot.args(["adb", port]);
            boot
        })?;
        let serial = format!("127.0.0.1:{}", emulator.port());
        let board = Self {
            processor,
            emulator,
            server,
            serial,
        };
        board.await_adb().with_context(|| board.console())?;
        board.check(&format!("mkdir {}", Self::PROGRAMS))?;
        board.push(made.programs()?, Self::PROGRAMS)?;
        Ok(board)
    }

    /// Waits until adb is connected to the board. Fails if that never happens. A connection that takes too long is made
    /// again.
    pub fn await_adb(&self) -> Result<()> {
        let begun = Instant::now();
        let (name, value) = self.environment();
        let adb = |words: &[&str]| {
            // A half-open connection never answers.
            let mut adb = Command::new("timeout");
            adb.args(["60", "adb"]).args(words).env(name, value);
            adb.stdin(Stdio::null()).output()
        };
        loop {
            let connected = adb(&["connect", &self.serial])?;
            let answer = adb(&["-s", &self.serial, "shell", "true"])?;
            if answer.status.success() {
                return Ok(());
            }
            ensure!(
                begun.elapsed() < emulator::LIMIT,
                "{connected:?}\n{answer:?}"
            );
            // There may be no connection to close.
            let _ = self.unplug();
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Returns adb as a command for this board.
    pub fn adb(&self) -> Command {
        let mut adb = self.server.adb();
        adb.args(["-s", &self.serial]).stdin(Stdio::null());
        adb
    }

    /// Returns the board's serial number, for programs that call adb themselves in [`Self::environment`].
    pub fn serial(&self) -> &str {
        &self.serial
    }

    /// Returns the environment variable with the address of the board's adb server.
    pub fn environment(&self) -> (&'static str, &str) {
        self.server.environment()
    }

    /// Closes all of adb's connections to the board, like a pulled cable.
    pub fn unplug(&self) -> Result<()> {
        let mut disconnect = self.server.adb();
        let done = disconnect.args(["disconnect", &self.serial]).output()?;
        succeeded(&disconnect, done)
    }

    /// Runs a script in the board's shell. Returns its output and exit status.
    pub fn shell(&self, script: &str) -> Result<Output> {
        Ok(self.adb().args(["shell", script]).output()?)
    }

    /// Runs a script that must succeed, and returns its output.
    pub fn check(&self, script: &str) -> Result<String> {
        let output = self.shell(script)?;
        ensure!(
            output.status.success(),
            "{script}: {}\n{}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Copies files to the board. `FOLDER/.` means the contents of a folder.
    pub fn push<P: AsRef<OsStr>>(&self, from: impl IntoIterator<Item = P>, to: &str) -> Result<()> {
        let mut push = self.adb();
        let pushed = push.arg("push").args(from).arg(to).output()?;
        succeeded(&push, pushed)
    }

    /// Copies a file or a folder from the board.
    pub fn pull(&self, from: &str, to: &Path) -> Result<()> {
        let mut pull = self.adb();
        let pulled = pull.args(["pull", from]).arg(to).output()?;
        succeeded(&pull, pulled)
    }

    /// Records an app on the board until it ends, and fetches the session. The app's result must be correct.
    pub fn record(&self, app: &App, options: &[&str]) -> Result<Recording> {
        let (programs, session) = (Self::PROGRAMS, Self::SESSION);
        let output = self.shell(&format!(
            "rm -rf {session}; {programs}/varid record {} -o {session} -- {}",
            options.join(" "),
            app.arguments_in(Path::new(programs), Path::new(programs))
                .join(" ")
        ))?;
        let recording = Recording::fetched(output, |to| self.pull(session, to))?;
        let printed = String::from_utf8_lossy(&recording.output.stdout);
        ensure!(
            printed == app.expected()?,
            "the app printed {printed:?} when it was profiled"
        );
        Ok(recording)
    }

    /// Returns the kernel's warnings and errors since boot.
    pub fn console(&self) -> String {
        self.emulator.console()
    }

    /// Waits for a text on /dev/console, which does not need adb.
    pub fn await_console(&self, what: &str) -> Result<()> {
        self.emulator.await_console(what)
    }
}

/// Runs a script on several fresh boards, one after the other, in a folder with the programs under test. Runs are equal
/// to the nanosecond. Returns the console output of each. None if the test must be skipped; the reason is printed.
pub fn run_on_board(
    processor: Processor,
    test: &str,
    script: &str,
    times: usize,
) -> Result<Option<Vec<String>>> {
    let Some(made) = Made::for_board(processor, test)? else {
        return Ok(None);
    };
    let job = job(made, script, &[])?;
    let consoles = (0..times).map(|_| run_job(made, job.path(), Vec::new()));
    consoles.collect::<Result<_>>().map(Some)
}

/// Like [`run_on_board`], for one run on a board with more programs and options of QEMU, which are made if there is a
/// board.
pub fn run_on_other_board(
    processor: Processor,
    test: &str,
    script: &str,
    programs_and_options: impl FnOnce() -> Result<(Vec<PathBuf>, Vec<OsString>)>,
) -> Result<Option<String>> {
    let Some(made) = Made::for_board(processor, test)? else {
        return Ok(None);
    };
    let (programs, options) = programs_and_options()?;
    run_job(made, job(made, script, &programs)?.path(), options).map(Some)
}

/// Makes a folder with the programs under test, more programs, and a script as `run`.
fn job(made: &Made, script: &str, programs: &[PathBuf]) -> Result<tempfile::TempDir> {
    let job = tempfile::tempdir()?;
    for program in made.programs()?.iter().chain(programs) {
        let name = program.file_name().context("a program without name")?;
        symlink(program, job.path().join(name))?;
    }
    let run = job.path().join("run");
    std::fs::write(&run, script)?;
    std::fs::set_permissions(&run, Permissions::from_mode(0o755))?;
    Ok(job)
}

/// Runs a job that must succeed, and returns its console output.
fn run_job(made: &Made, job: &Path, options: Vec<OsString>) -> Result<String> {
    let mut boot = made.boot();
    boot.arg("run").arg(job).args(options);
    let console = emulator::run(boot)?;
    ensure!(console.contains("job: exit status 0"), "{console}");
    Ok(console)
}
