//! Runs varid on the device with live output, its exit status, and signals.

use super::error::{DeviceError, Result};
use super::place::Place;
use super::shell::{Mark, Stream, quote, quoted};
use crate::paths;
use crate::verbs::record;
use serde::Deserialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// varid, installed in a folder of a device.
#[derive(Debug)]
pub struct Remote {
    /// The folder.
    pub place: Place,
    program: String,
    interrupts: Interrupts,
}

/// A session on the device, as listed by `varid sessions --json`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RemoteSession {
    /// Its name.
    pub session: String,
    /// `recording`, `complete`, …
    pub state: String,
    /// Its folder.
    pub folder: String,
}

impl RemoteSession {
    /// Returns true if it is being recorded.
    pub fn is_recording(&self) -> bool {
        self.state == "recording"
    }
}

impl Remote {
    /// Pushes varid if it is missing or a different version.
    pub fn install(place: Place, interrupts: Interrupts) -> Result<Self> {
        let program = place.install()?;
        Ok(Self {
            place,
            program,
            interrupts,
        })
    }

    /// Runs it with these arguments, then a script. Passes on its output and errors, and returns its exit status.
    pub fn run(&self, arguments: &[String], after: &str) -> Result<i32> {
        let device = &self.place.device;
        let mark = Mark::new();
        let script = format!("{}; exec {}", self.setting(), self.line(arguments));
        // The inner script prints the pid, the outer one the status.
        let script = device.wrap(&mark.announced(&script));
        let after = device.wrap(after);
        let script = mark.ended(&format!("{script}; s=$?; {after}; exit $s"));
        let mut child = device
            .adb()
            .args(["shell", &script])
            .stdout(Stdio::piped())
            .spawn()
            .map_err(DeviceError::NoAdb)?;
        let mut stream = Stream::new(&mark);
        let copied = match child.stdout.take() {
            Some(stdout) => self.copy(BufReader::new(stdout), &mark, &mut stream),
            None => Ok(()),
        };
        self.interrupts.forward(None);
        let ended = child.wait().map_err(DeviceError::NoAdb)?;
        match stream.status() {
            Some(status) => Ok(status),
            None => {
                let fault = copied.err().map(|error| error.to_string());
                tracing::debug!("adb ended with {ended}");
                Err(device.lost(&fault.unwrap_or_default()))
            }
        }
    }

    fn copy(&self, mut from: impl BufRead, mark: &Mark, stream: &mut Stream) -> io::Result<()> {
        let mut first = Vec::new();
        from.by_ref().take(256).read_until(b'\n', &mut first)?;
        match mark.pid(&String::from_utf8_lossy(&first)) {
            Some(pid) => self
                .interrupts
                .forward(Some((self.place.device.clone(), pid))),
            // This message is from su, run-as or the shell, before varid has started.
            None => show(&stream.take(&first)),
        }
        // The terminal of an old device ends all lines like this.
        let by_terminal = first.ends_with(b"\r\n");
        loop {
            let bytes = match from.fill_buf() {
                Ok([]) => return Ok(()),
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let count = bytes.len();
            let output = stream.take(bytes);
            show(&if by_terminal { lines(output) } else { output });
            from.consume(count);
        }
    }

    /// Returns the sessions on the device, newest last.
    pub fn sessions(&self) -> Result<Vec<RemoteSession>> {
        #[derive(Deserialize)]
        struct Document {
            sessions: Vec<RemoteSession>,
        }
        let device = &self.place.device;
        let arguments = ["sessions".to_owned(), "--json".to_owned()];
        let script = format!("{}; {}", self.setting(), self.line(&arguments));
        let answer = device.shell("list its sessions", &script)?;
        let document: Document = serde_json::from_str(&answer)
            .map_err(|error| device.failed("list its sessions", &error.to_string()))?;
        Ok(document.sessions)
    }

    /// Returns true if any session is being recorded.
    pub fn is_recording(&self) -> Result<bool> {
        Ok(self.sessions()?.iter().any(RemoteSession::is_recording))
    }

    fn setting(&self) -> String {
        let home = quote(&self.place.home);
        format!("export {}={home} {}=1", paths::HOME, record::TIED)
    }

    fn line(&self, arguments: &[String]) -> String {
        quoted(std::iter::once(self.program.as_str()).chain(arguments.iter().map(String::as_str)))
    }
}

/// Converts CR LF line ends to LF. A [`Stream`] never splits a line end.
fn lines(mut output: Vec<u8>) -> Vec<u8> {
    let mut behind = output.clone().into_iter().skip(1);
    output.retain(|byte| {
        let next = behind.next();
        !(*byte == b'\r' && next == Some(b'\n'))
    });
    output
}

/// Writes to standard output. A closed pipe is not an error.
fn show(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(bytes).and_then(|()| stdout.flush());
}

/// Signals that end a command, such as Ctrl-C: passed on to varid on a device, or stored if nothing is running there.
#[derive(Debug, Clone, Default)]
pub struct Interrupts(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    count: u32,
    /// True after a signal that ends the whole program: SIGTERM, SIGHUP.
    terminated: Arc<AtomicBool>,
    running: Option<(super::adb::Device, u32)>,
}

/// The number of interrupts that end this command even if varid is still running on the device.
const PATIENCE: u32 = 3;

impl Interrupts {
    /// Starts handling signals.
    pub fn watch() -> io::Result<Self> {
        let interrupts = Self::default();
        let (mut read, write) = UnixStream::pair()?;
        let terminated = interrupts.state().terminated.clone();
        for signal in [SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, terminated.clone())?;
        }
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
        }
        let shared = interrupts.clone();
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                let mut byte = [0];
                while matches!(read.read(&mut byte), Ok(1)) {
                    shared.take();
                }
            })?;
        Ok(interrupts)
    }

    /// Returns true if a signal has arrived.
    pub fn taken(&self) -> bool {
        self.state().count > 0
    }

    /// Sets the process to which signals are passed on.
    fn forward(&self, running: Option<(super::adb::Device, u32)>) {
        let mut state = self.state();
        let missed = state.count > 0 && running.is_some();
        state.running = running;
        drop(state);
        if missed {
            self.pass_on();
        }
    }

    fn take(&self) {
        let mut state = self.state();
        state.count = state.count.saturating_add(1);
        let is_idle = state.running.is_none() && state.terminated.load(Ordering::Relaxed);
        if state.count >= PATIENCE || is_idle {
            // The device does not answer, or the process there does not end. adb ends, too.
            std::process::exit(130);
        }
        drop(state);
        self.pass_on();
    }

    fn pass_on(&self) {
        let Some((device, pid)) = self.state().running.clone() else {
            return;
        };
        // In a separate thread, because a device that does not answer must not block the next signal.
        std::thread::spawn(move || {
            if let Err(error) = device.ask(&format!("kill -INT {pid}")) {
                tracing::warn!("cannot end varid there: {error}");
            }
        });
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
