//! A command that is started and held before its first instruction.

use anyhow::{Context, bail};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::unistd::{AccessFlags, access};
use std::ffi::{CString, OsStr, OsString};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode};

/// Why a command cannot be started.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct CannotRun {
    reason: String,
    /// The exit code by which a shell says so.
    pub code: u8,
}

/// There is no such program.
const NOT_FOUND: u8 = 127;
/// There is one, which cannot be executed.
const NOT_EXECUTABLE: u8 = 126;
/// What the child says in their place where varid itself failed.
const OWN_FAILURE: u8 = 0;

/// A child that waits for [`Held::release`] to become the command.
#[derive(Debug)]
pub struct Held {
    /// The child, the command from its release on.
    pub child: Child,
    gate: UnixStream,
}

impl Held {
    /// Starts the child: this program, waiting at a socket. An error where nothing can be run by the command's name.
    pub fn start(command: &[OsString]) -> anyhow::Result<Self> {
        let program = command.first().context("no command")?;
        runnable(program).map_err(|(why, code)| CannotRun {
            reason: format!("cannot run '{}': {why}", program.to_string_lossy()),
            code,
        })?;
        let (gate, theirs) = UnixStream::pair().context("cannot make a socket pair")?;
        // The child finds its end by its number.
        fcntl(&theirs, FcntlArg::F_SETFD(FdFlag::empty()))
            .context("cannot hand a socket to a child")?;
        let child = Command::new("/proc/self/exe")
            .arg0("varid")
            .args(["launch", &theirs.as_raw_fd().to_string(), "--"])
            .args(command)
            .spawn()
            .context("cannot start a child")?;
        Ok(Self { child, gate })
    }

    /// The child becomes the command now, with this added to its environment; an error says why it cannot.
    pub fn release(&mut self, environment: &[(&str, String)]) -> anyhow::Result<()> {
        let mut strings = Vec::new();
        for (name, value) in environment {
            strings.extend_from_slice(format!("{name}={value}\0").as_bytes());
        }
        // An empty string ends the list.
        strings.push(0);
        self.gate
            .write_all(&strings)
            .context("cannot release the command")?;
        let mut answer = Vec::new();
        // Its end closes when it becomes the command; before that it only says what failed.
        (&self.gate)
            .take(4096)
            .read_to_end(&mut answer)
            .context("cannot hear of the command")?;
        let Some((code, reason)) = answer.split_first() else {
            return Ok(());
        };
        let reason = String::from_utf8_lossy(reason).into_owned();
        match *code {
            OWN_FAILURE => bail!("{reason}"),
            code => bail!(CannotRun { reason, code }),
        }
    }
}

/// Whether a program is where it will be looked for: seen before a recording is made of it, and not certain. Else why not, and the
/// exit code that says so.
fn runnable(program: &OsStr) -> Result<(), (&'static str, u8)> {
    let is_path = program.as_bytes().contains(&b'/');
    let folders = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let candidates = match is_path || program.is_empty() {
        true => vec![PathBuf::from(program)],
        false => std::env::split_paths(&folders)
            .map(|folder| folder.join(program))
            .collect(),
    };
    let mut why = match is_path {
        true => (Errno::ENOENT.desc(), NOT_FOUND),
        false => ("not found in PATH", NOT_FOUND),
    };
    for candidate in candidates {
        match std::fs::metadata(&candidate) {
            Ok(found) if found.is_file() && access(&candidate, AccessFlags::X_OK).is_ok() => {
                return Ok(());
            }
            Err(error) if error.kind() != ErrorKind::PermissionDenied => {}
            _ => why = (Errno::EACCES.desc(), NOT_EXECUTABLE),
        }
    }
    Err(why)
}

/// The child's side: `varid launch FD -- COMMAND`.
pub fn wait_and_become(fd: i32, command: &[OsString]) -> anyhow::Result<ExitCode> {
    // SAFETY: the parent opened this descriptor for this process and nothing else here uses it.
    let mut gate = UnixStream::from(unsafe { OwnedFd::from_raw_fd(fd) });
    let Some(added) = read_environment(&mut gate) else {
        // The parent has gone: the command is not recorded.
        return Ok(ExitCode::FAILURE);
    };
    let error = match become_command(&gate, command, &added) {
        Ok(never) => match never {},
        Err(error) => error,
    };
    let not_run = error.downcast_ref::<CannotRun>();
    let mut answer = vec![not_run.map_or(OWN_FAILURE, |error| error.code)];
    answer.extend_from_slice(crate::output::reason(error.as_ref()).as_bytes());
    gate.write_all(&answer).context("cannot report a failure")?;
    Ok(ExitCode::FAILURE)
}

/// Strings that end in a zero byte, up to an empty one.
fn read_environment(gate: &mut UnixStream) -> Option<Vec<Vec<u8>>> {
    let mut reader = BufReader::new(gate);
    let mut strings = Vec::new();
    loop {
        let mut string = Vec::new();
        reader.read_until(0, &mut string).ok()?;
        match string.pop()? {
            0 if string.is_empty() => return Some(strings),
            0 => strings.push(string),
            _ => return None,
        }
    }
}

/// The environment of this process, in which added variables replace those of the same name.
fn environment(added: &[Vec<u8>]) -> anyhow::Result<Vec<CString>> {
    let name = |string: &[u8]| {
        string
            .split(|byte| *byte == b'=')
            .next()
            .map(<[u8]>::to_vec)
    };
    let own = std::env::vars_os().map(|(key, value)| {
        let mut string = key.into_vec();
        string.push(b'=');
        string.extend_from_slice(value.as_bytes());
        string
    });
    own.filter(|string| added.iter().all(|new| name(new) != name(string)))
        .chain(added.iter().cloned())
        .map(|string| CString::new(string).context("the environment has a zero byte"))
        .collect()
}

fn become_command(
    gate: &UnixStream,
    command: &[OsString],
    added: &[Vec<u8>],
) -> anyhow::Result<std::convert::Infallible> {
    fcntl(gate, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))
        .context("cannot close a socket at the start")?;
    let strings: Vec<CString> = command
        .iter()
        .map(|string| CString::new(string.as_bytes()))
        .collect::<Result<_, _>>()
        .context("an argument has a zero byte")?;
    let program = strings.first().context("no command")?;
    let environment = environment(added)?;
    Ok(
        nix::unistd::execvpe(program, &strings, &environment).map_err(|error| CannotRun {
            reason: format!(
                "cannot run '{}': {}",
                program.to_string_lossy(),
                error.desc()
            ),
            code: NOT_EXECUTABLE,
        })?,
    )
}
