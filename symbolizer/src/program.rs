//! Runs another program and reads its output, within limits of time and size.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// The polling interval for the exit of a program that has closed its output.
const PAUSE: Duration = Duration::from_millis(5);

/// The limits for a program's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerLimits {
    /// The most bytes of its standard output, and of its standard error.
    pub bytes: usize,
    /// The longest time from its start to its exit.
    pub time: Duration,
}

/// Why there is no output. If the program was running, it has been killed.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    /// It cannot be started, or its output cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Its output is too long.
    #[error("its answer is longer than {0} bytes")]
    TooLong(usize),
    /// It took too long.
    #[error("it has not answered for {} seconds", .0.as_secs())]
    TooLate(Duration),
}

/// A running program, which is killed when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A stream of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    Output,
    Errors,
}

/// Runs a program until it exits, like [`Command::output`], within limits.
///
/// # Errors
///
/// It cannot be started, or exceeds the limits.
pub fn output(command: &mut Command, limits: AnswerLimits) -> Result<Output, NoAnswer> {
    let deadline = Instant::now().checked_add(limits.time);
    let left = || {
        deadline.map_or(limits.time, |at| {
            at.saturating_duration_since(Instant::now())
        })
    };
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut child = Running(child);
    let (sender, receiver) = channel();
    if let Some(stdout) = child.0.stdout.take() {
        read(stdout, Stream::Output, limits.bytes, sender.clone())?;
    }
    if let Some(stderr) = child.0.stderr.take() {
        read(stderr, Stream::Errors, limits.bytes, sender)?;
    }
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    loop {
        match receiver.recv_timeout(left()) {
            Ok((_, bytes)) if bytes.len() > limits.bytes => {
                return Err(NoAnswer::TooLong(limits.bytes));
            }
            Ok((Stream::Output, bytes)) => stdout = bytes,
            Ok((Stream::Errors, bytes)) => stderr = bytes,
            Err(RecvTimeoutError::Timeout) => return Err(NoAnswer::TooLate(limits.time)),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let status = wait(&mut child.0, left)?.ok_or(NoAnswer::TooLate(limits.time))?;
    Ok(Output {
        status,
        stdout,
        stderr,
    })
}

/// Reads a stream to its end, or up to one byte more than the limit, and sends what was read.
fn read(
    from: impl Read + Send + 'static,
    stream: Stream,
    most: usize,
    sender: Sender<(Stream, Vec<u8>)>,
) -> io::Result<()> {
    let most = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    let read = move || {
        let mut bytes = Vec::new();
        // The output before a read error is used. If the time is over, nothing receives it any more.
        let _ = from.take(most).read_to_end(&mut bytes);
        let _ = sender.send((stream, bytes));
    };
    std::thread::Builder::new().spawn(read).map(drop)
}

/// Waits for a program that has closed its streams. None if the time is over.
fn wait(child: &mut Child, left: impl Fn() -> Duration) -> io::Result<Option<ExitStatus>> {
    loop {
        let status = child.try_wait()?;
        if status.is_some() || left().is_zero() {
            return Ok(status);
        }
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    fn run(script: &str, bytes: usize, time: Duration) -> Result<Output, NoAnswer> {
        let mut shell = Command::new("sh");
        output(shell.args(["-c", script]), AnswerLimits { bytes, time })
    }

    #[test]
    fn an_answer_has_an_end() {
        let answer = run("echo out; echo errors >&2; exit 3", 7, LONG).unwrap();
        assert_eq!(
            (&answer.stdout[..], &answer.stderr[..]),
            (&b"out\n"[..], &b"errors\n"[..])
        );
        assert_eq!(answer.status.code(), Some(3));
        for script in ["yes", "yes >&2", "echo 12345678; exec sleep 1000"] {
            let error = run(script, 7, LONG).unwrap_err();
            assert!(matches!(error, NoAnswer::TooLong(7)), "{script}: {error}");
        }
        let silent = "exec sleep 1000";
        let closed = "exec >&- 2>&-; exec sleep 1000";
        for script in [silent, closed] {
            let error = run(script, 7, Duration::from_millis(50)).unwrap_err();
            assert!(matches!(error, NoAnswer::TooLate(_)), "{script}: {error}");
        }
        let error = output(
            &mut Command::new("/nowhere/program"),
            AnswerLimits {
                bytes: 1,
                time: LONG,
            },
        );
        assert!(matches!(error, Err(NoAnswer::Io(_))));
    }
}
