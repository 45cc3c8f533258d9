//! What does varid do on an ARM board? One is booted for each test program that asks, with the programs under test on it.
//!
//! The board is QEMU's, its kernel and its root file system are Debian's (`board/` beside this folder). Tests reach it by
//! adb, over a server of its own. Emulator and server end with the test program, whatever it dies of.

mod compiled;
mod emulator;
mod judged;
mod made;
mod module;

use crate::app::App;
use crate::session::Recording;
use anyhow::{Context, Result, bail, ensure};
pub use compiled::{BoardCode, CompiledApp};
use emulator::{AdbServer, Emulator};
use made::{Made, succeeded};
pub use module::board_with_module;
use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// What the board's processor understands, as the scripts of `board/` call it.
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

    /// As the names of cross compilers have it.
    fn triplet(self) -> &'static str {
        match self {
            Self::Arm64 => "aarch64-linux-gnu",
            Self::Armhf => "arm-linux-gnueabihf",
        }
    }
}

/// A board that is up.
#[derive(Debug)]
pub struct Board {
    processor: Processor,
    emulator: Emulator,
    server: AdbServer,
    serial: String,
}

/// A board that came up, or why it did not.
type Booted = std::result::Result<Mutex<Board>, String>;

/// The 64-bit board, for one test at a time; None, and the reason is printed: the test must be left out.
pub fn board(test: &str) -> Result<Option<MutexGuard<'static, Board>>> {
    board_of(Processor::Arm64, test)
}

/// The board with this processor, likewise.
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
        // A test that failed leaves a board on which others may still pass.
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

    /// Returns when adb speaks with the board; fails if it never does. A connection that was too slow to come about is made again.
    pub fn await_adb(&self) -> Result<()> {
        let begun = Instant::now();
        let (name, value) = self.environment();
        let adb = |words: &[&str]| {
            // What is half connected answers nothing.
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
            // There may be nothing to end.
            let _ = self.unplug();
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// adb, speaking with this board, ready for its command.
    pub fn adb(&self) -> Command {
        let mut adb = self.server.adb();
        adb.args(["-s", &self.serial]).stdin(Stdio::null());
        adb
    }

    /// The board's serial number, for programs that call adb themselves in [`Self::environment`].
    pub fn serial(&self) -> &str {
        &self.serial
    }

    /// The variable by which adb finds the board's server.
    pub fn environment(&self) -> (&'static str, &str) {
        self.server.environment()
    }

    /// Ends all of adb's connections to the board, as a cable does that is pulled.
    pub fn unplug(&self) -> Result<()> {
        let mut disconnect = self.server.adb();
        let done = disconnect.args(["disconnect", &self.serial]).output()?;
        succeeded(&disconnect, done)
    }

    /// What a script for the board's shell prints, and its exit status.
    pub fn shell(&self, script: &str) -> Result<Output> {
        Ok(self.adb().args(["shell", script]).output()?)
    }

    /// What a script prints that must succeed.
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

    /// Copies files to the board: `FOLDER/.` stands for all that is in a folder.
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

    /// Records an app to its end on the board and fetches the session; the app's result must be the right one.
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

    /// What the kernel has printed since the power on: warnings and worse.
    pub fn console(&self) -> String {
        self.emulator.console()
    }

    /// Returns when something has been written to /dev/console: that is heard without adb, too.
    pub fn await_console(&self, what: &str) -> Result<()> {
        self.emulator.await_console(what)
    }
}

/// What the console shows of each of so many runs on a board of their own, where two are alike to the nanosecond: of a script,
/// in a folder with the programs under test. None, and the reason is printed: the test must be left out.
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

/// The same for one run, on a board that differs: by some more programs, and by options of QEMU. They are made if there is a board.
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

/// A folder with the programs under test, some more, and a script as `run`.
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

/// What the console shows of a job that must succeed.
fn run_job(made: &Made, job: &Path, options: Vec<OsString>) -> Result<String> {
    let mut boot = made.boot();
    boot.arg("run").arg(job).args(options);
    let console = emulator::run(boot)?;
    ensure!(console.contains("job: exit status 0"), "{console}");
    Ok(console)
}
