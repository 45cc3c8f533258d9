//! How does a session begin, in the foreground and in the daemon?

use crate::{paths, sessions};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use varid_session::request::{Configured, RecordingRequest, TargetSpec};
use varid_session::{Session, SessionControl, SessionOptions};
use varid_vm::VmKinds;

/// The folder that a session is recorded into.
#[derive(Debug)]
pub struct SessionFolder {
    /// Its path.
    pub path: PathBuf,
    origin: Origin,
}

/// Who has created the folder of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// [`SessionFolder::of`]: it is new, among the user's sessions.
    Varid,
    /// The session's start, unless another process is faster: the request names it, and it was not there.
    Start,
    /// The user: the request names it, and it was there.
    User,
}

impl SessionFolder {
    /// The folder that a request names; a new one among the user's sessions, if it names none.
    pub fn of(request: &RecordingRequest, target: &TargetSpec) -> io::Result<Self> {
        let Some(named) = &request.output.folder else {
            return Ok(Self {
                path: sessions::create(target)?,
                origin: Origin::Varid,
            });
        };
        let origin = match named.exists() {
            true => Origin::User,
            false => Origin::Start,
        };
        Ok(Self {
            path: named.clone(),
            origin,
        })
    }

    /// Removes the folder of a session that has failed before it recorded anything, if it was made for this session. `started`: this
    /// session has taken the folder, so no other process records into it.
    fn remove_if_made(&self, started: bool) {
        let made = match self.origin {
            Origin::Varid => true,
            Origin::Start => started,
            Origin::User => false,
        };
        if made {
            // An error: the folder stays, without a recording.
            let _ = varid_recording::remove_session(&self.path);
        }
    }
}

/// A session that has not begun.
#[derive(Debug)]
pub struct NewSession {
    /// What it profiles.
    pub target: TargetSpec,
    /// What it records of that.
    pub configured: Configured,
    /// Where.
    pub folder: SessionFolder,
    /// The kinds of VM that it looks for.
    pub vms: VmKinds,
}

impl NewSession {
    /// Starts the session, then `release`, which may let go what is profiled, and lists the session. It samples when this returns.
    ///
    /// # Errors
    ///
    /// The start or `release` failed. Nothing is left of a folder that was made for the session.
    pub fn begin(
        self,
        control: Arc<SessionControl>,
        release: impl FnOnce(&mut Session) -> anyhow::Result<()>,
    ) -> anyhow::Result<Session> {
        let Self {
            target,
            configured,
            folder,
            vms,
        } = self;
        let listed = target.clone();
        let context = paths::program_context(vms);
        let started = SessionOptions::new(target, configured, folder.path.clone(), context)
            .and_then(|options| Session::start(options, control));
        let has_started = started.is_ok();
        let begun = started.map_err(anyhow::Error::from);
        let begun = begun.and_then(|mut session| release(&mut session).map(|()| session));
        if begun.is_err() {
            folder.remove_if_made(has_started);
        } else if let Err(error) = sessions::list_elsewhere(&folder.path, &listed) {
            tracing::warn!("'varid sessions' will not list it: {error}");
        }
        begun
    }
}
