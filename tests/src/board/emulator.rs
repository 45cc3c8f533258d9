//! The processes of a board, QEMU and an adb server. They end with this process, however it ends.

use anyhow::{Context, Result, bail, ensure};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid};
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A line of the board's console, printed when adbd accepts connections.
const UP: &str = "adbd started";
/// QEMU's error if another process took the port meanwhile.
const PORT_TAKEN: &str = "Could not set up host forwarding rule";
/// The number of attempts to find a free port.
const ATTEMPTS: usize = 8;

/// A board without an answer for this time hangs. Booting takes 6 s on an idle machine, but the machine may be slow and
/// busy.
pub const LIMIT: Duration = Duration::from_secs(600);
/// A job that takes longer hangs. The longest takes half a minute on an idle machine.
const JOB_LIMIT: Duration = Duration::from_secs(1800);

/// A running board.
#[derive(Debug)]
pub struct Emulator {
    port: u16,
    console: Console,
}

impl Emulator {
    /// Starts the command that `boot` returns for a local port for adb, and waits until the board answers there.
    pub fn start(boot: impl Fn(&str) -> Command) -> Result<Self> {
        for _ in 0..ATTEMPTS {
            let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
            let console = Console::of(boot(&port.to_string()))?;
            if console.shows(UP, LIMIT)? {
                return Ok(Self { port, console });
            }
            let printed = console.text();
            if !printed.contains(PORT_TAKEN) {
                bail!("the board did not come up:\n{printed}");
            }
        }
        bail!("found no port for the board in {ATTEMPTS} attempts")
    }

    /// Returns the local port that leads to the board's adbd.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the console output so far.
    pub fn console(&self) -> String {
        self.console.text()
    }

    /// Waits for a text on the console.
    pub fn await_console(&self, what: &str) -> Result<()> {
        let shown = self.console.shows(what, LIMIT)?;
        ensure!(shown, "the board ended:\n{}", self.console());
        Ok(())
    }
}

/// Boots a board that powers off by itself. Returns its console output.
pub fn run(boot: Command) -> Result<String> {
    let console = Console::of(boot)?;
    console.ends(JOB_LIMIT)?;
    Ok(console.text())
}

/// The output of a board, which ends when this is dropped.
#[derive(Debug)]
struct Console {
    shown: Arc<(Mutex<Shown>, Condvar)>,
    _life: Life,
}

/// The printed text.
#[derive(Debug, Default)]
struct Shown {
    text: String,
    /// Whether the output has ended.
    ended: bool,
}

impl Console {
    /// Boots a board, and reads its console to the end.
    fn of(boot: Command) -> Result<Self> {
        let (output, life) = spawn_bound(boot)?;
        let shown = Arc::new((Mutex::new(Shown::default()), Condvar::new()));
        let sink = Arc::clone(&shown);
        let show = move |line: Option<&[u8]>| {
            let mut shown = sink.0.lock().unwrap_or_else(PoisonError::into_inner);
            match line {
                Some(line) => shown.text.push_str(&String::from_utf8_lossy(line)),
                None => shown.ended = true,
            }
            sink.1.notify_all();
        };
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut line = Vec::new();
            while output.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                show(Some(&line));
                line.clear();
            }
            show(None);
        });
        Ok(Self { shown, _life: life })
    }

    /// Waits for a text. Returns false if the board ended before, and an error at the limit.
    fn shows(&self, what: &str, limit: Duration) -> Result<bool> {
        self.when(limit, |shown| shown.text.contains(what) || shown.ended)?;
        Ok(self.text().contains(what))
    }

    /// Waits until the board has ended.
    fn ends(&self, limit: Duration) -> Result<()> {
        self.when(limit, |shown| shown.ended)
    }

    fn when(&self, limit: Duration, is_so: impl Fn(&Shown) -> bool) -> Result<()> {
        let (shown, changed) = &*self.shown;
        let shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = changed.wait_timeout_while(shown, limit, |shown| !is_so(shown));
        let (shown, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        ensure!(!waited.timed_out(), "the board hangs:\n{}", shown.text);
        Ok(())
    }

    fn text(&self) -> String {
        let shown = self.shown.0.lock();
        shown.unwrap_or_else(PoisonError::into_inner).text.clone()
    }
}

/// An adb server for this test program only.
#[derive(Debug)]
pub struct AdbServer {
    socket: String,
    _life: Life,
}

impl AdbServer {
    /// Starts the server of a board, and waits until it listens. Its keys and log are written to `folder`. `board`
    /// distinguishes it from other servers of this process.
    pub fn start(folder: &Path, board: &str) -> Result<Self> {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        // An abstract socket leaves no file behind.
        let socket = format!("localabstract:varid-board-{}-{board}", std::process::id());
        let mut command = Command::new("sh");
        command
            // The server writes to its third descriptor when it listens.
            .args([
                "-c",
                "exec adb -L \"$0\" fork-server server --reply-fd 3 3>&1",
                &socket,
            ])
            .env("HOME", folder)
            .env("TMPDIR", folder)
            .env("ADB_LOCAL_TRANSPORT_MAX_PORT", "0");
        let mut answer = [0; 3];
        let (mut output, life) = spawn_bound(command)?;
        output
            .read_exact(&mut answer)
            .context("the adb server does not listen")?;
        ensure!(&answer == b"OK\n", "the adb server answers {answer:?}");
        Ok(Self {
            socket,
            _life: life,
        })
    }

    /// Returns the environment variable with the server's address.
    pub fn environment(&self) -> (&'static str, &str) {
        ("ADB_SERVER_SOCKET", &self.socket)
    }

    /// Returns adb as a command.
    pub fn adb(&self) -> Command {
        let (name, value) = self.environment();
        let mut adb = Command::new("adb");
        adb.env(name, value);
        adb
    }
}

/// A program that is killed when this is dropped.
#[derive(Debug)]
struct Life {
    _ended: Sender<()>,
}

/// Starts a program that is killed when this process ends or its `Life` is dropped. Returns its output as well.
fn spawn_bound(mut command: Command) -> Result<(ChildStdout, Life)> {
    let parent = Pid::this();
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    // SAFETY: between fork and exec, only two system calls are made.
    unsafe {
        command.pre_exec(move || {
            set_pdeathsig(Signal::SIGKILL)?;
            // The parent may have died before.
            if getppid() != parent {
                return Err(std::io::ErrorKind::BrokenPipe.into());
            }
            Ok(())
        });
    }
    // The signal is sent when the *thread* that started the program ends. A test's thread ends with the test.
    let (tell, told) = mpsc::channel();
    let (ended, dropped) = mpsc::channel();
    std::thread::spawn(move || {
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                return drop(tell.send(Err(error).with_context(|| format!("{command:?}"))));
            }
        };
        let printed = child.stdout.take().context("its output is a pipe");
        drop(tell.send(printed));
        // Nothing is ever sent. This returns when the life is dropped.
        let _ = dropped.recv();
        drop(child.kill());
        drop(child.wait());
    });
    let printed = told
        .recv()
        .context("the thread that starts programs ended")??;
    Ok((printed, Life { _ended: ended }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::is_alive;

    #[test]
    fn what_is_started_ends_with_a_process_that_is_killed() -> Result<()> {
        const VICTIM: &str = "VARID_TEST_VICTIM";
        if std::env::var_os(VICTIM).is_some() {
            let mut endless = Command::new("sh");
            endless.args(["-c", "echo started: $$; exec tail -f /dev/null"]);
            let (printed, _life) = spawn_bound(endless)?;
            let mut printed = BufReader::new(printed);
            let mut line = String::new();
            printed.read_line(&mut line)?;
            print!("{line}");
            nix::sys::signal::raise(Signal::SIGKILL)?;
        }
        let name = "board::emulator::tests::what_is_started_ends_with_a_process_that_is_killed";
        let victim = Command::new(std::env::current_exe()?)
            .args(["--exact", name, "--nocapture"])
            .env(VICTIM, "1")
            .output()?;
        let printed = String::from_utf8_lossy(&victim.stdout).into_owned();
        let (_, started) = printed
            .split_once("started: ")
            .with_context(|| printed.clone())?;
        let pid = started.lines().next().context("no process")?;
        while is_alive(pid) {
            std::thread::yield_now();
        }
        Ok(())
    }
}
