//! Sends a client's request to the daemon.

use super::error::ControlError;
use super::protocol::{self, MAX_REPLY, Reply, Request};
use crate::paths;
use nix::sys::socket::{getsockopt, sockopt};
use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use varid_process::clock;

/// How long a client waits for the reply to a request other than `stop`.
const PATIENCE: Duration = Duration::from_secs(60);

/// Connects to this user's daemon.
pub fn connect() -> Result<UnixStream, ControlError> {
    let socket = paths::socket();
    let stream = UnixStream::connect(&socket).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound
        | io::ErrorKind::ConnectionRefused
        | io::ErrorKind::NotADirectory => ControlError::NoDaemon,
        io::ErrorKind::PermissionDenied => ControlError::Denied(socket.clone()),
        _ => ControlError::io("connect to", &socket)(error),
    })?;
    let peer = getsockopt(&stream, sockopt::PeerCredentials)
        .map_err(|error| ControlError::io("know who listens at", &socket)(error.into()))?;
    match peer.uid() {
        owner if owner == 0 || owner == nix::unistd::geteuid().as_raw() => Ok(stream),
        owner => Err(ControlError::OtherUser { socket, owner }),
    }
}

/// Sends a request and waits for the reply: for the end of a session without a limit, else for a minute.
pub fn ask(request: &Request) -> Result<Reply, ControlError> {
    let socket = paths::socket();
    let mut stream = connect()?;
    stream
        .set_write_timeout(Some(PATIENCE))
        .map_err(ControlError::io("use", &socket))?;
    let deadline = match request {
        Request::Stop { .. } => None,
        Request::Start { .. } | Request::Status => Some(clock::after(PATIENCE)),
    };
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::TimedOut => ControlError::Silent(socket.clone()),
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe => ControlError::Gone(paths::log()),
        _ => ControlError::io("ask the daemon at", socket.clone())(error),
    };
    // A daemon that refuses a client replies and closes the connection without reading the request. So the reply is read even if the write
    // has failed.
    let sent = protocol::send(&mut stream, request);
    if sent
        .as_ref()
        .is_err_and(|error| error.kind() == io::ErrorKind::InvalidData)
    {
        return Err(ControlError::Protocol(
            "a path that is not UTF-8 cannot be named to the daemon".to_owned(),
        ));
    }
    let line = match protocol::receive(&mut stream, MAX_REPLY, deadline) {
        Ok(Some(line)) => line,
        Ok(None) => {
            return Err(sent
                .err()
                .map_or_else(|| ControlError::Gone(paths::log()), failed));
        }
        Err(error) => return Err(failed(error)),
    };
    match protocol::parse(&line).map_err(ControlError::Protocol)? {
        Reply::Refused { reason } => Err(ControlError::Refused(reason)),
        Reply::Ending => Err(ControlError::Gone(paths::log())),
        reply => Ok(reply),
    }
}
