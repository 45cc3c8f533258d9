//! Accesses a device through the user's `adb` program.

use super::access::Access;
use super::error::{DeviceError, Result};
use super::shell::{Mark, Stream, quote};
use rustix::process::{Signal, set_parent_process_death_signal};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use varid_symbolizer::program::{self, AnswerLimits, NoAnswer};

/// How many consecutive checks may find a file that is being written not growing, before the write counts as failed.
const PATIENCE: u32 = 50;

/// Limits of an answer of adb: a device's list of settings has several thousand bytes.
const ANSWER: AnswerLimits = AnswerLimits {
    bytes: 16 << 20,
    time: Duration::from_secs(120),
};
/// Minimum rate at which a file is sent, in bytes per second.
const SLOWEST: u64 = 50_000;
/// Maximum time for adb to send or fetch a file of unknown size.
const TRANSFER: Duration = Duration::from_secs(3_600);
/// Maximum size of a fetched file in bytes.
const MAX_FILE: u64 = 64 << 30;

/// The time between two checks.
const PAUSE: Duration = Duration::from_millis(100);

/// A device, and the user that runs commands on it.
#[derive(Debug, Clone)]
pub struct Device {
    /// adb's name for it.
    pub serial: String,
    /// The user.
    pub access: Access,
}

/// The message for a script that failed and printed nothing.
pub const SILENCE: &str = "it says nothing";

/// The result of a script on the device.
#[derive(Debug)]
pub struct Answer {
    /// Its output, with LF line ends.
    pub out: String,
    /// Its error messages. If the device has one stream only, its output.
    pub said: String,
    /// Its exit status.
    pub status: i32,
}

impl Device {
    /// Returns the device with that serial, or the only one. It is ready, and commands run as adb's own user.
    pub fn choose(requested: Option<&str>) -> Result<Self> {
        let variable = std::env::var("ANDROID_SERIAL").ok();
        let requested = requested
            .or(variable.as_deref())
            .filter(|serial| !serial.is_empty());
        let mut listed = list()?;
        if let Some(address) = requested.filter(|requested| requested.contains(':'))
            && listed.iter().all(|(serial, _)| serial != address)
        {
            let output = output(adb().args(["connect", address]))?;
            tracing::info!("adb connect: {}", said(&output));
            listed = list()?;
        }
        let serial = choose(&listed, requested)?;
        Ok(Self {
            serial,
            access: Access::Adb,
        })
    }

    /// Returns a command that runs adb for this device.
    pub fn adb(&self) -> Command {
        let mut adb = adb();
        adb.args(["-s", &self.serial]);
        adb
    }

    /// Runs a script on the device, and waits for its end.
    pub fn ask(&self, script: &str) -> Result<Answer> {
        let mark = Mark::new();
        let output = output(self.adb().args(["shell", &mark.ended(&self.wrap(script))]))?;
        let mut stream = Stream::new(&mark);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("\r\n", "\n");
        let out = text(&stream.take(&output.stdout));
        let Some(status) = stream.status() else {
            return Err(self.lost(&said(&output)));
        };
        let errors = text(&output.stderr);
        let said = match (errors.trim(), out.trim()) {
            ("", "") => SILENCE,
            ("", out) => out,
            (errors, _) => errors,
        };
        let said = said.to_owned();
        Ok(Answer { out, said, status })
    }

    /// Runs a script that must succeed, and returns its output. `action`: its purpose, as a verb.
    pub fn shell(&self, action: &str, script: &str) -> Result<String> {
        let answer = self.ask(script)?;
        if answer.status == 0 {
            Ok(answer.out)
        } else {
            Err(self.failed(action, &answer.said))
        }
    }

    /// Copies a file of the host to the device.
    pub fn push(&self, local: &Path, remote: &str) -> Result<()> {
        if self.access == Access::Adb {
            let size = local.metadata().map_err(DeviceError::io("read", local))?;
            let limits = sending(size.len());
            let output = transfer(self.adb().arg("push").arg(local).arg(remote), limits)?;
            return self.check("push", &output);
        }
        // adb's own user may not be permitted to write there, so the command that runs as the other user reads the data.
        let from = File::open(local).map_err(DeviceError::io("read", local))?;
        let size = from.metadata().map_err(DeviceError::io("read", local))?;
        let script = self.wrap(&format!("cat > {}", quote(remote)));
        let limits = sending(size.len());
        let sent = transfer(self.adb().args(["exec-in", &script]).stdin(from), limits)?;
        self.check("exec-in", &sent)?;
        self.await_size(remote, size.len())
    }

    /// Waits until a file has its size: `exec-in` ends when its input is sent, which may not have been written yet.
    fn await_size(&self, remote: &str, size: u64) -> Result<()> {
        let (mut last, mut still) = (String::new(), 0);
        loop {
            let answer = self.ask(&format!("wc -c < {}", quote(remote)))?;
            let there = answer.out.trim();
            if there == size.to_string() {
                return Ok(());
            }
            still = if there == last {
                u32::saturating_add(still, 1)
            } else {
                0
            };
            if still == PATIENCE {
                let said = format!("{there} of {size} bytes arrived");
                return Err(self.failed(&format!("write {remote}"), &said));
            }
            there.clone_into(&mut last);
            std::thread::sleep(PAUSE);
        }
    }

    /// Copies a file of the device to the host.
    pub fn pull(&self, remote: &str, local: &Path) -> Result<()> {
        if self.access == Access::Adb {
            let limits = AnswerLimits {
                time: TRANSFER,
                ..ANSWER
            };
            let output = transfer(self.adb().arg("pull").arg(remote).arg(local), limits)?;
            return self.check("pull", &output);
        }
        let mark = Mark::new();
        let script = self.wrap(&mark.ended(&format!("cat {} 2>&1", quote(remote))));
        let mut child = self
            .adb()
            .args(["exec-out", &script])
            .stdout(Stdio::piped())
            .spawn()
            .map_err(DeviceError::NoAdb)?;
        let mut file = File::create(local).map_err(DeviceError::io("create", local))?;
        let mut stream = Stream::new(&mark);
        let mut buffer = vec![0; 1 << 16];
        let (mut copied, mut received) = (Ok(()), 0u64);
        while let Some(from) = &mut child.stdout {
            let count = match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            let output = stream.take(buffer.get(..count).unwrap_or_default());
            received = received.saturating_add(count as u64);
            copied = copied.and_then(|()| file.write_all(&output));
            if received > MAX_FILE || copied.is_err() {
                // adb ends when its output has no reader.
                child.stdout = None;
            }
        }
        let ended = child.wait().map_err(DeviceError::NoAdb)?;
        copied.map_err(DeviceError::io("write", local))?;
        match stream.status() {
            Some(0) => Ok(()),
            Some(_) => Err(self.failed("read", remote)),
            None => Err(self.lost(&ended.to_string())),
        }
    }

    /// The error for a connection that ended before the command.
    pub fn lost(&self, said: &str) -> DeviceError {
        let said = match said {
            "" => String::new(),
            said => format!(": {said}"),
        };
        DeviceError::Lost {
            serial: self.serial.clone(),
            said,
        }
    }

    /// The error for an action that failed on the device.
    pub fn failed(&self, action: &str, said: &str) -> DeviceError {
        DeviceError::There {
            serial: self.serial.clone(),
            action: action.to_owned(),
            said: said.to_owned(),
        }
    }

    /// Wraps a script so that adb's own user can run it.
    pub fn wrap(&self, script: &str) -> String {
        self.access.wrap(script)
    }

    fn check(&self, action: &'static str, output: &Output) -> Result<()> {
        if output.status.success() {
            return Ok(());
        }
        Err(DeviceError::Adb {
            serial: self.serial.clone(),
            action,
            said: said(output),
        })
    }
}

/// Runs adb in a process group of its own, so that Ctrl-C does not end it: varid passes the signal on to the device. adb ends
/// together with varid.
fn adb() -> Command {
    let mut adb = Command::new("adb");
    adb.stdin(Stdio::null()).process_group(0);
    let end_with_parent =
        || set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from);
    // SAFETY: between fork and exec it makes one system call and allocates nothing.
    unsafe { adb.pre_exec(end_with_parent) };
    adb
}

fn output(command: &mut Command) -> Result<Output> {
    transfer(command, ANSWER)
}

/// Runs a transfer, which may take longer than an answer.
fn transfer(command: &mut Command, limits: AnswerLimits) -> Result<Output> {
    program::output(command, limits).map_err(|error| match error {
        NoAnswer::Io(error) => DeviceError::NoAdb(error),
        error => DeviceError::NoAnswer(error),
    })
}

/// Limits for sending this many bytes.
fn sending(bytes: u64) -> AnswerLimits {
    let seconds = bytes.checked_div(SLOWEST).unwrap_or(0);
    AnswerLimits {
        time: ANSWER.time.saturating_add(Duration::from_secs(seconds)),
        ..ANSWER
    }
}

/// Returns adb's message, from either stream.
fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    let errors = text(&output.stderr);
    if errors.is_empty() {
        text(&output.stdout)
    } else {
        errors
    }
}

/// Returns the serials and states of all devices.
fn list() -> Result<Vec<(String, String)>> {
    let output = output(adb().arg("devices"))?;
    if !output.status.success() {
        return Err(DeviceError::Adb {
            serial: "adb".to_owned(),
            action: "devices",
            said: said(&output),
        });
    }
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

/// Parses `adb devices`: a heading, then a serial, a tab and a state in each line. Messages about adb's own server start with
/// stars.
fn parse(text: &str) -> Vec<(String, String)> {
    let device = |line: &str| {
        let (serial, state) = line.split_once('\t')?;
        Some((serial.trim().to_owned(), state.trim().to_owned()))
    };
    text.lines().filter_map(device).collect()
}

fn choose(listed: &[(String, String)], requested: Option<&str>) -> Result<String> {
    let all = || {
        let named: Vec<String> = listed
            .iter()
            .map(|(serial, state)| match state.as_str() {
                "device" => serial.clone(),
                state => format!("{serial} ({state})"),
            })
            .collect();
        named.join(", ")
    };
    let found = match requested {
        Some(requested) => listed.iter().find(|(serial, _)| serial == requested),
        None => match listed {
            [one] => Some(one),
            [] => return Err(DeviceError::NoDevice),
            _ => return Err(DeviceError::Several(all())),
        },
    };
    let Some((serial, state)) = found else {
        return Err(DeviceError::Unknown {
            requested: requested.unwrap_or_default().to_owned(),
            others: if listed.is_empty() {
                ", nor any other".to_owned()
            } else {
                format!("; there are {}", all())
            },
        });
    };
    let remedy = match state.as_str() {
        "device" => return Ok(serial.clone()),
        "offline" => "attach it anew, or 'adb reconnect offline'",
        "unauthorized" => "accept this computer's key on its screen",
        "authorizing" | "connecting" => "try again in a moment",
        state if state.starts_with("no permissions") => {
            "udev's rules let this user not use it (Debian: apt install android-sdk-platform-tools-common)"
        }
        _ => "boot it into Android",
    };
    Err(DeviceError::NotReady {
        serial: serial.clone(),
        state: state.clone(),
        remedy,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "* daemon started successfully\nList of devices attached\nemulator-5554\tdevice\n127.0.0.1:5555\toffline\n\n";

    #[test]
    fn devices_are_listed_with_their_states() {
        assert_eq!(
            parse(TWO),
            [
                ("emulator-5554".to_owned(), "device".to_owned()),
                ("127.0.0.1:5555".to_owned(), "offline".to_owned())
            ]
        );
    }

    #[test]
    fn a_choice_is_made_only_where_there_is_none() {
        let two = parse(TWO);
        let why = |listed: &[(String, String)], requested| {
            choose(listed, requested).unwrap_err().to_string()
        };
        assert_eq!(
            choose(&two, Some("emulator-5554")).unwrap(),
            "emulator-5554"
        );
        assert_eq!(choose(&two[..1], None).unwrap(), "emulator-5554");
        assert!(why(&two, None).contains("emulator-5554, 127.0.0.1:5555 (offline)"));
        assert!(why(&two, Some("x")).contains("there are emulator-5554, 127"));
        assert!(why(&two, Some("127.0.0.1:5555")).contains("is offline: attach"));
        assert!(why(&[], None).contains("no device"));
        let one = |state: &str| vec![("S".to_owned(), state.to_owned())];
        assert!(why(&one("unauthorized"), None).contains("key on its screen"));
        assert!(why(&one("no permissions (udev)"), None).contains("udev"));
    }
}
