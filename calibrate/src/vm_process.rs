//! How is a VM asked to time a method?

use crate::error::{Error, Result};
use crate::program::{MethodNumber, Run};
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// How long a VM may take until it sends anything. A coarse clock needs a second for a loop.
const PATIENCE: Duration = Duration::from_secs(60);

/// A VM that executes a program's main class. It ends with the value.
pub(crate) struct VmProcess {
    child: Child,
    input: ChildStdin,
    answers: Receiver<Vec<u8>>,
    /// Bytes of the answers that are not used.
    rest: Vec<u8>,
}

impl VmProcess {
    /// Starts a VM. What it writes to standard error goes where varid's goes.
    pub(crate) fn start(mut command: Command) -> Result<Self> {
        let failed = |error, command: &Command| Error::Start {
            program: command.get_program().to_string_lossy().into_owned(),
            error,
        };
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(error, &command))?;
        let (Some(input), Some(mut output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::Ended("it has no standard input".to_owned()));
        };
        let (sender, answers) = channel();
        // It ends when the VM does, or nobody waits for answers any more.
        std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(length @ 1..) = output.read(&mut buffer) {
                let bytes = buffer.get(..length).unwrap_or_default().to_vec();
                if sender.send(bytes).is_err() {
                    break;
                }
            }
        });
        Ok(Self {
            child,
            input,
            answers,
            rest: Vec::new(),
        })
    }

    /// Sends requests, each to execute a run some times, and returns the answers in their order.
    pub(crate) fn time(&mut self, requests: &[(Run, u32)]) -> Result<Vec<i64>> {
        /// Answers for a request that has none.
        const FLUSH: (Run, u32) = (
            Run {
                method: MethodNumber(0),
                repetitions: 0,
            },
            0,
        );
        let mut bytes = Vec::new();
        for (run, count) in requests.iter().chain([&FLUSH]) {
            for number in [run.method.0, run.repetitions, *count] {
                bytes.extend(number.to_be_bytes());
            }
        }
        let sent = self
            .input
            .write_all(&bytes)
            .and_then(|()| self.input.flush());
        if let Err(error) = sent {
            return Err(self.ended(&error.to_string()));
        }
        let expected: usize = requests
            .iter()
            .map(|(_, count)| usize::try_from(*count).unwrap_or(0))
            .fold(0, usize::saturating_add);
        let length = expected.saturating_mul(8);
        while self.rest.len() < length {
            match self.answers.recv_timeout(PATIENCE) {
                Ok(bytes) => self.rest.extend(bytes),
                Err(RecvTimeoutError::Timeout) => return Err(Error::Silent(PATIENCE)),
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended("no answer")),
            }
        }
        let used: Vec<u8> = self.rest.drain(..length).collect();
        let (words, _) = used.as_chunks();
        Ok(words.iter().map(|word| i64::from_be_bytes(*word)).collect())
    }

    /// Returns how the VM has ended.
    fn ended(&mut self, otherwise: &str) -> Error {
        // It has closed its pipes, so that it is about to end.
        let status = self.child.wait();
        Error::Ended(status.map_or_else(|_| otherwise.to_owned(), |status| status.to_string()))
    }
}

impl Drop for VmProcess {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
