//! A command that is started and held before its first instruction.

use anyhow::Context;
use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode};

/// A child that waits for [`Held::release`] to become the command.
#[derive(Debug)]
pub struct Held {
    /// The child, the command from its release on.
    pub child: Child,
    gate: File,
}

impl Held {
    /// Starts the child: this program, waiting at a pipe.
    pub fn start(command: &[OsString]) -> anyhow::Result<Self> {
        let (read, write) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC).context("cannot make a pipe")?;
        // The child finds the pipe's end by its number.
        nix::fcntl::fcntl(&read, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty()))
            .context("cannot hand a pipe to a child")?;
        let child = Command::new("/proc/self/exe")
            .arg0("varid")
            .args(["launch", &read.as_raw_fd().to_string(), "--"])
            .args(command)
            .spawn()
            .context("cannot start a child")?;
        Ok(Self { child, gate: File::from(write) })
    }

    /// The child becomes the command now.
    pub fn release(&mut self) -> std::io::Result<()> {
        self.gate.write_all(b"g")
    }
}

/// The child's side: `varid launch FD -- COMMAND`.
pub fn wait_and_become(fd: i32, command: &[OsString]) -> anyhow::Result<ExitCode> {
    // SAFETY: the parent opened this descriptor for this process and nobody else here uses it.
    let mut gate = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    let mut byte = [0];
    if gate.read(&mut byte).unwrap_or(0) == 0 {
        // Nobody will profile: the parent has gone.
        return Ok(ExitCode::FAILURE);
    }
    drop(gate);
    let words: Vec<CString> = command
        .iter()
        .map(|word| CString::new(word.as_bytes()))
        .collect::<Result<_, _>>()
        .context("an argument has a zero byte")?;
    let program = words.first().context("no command")?;
    let Err(error) = nix::unistd::execvp(program, &words);
    Err(anyhow::anyhow!("cannot run '{}': {}", program.to_string_lossy(), error.desc()))
}
