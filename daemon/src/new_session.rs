//! Starts a session, both for foreground commands and in the daemon.

use crate::{paths, sessions};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use varid_session::request::{Configured, RecordingRequest, TargetSpec};
use varid_session::{Session, SessionControl, SessionOptions};
use varid_vm::VmKinds;

/// The folder into which a session is recorded.
#[derive(Debug)]
pub struct SessionFolder {
    /// Its path.
    pub path: PathBuf,
    origin: Origin,
}

/// Who created the folder of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Created by [`SessionFolder::of`] among the user's sessions.
    Varid,
    /// Named by the request and absent before. The session's start creates it, unless another process is faster.
    Start,
    /// Named by the request and created by the user.
    User,
}

impl SessionFolder {
    /// Returns the folder that the request names, or creates one among the user's sessions.
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

    /// Removes the folder of a session that failed before it recorded anything, if it was made for this session.
    /// `started` means that this session has taken the folder, so no other process records into it.
    fn remove_if_made(&self, started: bool) {
        let made = match self.origin {
            Origin::Varid => true,
            Origin::Start => started,
            Origin::User => false,
        };
        if made {
            // On an error the folder remains, without a recording.
            let _ = varid_recording::remove_session(&self.path);
        }
    }
}

/// A session that has not started.
#[derive(Debug)]
pub struct NewSession {
    /// The profiled processes.
    pub target: TargetSpec,
    /// The settings.
    pub configured: Configured,
    /// The session's folder.
    pub folder: SessionFolder,
    /// The kinds of VM that the session supports.
    pub vms: VmKinds,
}

impl NewSession {
    /// Starts the session, calls `release`, which may let the profiled program run, and adds the session to the list.
    /// It samples when this returns.
    ///
    /// # Errors
    ///
    /// The start or `release` failed. A folder that was made for the session is removed.
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
