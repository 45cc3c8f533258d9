//! Starts a command and holds it before its first instruction.

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

/// The reason why a command cannot be started.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct CannotRun {
    reason: String,
    /// The exit code with which a shell reports it.
    pub code: u8,
}

/// The program does not exist.
const NOT_FOUND: u8 = 127;
/// The program exists but cannot be executed.
const NOT_EXECUTABLE: u8 = 126;
/// The child sends this instead if varid itself failed.
const OWN_FAILURE: u8 = 0;

/// A child that waits for [`Held::release`] to become the command.
#[derive(Debug)]
pub struct Held {
    /// The child, which becomes the command when it is released.
    pub child: Child,
    /// The command's program.
    pub program: PathBuf,
    gate: UnixStream,
}

impl Held {
    /// Starts the child: this program, waiting at a socket. Returns an error if the command's program cannot be run.
    pub fn start(command: &[OsString]) -> anyhow::Result<Self> {
        let program = command.first().context("no command")?;
        let program = runnable(program).map_err(|(why, code)| CannotRun {
            reason: format!("cannot run '{}': {why}", program.to_string_lossy()),
            code,
        })?;
        let (gate, theirs) = UnixStream::pair().context("cannot make a socket pair")?;
        // The child gets its end of the socket by number.
        fcntl(&theirs, FcntlArg::F_SETFD(FdFlag::empty()))
            .context("cannot hand a socket to a child")?;
        let child = Command::new("/proc/self/exe")
            .arg0("varid")
            .args(["launch", &theirs.as_raw_fd().to_string(), "--"])
            .args(command)
            .spawn()
            .context("cannot start a child")?;
        Ok(Self {
            child,
            program,
            gate,
        })
    }

    /// Makes the child become the command, with these variables added to its environment. Returns an error if that fails.
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
        // The child's end closes when it becomes the command. Until then the child only sends an error.
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

/// Checks that a program exists and is executable, to avoid a recording that cannot start. The result may change until the exec.
/// Returns its path, or the reason and the exit code if it does not.
fn runnable(program: &OsStr) -> Result<PathBuf, (&'static str, u8)> {
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
                return Ok(candidate);
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
        // The parent is gone, so the command would not be recorded.
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

/// Reads strings that end in a zero byte, up to an empty one.
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

/// Returns this process's environment, with added variables replacing those of the same name.
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
