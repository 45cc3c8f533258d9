//! Which processes does a board need? QEMU and an adb server, which end with this process, whatever it dies of.

use anyhow::{Context, Result, bail, ensure};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid};
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

/// A line of the board's console when adb is answered.
const UP: &str = "adbd started";
/// What QEMU says if somebody took the port meanwhile.
const PORT_TAKEN: &str = "Could not set up host forwarding rule";
/// How often a free port is looked for.
const ATTEMPTS: usize = 8;

/// A board that runs.
#[derive(Debug)]
pub struct Emulator {
    port: u16,
    console: Arc<Mutex<String>>,
}

impl Emulator {
    /// Starts what `boot` makes of a port of this machine for adb, until the board answers there.
    pub fn start(boot: impl Fn(&str) -> Command) -> Result<Self> {
        for _ in 0..ATTEMPTS {
            let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
            let mut console = BufReader::new(spawn_bound(boot(&port.to_string()))?);
            let printed = Arc::new(Mutex::new(String::new()));
            if read_until_up(&mut console, &printed)? {
                let sink = Arc::clone(&printed);
                std::thread::spawn(move || {
                    while next_line(&mut console, &sink).is_ok_and(|line| line.is_some()) {}
                });
                return Ok(Self {
                    port,
                    console: printed,
                });
            }
            let printed = text(&printed);
            if !printed.contains(PORT_TAKEN) {
                bail!("the board did not come up:\n{printed}");
            }
        }
        bail!("found no port for the board in {ATTEMPTS} attempts")
    }

    /// The port of this machine at which the board's adbd is reached.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What the console has shown so far.
    pub fn console(&self) -> String {
        text(&self.console)
    }
}

/// An adb server that nobody else uses.
#[derive(Debug)]
pub struct AdbServer {
    socket: String,
}

impl AdbServer {
    /// Starts it, until it listens; its keys and its log go to `folder`.
    pub fn start(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        // A socket without a file: nothing is left behind.
        let socket = format!("localabstract:varid-board-{}", std::process::id());
        let mut command = Command::new("sh");
        command
            // It answers at a third descriptor when it listens.
            .args([
                "-c",
                "exec adb -L \"$0\" fork-server server --reply-fd 3 3>&1",
                &socket,
            ])
            .env("HOME", folder)
            .env("TMPDIR", folder)
            .env("ADB_LOCAL_TRANSPORT_MAX_PORT", "0");
        let mut answer = [0; 3];
        spawn_bound(command)?
            .read_exact(&mut answer)
            .context("the adb server does not listen")?;
        ensure!(&answer == b"OK\n", "the adb server answers {answer:?}");
        Ok(Self { socket })
    }

    /// The variable by which adb finds it.
    pub fn environment(&self) -> (&'static str, &str) {
        ("ADB_SERVER_SOCKET", &self.socket)
    }

    /// adb, ready for its command.
    pub fn adb(&self) -> Command {
        let (name, value) = self.environment();
        let mut adb = Command::new("adb");
        adb.env(name, value);
        adb
    }
}

/// Starts a program that is killed when this process ends, and returns what it prints.
pub fn spawn_bound(mut command: Command) -> Result<ChildStdout> {
    let parent = Pid::this();
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    // SAFETY: between fork and exec only two system calls are made.
    unsafe {
        command.pre_exec(move || {
            set_pdeathsig(Signal::SIGKILL)?;
            // It may have died before.
            if getppid() != parent {
                return Err(std::io::ErrorKind::BrokenPipe.into());
            }
            Ok(())
        });
    }
    // The signal comes when the *thread* ends that started the program; the one of a test ends with the test.
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                return drop(tell.send(Err(error).with_context(|| format!("{command:?}"))));
            }
        };
        let printed = child.stdout.take().context("its output is a pipe");
        drop(tell.send(printed));
        drop(child.wait());
    });
    told.recv()
        .context("the thread that starts programs ended")?
}

/// Reads what the board prints; false: it ended before it was up.
fn read_until_up(console: &mut BufReader<ChildStdout>, printed: &Mutex<String>) -> Result<bool> {
    while let Some(line) = next_line(console, printed)? {
        if line.contains(UP) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A further line, also appended to what was printed; None: that was all.
fn next_line(
    console: &mut BufReader<ChildStdout>,
    printed: &Mutex<String>,
) -> Result<Option<String>> {
    let mut line = Vec::new();
    if console.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    let line = String::from_utf8_lossy(&line).into_owned();
    printed
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push_str(&line);
    Ok(Some(line))
}

fn text(printed: &Mutex<String>) -> String {
    printed
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::is_alive;

    #[test]
    fn what_is_started_ends_with_a_process_that_is_killed() -> Result<()> {
        const VICTIM: &str = "VARID_TEST_VICTIM";
        if std::env::var_os(VICTIM).is_some() {
            let mut endless = Command::new("sh");
            endless.args(["-c", "echo started: $$; exec tail -f /dev/null"]);
            let mut printed = BufReader::new(spawn_bound(endless)?);
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
