//! Errors between a client and the daemon.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// An error that prevents the daemon from running or answering.
#[derive(Debug, Error)]
pub enum ControlError {
    /// No daemon is listening.
    #[error("no daemon runs")]
    NoDaemon,
    /// The socket or its folder belongs to another user.
    #[error("the daemon at {0} is another user's: only its owner and root may use it")]
    Denied(PathBuf),
    /// A process of another user is listening on the socket.
    #[error(
        "what listens at {socket} is of user {owner}: only this user's daemon, or root's, is trusted"
    )]
    OtherUser {
        /// The socket.
        socket: PathBuf,
        /// The user of the listening process.
        owner: u32,
    },
    /// The daemon ended before it answered.
    #[error("the daemon ended before it answered; {log} says why", log = .0.display())]
    Gone(PathBuf),
    /// The daemon does not answer.
    #[error(
        "the daemon does not answer at {0}; it may be stopped or overloaded: see 'varid status' later, or end it and start again"
    )]
    Silent(PathBuf),
    /// The daemon refused the request.
    #[error("{0}")]
    Refused(String),
    /// The message does not follow the protocol.
    #[error("the daemon and this varid do not understand each other: {0}")]
    Protocol(String),
    /// Another daemon is running.
    #[error("a daemon runs already on {0}")]
    AlreadyRuns(PathBuf),
    /// Another daemon is ending, and does not finish.
    #[error(
        "a daemon is ending and still has {0}: try again when it has written its sessions, or end it"
    )]
    StillEnds(PathBuf),
    /// The daemon was started, but does not listen.
    #[error("the daemon did not come up: {reason}; its log is {log}")]
    NotUp {
        /// Its last message, or what is known.
        reason: String,
        /// The path of its log.
        log: PathBuf,
    },
    /// Other users can access the runtime folder.
    #[error(
        "{path} belongs to user {owner}, not to user {user}: the control socket is not safe there; remove it or set VARID_HOME"
    )]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// This process's user.
        user: u32,
    },
    /// A file, folder or socket cannot be used.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// The failed action.
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl ControlError {
    /// For `map_err`: the error that `action` on `path` failed.
    pub fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}
