//! A command that is started and held before its first instruction.

use anyhow::{Context, bail};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use std::ffi::{CString, OsString};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode};

/// A child that waits for [`Held::release`] to become the command.
#[derive(Debug)]
pub struct Held {
    /// The child, the command from its release on.
    pub child: Child,
    gate: UnixStream,
}

impl Held {
    /// Starts the child: this program, waiting at a socket.
    pub fn start(command: &[OsString]) -> anyhow::Result<Self> {
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

    /// The child becomes the command now; an error says why it cannot.
    pub fn release(&mut self) -> anyhow::Result<()> {
        self.gate
            .write_all(b"g")
            .context("cannot release the command")?;
        let mut reason = String::new();
        // Its end closes when it becomes the command; before that it only says what failed.
        (&self.gate)
            .take(4096)
            .read_to_string(&mut reason)
            .context("cannot hear of the command")?;
        if !reason.is_empty() {
            bail!("{reason}");
        }
        Ok(())
    }
}

/// The child's side: `varid launch FD -- COMMAND`.
pub fn wait_and_become(fd: i32, command: &[OsString]) -> anyhow::Result<ExitCode> {
    // SAFETY: the parent opened this descriptor for this process and nobody else here uses it.
    let mut gate = UnixStream::from(unsafe { OwnedFd::from_raw_fd(fd) });
    if gate.read(&mut [0]).unwrap_or(0) == 0 {
        // Nobody will profile: the parent has gone.
        return Ok(ExitCode::FAILURE);
    }
    let error = match become_command(&gate, command) {
        Ok(never) => match never {},
        Err(error) => error,
    };
    gate.write_all(super::out::reason(&error).as_bytes())
        .context("cannot report a failure")?;
    Ok(ExitCode::FAILURE)
}

fn become_command(
    gate: &UnixStream,
    command: &[OsString],
) -> anyhow::Result<std::convert::Infallible> {
    fcntl(gate, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))
        .context("cannot close a socket at the start")?;
    let words: Vec<CString> = command
        .iter()
        .map(|word| CString::new(word.as_bytes()))
        .collect::<Result<_, _>>()
        .context("an argument has a zero byte")?;
    let program = words.first().context("no command")?;
    nix::unistd::execvp(program, &words).map_err(|error| {
        anyhow::anyhow!(
            "cannot run '{}': {}",
            program.to_string_lossy(),
            error.desc()
        )
    })
}
