//! What can go wrong between a client and the daemon.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why the daemon cannot run, or does not answer.
#[derive(Debug, Error)]
pub enum ControlError {
    /// No daemon listens.
    #[error("no daemon runs")]
    NoDaemon,
    /// The socket or its folder is another user's.
    #[error("the daemon at {0} is another user's: only its owner and root may use it")]
    Denied(PathBuf),
    /// Somebody else listens there.
    #[error(
        "what listens at {socket} is of user {owner}: only this user's daemon, or root's, is trusted"
    )]
    OtherUser {
        /// The socket.
        socket: PathBuf,
        /// The user whose process listens.
        owner: u32,
    },
    /// It went away before it answered.
    #[error("the daemon ended before it answered; {log} says why", log = .0.display())]
    Gone(PathBuf),
    /// It does not answer.
    #[error(
        "the daemon does not answer at {0}; it may be stopped or overloaded: see 'varid status' later, or end it and start again"
    )]
    Silent(PathBuf),
    /// The daemon said no.
    #[error("{0}")]
    Refused(String),
    /// Not one line of the protocol.
    #[error("the daemon and this varid do not understand each other: {0}")]
    Protocol(String),
    /// Another one is there.
    #[error("a daemon runs already on {0}")]
    AlreadyRuns(PathBuf),
    /// Another one was there, and did not come to its end.
    #[error(
        "a daemon is ending and still has {0}: try again when it has written its sessions, or end it"
    )]
    StillEnds(PathBuf),
    /// It was started and did not come up.
    #[error("the daemon did not come up: {reason}; its log is {log}")]
    NotUp {
        /// The last that it said, or what is known.
        reason: String,
        /// Its log.
        log: PathBuf,
    },
    /// The runtime folder is not ours alone.
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
    /// A file, folder or socket.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl ControlError {
    /// For `map_err`: `action` on `path` failed.
    pub fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}
