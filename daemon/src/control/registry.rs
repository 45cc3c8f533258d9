//! The sessions that the daemon runs, each in its own thread.

use super::protocol::{Activity, Ended, SessionStatus, StatusCounts, StatusSampling};
use super::running;
use crate::new_session::{NewSession, SessionFolder};
use crate::output;
use crate::sessions;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};
use varid_model::Rate;
use varid_recording::{Manifest, SESSION_JSON};
use varid_session::request::{Configured, NO_TARGET, RecordingRequest, TargetSpec};
use varid_session::{Session, SessionControl};
use varid_vm::VmKinds;

/// Maximum number of simultaneous sessions. Each has a thread, and a ring for each CPU.
const MAX_SESSIONS: usize = 16;
/// Maximum number of failed sessions that `status` lists.
const MAX_FAILED: usize = 16;

/// The sessions of a daemon.
#[derive(Debug)]
pub struct Registry {
    /// The kinds of VM that sessions detect.
    vms: VmKinds,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    running: Vec<Arc<Running>>,
    failed: VecDeque<Ended>,
    /// The daemon is ending and starts no session.
    closing: bool,
    /// Time at which the last session ended, or the daemon started.
    idle_since: Instant,
}

/// A session from its request to its end.
#[derive(Debug)]
struct Running {
    /// The target at its start.
    target: String,
    control: Arc<SessionControl>,
    started: Instant,
    progress: Mutex<Progress>,
    changed: Condvar,
}

#[derive(Debug, Clone)]
enum Progress {
    Starting,
    Runs(Facts),
    /// None if it could not start.
    Ended(Option<Ended>),
}

/// Facts about a session that is sampling.
#[derive(Debug, Clone)]
struct Facts {
    folder: PathBuf,
    event: String,
    rate: Rate,
    source: &'static str,
    notes: Vec<String>,
}

/// The reason why a session was not started.
#[derive(Debug, PartialEq, Eq)]
pub enum NotStarted {
    /// This daemon is ending. The next one will start it.
    Ending,
    /// It was refused, for this reason.
    Refused(String),
}

impl<T: Into<String>> From<T> for NotStarted {
    fn from(reason: T) -> Self {
        Self::Refused(reason.into())
    }
}

impl Registry {
    /// A registry without sessions.
    pub fn new(vms: VmKinds) -> Self {
        let inner = Inner {
            running: Vec::new(),
            failed: VecDeque::new(),
            closing: false,
            idle_since: Instant::now(),
        };
        Self {
            vms,
            inner: Mutex::new(inner),
        }
    }

    /// Starts the session that a client requests. It is sampling when this returns.
    pub fn start(self: &Arc<Self>, request: RecordingRequest) -> Result<SessionStatus, NotStarted> {
        request.check()?;
        let configured = request.read().map_err(|error| error.to_string())?;
        let spec = configured.target().ok_or(NO_TARGET)?;
        let running = self.reserve(&spec)?;
        let (started, receiver) = mpsc::channel();
        let (registry, session) = (Arc::clone(self), Arc::clone(&running));
        let vms = self.vms;
        let thread = std::thread::Builder::new()
            .name("session".to_owned())
            .spawn(move || {
                let span = tracing::info_span!("session", target = session.target);
                let outcome = span.in_scope(|| session.carry_out(spec, configured, vms, &started));
                // The session is removed from the list before the clients that wait for its end get their answer. So a client that then
                // requests the status does not find it.
                registry.remove(&session, outcome.as_ref().ok());
                session.finish(outcome.as_ref().ok().cloned());
                if let Err(reason) = outcome {
                    // Sending fails if the client has closed its connection.
                    let _ = started.send(Err(reason));
                }
            });
        if let Err(error) = thread {
            self.remove(&running, None);
            return Err(format!("cannot start a thread for the session: {error}").into());
        }
        match receiver.recv() {
            Ok(Ok(status)) => Ok(status),
            Ok(Err(reason)) => Err(reason.into()),
            Err(_) => Err("the session's thread is gone: see the daemon's log".into()),
        }
    }

    fn reserve(&self, spec: &TargetSpec) -> Result<Arc<Running>, NotStarted> {
        let mut inner = self.lock();
        if inner.closing {
            return Err(NotStarted::Ending);
        }
        if inner.running.len() >= MAX_SESSIONS {
            return Err(format!(
                "{MAX_SESSIONS} sessions run already, and no more are served at once: stop one"
            )
            .into());
        }
        let running = Arc::new(Running {
            target: spec.to_string(),
            control: Arc::default(),
            started: Instant::now(),
            progress: Mutex::new(Progress::Starting),
            changed: Condvar::new(),
        });
        inner.running.push(Arc::clone(&running));
        Ok(running)
    }

    fn remove(&self, session: &Arc<Running>, ended: Option<&Ended>) {
        let mut inner = self.lock();
        inner.running.retain(|other| !Arc::ptr_eq(other, session));
        inner.idle_since = Instant::now();
        if let Some(ended) = ended.filter(|ended| ended.error.is_some()) {
            if inner.failed.len() >= MAX_FAILED {
                inner.failed.pop_front();
            }
            inner.failed.push_back(ended.clone());
        }
    }

    /// Ends one session, or all, and waits until their recordings are complete.
    pub fn stop(&self, which: Option<&str>) -> Result<Vec<Ended>, String> {
        let running = self.lock().running.clone();
        let chosen = match which {
            None if running.is_empty() => return Err("no session runs".to_owned()),
            None => running,
            Some(which) => vec![Arc::clone(running::find(
                &running,
                |session| session.status(),
                which,
            )?)],
        };
        for session in &chosen {
            session.control.stop.store(true, Ordering::Relaxed);
        }
        Ok(chosen.iter().filter_map(|session| session.wait()).collect())
    }

    /// Starts no further session, ends all sessions and waits for them.
    pub fn close(&self) {
        self.lock().closing = true;
        // An error: no session runs.
        let _ = self.stop(None);
    }

    /// Returns the running sessions, and the last ones that failed.
    pub fn status(&self) -> (Vec<SessionStatus>, Vec<Ended>) {
        let inner = self.lock();
        (
            inner
                .running
                .iter()
                .map(|session| session.status())
                .collect(),
            inner.failed.iter().cloned().collect(),
        )
    }

    /// Returns how long no session has been running, or None if one is running.
    pub fn idle_for(&self) -> Option<Duration> {
        let inner = self.lock();
        inner.running.is_empty().then(|| inner.idle_since.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic under this lock leaves the state consistent.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    /// Runs the session in its thread, from its start to its end. Returns an error if it could not start.
    fn carry_out(
        &self,
        spec: TargetSpec,
        configured: Configured,
        vms: VmKinds,
        started: &mpsc::Sender<Result<SessionStatus, String>>,
    ) -> Result<Ended, String> {
        let result = catch_unwind(AssertUnwindSafe(|| {
            let session = self.begin(spec, configured, vms)?;
            // If the client has closed its connection, the session continues.
            let _ = started.send(Ok(self.status()));
            Ok(session.run().map_err(|error| error.to_string()).map(drop))
        }));
        let result = match result {
            Ok(Ok(result)) => result,
            Ok(Err(reason)) => {
                tracing::error!("not started: {reason}");
                return Err(reason);
            }
            Err(_) => Err("it failed unexpectedly: see the daemon's log".to_owned()),
        };
        let folder = match &*self.progress() {
            Progress::Runs(facts) => facts.folder.clone(),
            Progress::Starting | Progress::Ended(_) => {
                return Err("the session's start failed unexpectedly: see the daemon's log".into());
            }
        };
        let ended = Ended {
            session: sessions::file_name(&folder),
            folder,
            samples: self.control.samples.load(Ordering::Relaxed),
            lost: self.control.lost.load(Ordering::Relaxed),
            error: result.err(),
        };
        match &ended.error {
            Some(error) => tracing::error!(
                "ended: {error}; what was recorded is in {}",
                ended.folder.display()
            ),
            None => tracing::info!("{} samples in {}", ended.samples, ended.folder.display()),
        }
        if let Err(error) = sessions::set_last(&ended.folder) {
            tracing::warn!("cannot note the last session: {error}");
        }
        Ok(ended)
    }

    /// Wakes the clients that wait for the end. None if the session did not start.
    fn finish(&self, ended: Option<Ended>) {
        *self.progress() = Progress::Ended(ended);
        self.changed.notify_all();
    }

    fn begin(
        &self,
        spec: TargetSpec,
        configured: Configured,
        vms: VmKinds,
    ) -> Result<Session, String> {
        let folder = SessionFolder::of(&configured.request, &spec)
            .map_err(|error| format!("cannot create a session: {error}"))?;
        let path = folder.path.clone();
        let session = NewSession {
            target: spec,
            configured,
            folder,
            vms,
        };
        let session = session
            .begin(Arc::clone(&self.control), |_| Ok(()))
            .map_err(|error| output::reason(error.as_ref()))?;
        // The recording's own manifest has the events and the source.
        let manifest =
            Manifest::read(&path.join(SESSION_JSON)).map_err(|error| error.to_string())?;
        tracing::info!("recording into {}", path.display());
        *self.progress() = Progress::Runs(Facts {
            folder: path,
            event: manifest.events.names(),
            rate: manifest.events.first.rate,
            source: manifest.source.name(),
            notes: manifest.notes,
        });
        Ok(session)
    }

    /// Waits for the end. Returns None if it did not start.
    fn wait(&self) -> Option<Ended> {
        let mut progress = self.progress();
        loop {
            match &*progress {
                Progress::Ended(ended) => return ended.clone(),
                Progress::Starting | Progress::Runs(_) => {
                    progress = self
                        .changed
                        .wait(progress)
                        .unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn status(&self) -> SessionStatus {
        let control = &self.control;
        let processes = control.processes.load(Ordering::Relaxed);
        let stopping = control.stop.load(Ordering::Relaxed);
        let (folder, facts) = match &*self.progress() {
            Progress::Runs(facts) => (facts.folder.clone(), Some(facts.clone())),
            Progress::Ended(Some(ended)) => (ended.folder.clone(), None),
            Progress::Starting | Progress::Ended(None) => (PathBuf::new(), None),
        };
        let state = match &facts {
            None => {
                if folder.as_os_str().is_empty() {
                    Activity::Starting
                } else {
                    Activity::Stopping
                }
            }
            Some(_) if stopping => Activity::Stopping,
            Some(_) if processes == 0 => Activity::Waiting,
            Some(_) => Activity::Recording,
        };
        let sampling = facts.as_ref().map(|facts| {
            let event = facts.event.clone();
            StatusSampling::new(event, facts.rate, facts.source)
        });
        SessionStatus {
            session: sessions::file_name(&folder),
            target: control.target().unwrap_or_else(|| self.target.clone()),
            state,
            sampling: sampling.unwrap_or_default(),
            notes: facts.map_or_else(Vec::new, |facts| facts.notes),
            configuration: control.configuration_report(),
            counts: StatusCounts {
                samples: control.samples.load(Ordering::Relaxed),
                lost: control.lost.load(Ordering::Relaxed),
                processes: Some(processes),
                seconds: self.started.elapsed().as_secs_f64(),
                bytes: control.bytes.load(Ordering::Relaxed),
            },
            folder,
            recorder: None,
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_ends_begins_nothing_and_says_that_it_ends() {
        let registry = Registry::new(VmKinds::default());
        assert!(registry.reserve(&TargetSpec::All).is_ok());
        registry.lock().running.clear();
        registry.close();
        let refused = registry.reserve(&TargetSpec::All);
        assert_eq!(refused.unwrap_err(), NotStarted::Ending);
    }
}
