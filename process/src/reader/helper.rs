//! Starts helpers, sends them requests, and kills them.

use super::answer::Packet;
use super::request::{MAX_REQUEST, PART, Request};
use super::socket::{pair, receive, send};
use super::{Owner, VERB, killed};
use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::{TimeVal, TimeValLike};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a helper may be blocked in a read. Time in which it is runnable but has no processor does not count.
pub(super) const DEADLINE: Duration = Duration::from_millis(500);
/// How often that is checked. A faster answer is not delayed.
const SLICE: Duration = Duration::from_millis(50);
/// How long an answer may take in total.
const MAX_ANSWER: Duration = Duration::from_secs(10);

/// A helper process.
#[derive(Debug)]
pub(super) struct Helper {
    /// None: it has been killed.
    process: Option<Child>,
    socket: OwnedFd,
    /// Memory for the packets of answers.
    packet: Vec<u8>,
}

/// The outcome of a request.
pub(super) enum Answer {
    Done(io::Result<Option<OwnedFd>>),
    Late,
}

impl Helper {
    pub(super) fn start() -> io::Result<Self> {
        let (socket, theirs) = pair()?;
        let slice = i64::try_from(SLICE.as_millis()).unwrap_or(i64::MAX);
        setsockopt(
            &socket,
            sockopt::ReceiveTimeout,
            &TimeVal::milliseconds(slice),
        )?;
        let process = Command::new("/proc/self/exe")
            .arg(VERB)
            .env_clear()
            .current_dir("/")
            // Signals of the terminal are for varid only.
            .process_group(0)
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self {
            process: Some(process),
            socket,
            packet: vec![0; PART.saturating_add(1)],
        })
    }

    /// Kills the helper without waiting for its end. `waits_for`: the owner of the processes on which it is blocked.
    pub(super) fn kill(&mut self, waits_for: Option<Owner>) {
        if let Some(mut process) = self.process.take() {
            // It may have ended by itself.
            let _ = process.kill();
            killed().push((waits_for, process));
        }
    }

    /// Returns true if the helper is blocked: neither running nor waiting for a processor.
    fn is_blocked(&self) -> bool {
        let stat = self.process.as_ref().and_then(|process| {
            std::fs::read_to_string(format!("/proc/{}/stat", process.id())).ok()
        });
        // "PID (NAME) STATE ..."
        let state = stat.as_ref().and_then(|stat| stat.rsplit_once(") "));
        state.is_none_or(|(_, state)| !state.starts_with('R'))
    }

    /// Sends a request and receives the answer, part by part. `waited` is set to the time for which the helper was blocked, in whole
    /// slices.
    ///
    /// An error means that the helper has ended, or has violated the protocol.
    pub(super) fn ask(
        &mut self,
        request: &Request,
        inside: Option<&OwnedFd>,
        waited: &mut Duration,
        part: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<Answer> {
        let encoded = request.encode();
        if encoded.len() > MAX_REQUEST {
            let error = io::Error::from(io::ErrorKind::ArgumentListTooLong);
            return Ok(Answer::Done(Err(error)));
        }
        send(&self.socket, &encoded, inside)?;
        let began = Instant::now();
        // The helper sends its whole answer, even if `part` refuses the first parts.
        let mut taken = Ok(());
        loop {
            let (len, file) = match receive(&self.socket, &mut self.packet) {
                Ok(received) => received,
                Err(Errno::EINTR) => continue,
                Err(Errno::EAGAIN) => {
                    if self.is_blocked() {
                        *waited = waited.saturating_add(SLICE);
                    }
                    if *waited >= DEADLINE || began.elapsed() >= MAX_ANSWER {
                        return Ok(Answer::Late);
                    }
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let packet = self.packet.get(..len).and_then(Packet::parse);
            let packet = packet
                .ok_or_else(|| io::Error::other("the reader of other processes has ended"))?;
            match packet {
                Packet::More(bytes) => taken = taken.and_then(|()| part(bytes)),
                Packet::Done(bytes) => {
                    taken = taken.and_then(|()| part(bytes));
                    return Ok(Answer::Done(taken.map(|()| file)));
                }
                Packet::Failed(error) => return Ok(Answer::Done(Err(error))),
            }
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.kill(None);
    }
}
