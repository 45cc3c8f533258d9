//! Serves clients of the daemon, with limits for each of them.
//!
//! Each client has a thread, a time limit and a size limit for its request, and the number of clients is limited. So no client can block
//! the daemon's sessions or other clients.

use super::client;
use super::error::ControlError;
use super::protocol::{self, DaemonStatus, MAX_REQUEST, Reply, Request};
use super::registry::{NotStarted, Registry};
use super::runtime::private_runtime;
use crate::paths;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{getsockopt, sockopt};
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use varid_process::clock;
use varid_vm::VmKinds;

/// Maximum number of clients that are served at the same time.
const MAX_CLIENTS: usize = 32;
/// Time limit for reading a request, and for writing its reply.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a new daemon waits for one that is ending and completing its sessions.
pub const SUCCESSION: Duration = Duration::from_secs(60);
/// Maximum size of the log in bytes. A larger one is truncated.
pub const MAX_LOG: u64 = 1 << 20;
/// Milliseconds between two checks of the idle limit and the size of the log.
const TICK_MS: u16 = 250;

/// A daemon that listens on its socket.
#[derive(Debug)]
pub struct Daemon {
    listener: UnixListener,
    socket: PathBuf,
    /// The lock that makes this the user's only daemon. The kernel releases it when the process ends.
    _lock: Flock<File>,
    signals: UnixStream,
    registry: Arc<Registry>,
    clients: Arc<AtomicUsize>,
    idle_limit: Option<Duration>,
}

impl Daemon {
    /// Listens on this user's control socket. With `idle_limit` the daemon ends when no session has run for that long.
    pub fn open(idle_limit: Option<Duration>, vms: VmKinds) -> Result<Self, ControlError> {
        private_runtime()?;
        let socket = paths::socket();
        let lock = take_lock(&socket)?;
        remove_stale(&socket)?;
        let listener =
            UnixListener::bind(&socket).map_err(ControlError::io("listen on", &socket))?;
        std::fs::set_permissions(&socket, Permissions::from_mode(0o600))
            .and_then(|()| listener.set_nonblocking(true))
            .map_err(ControlError::io("listen on", &socket))?;
        let signals = watch_signals().map_err(ControlError::io("watch signals for", &socket))?;
        Ok(Self {
            listener,
            socket,
            _lock: lock,
            signals,
            registry: Arc::new(Registry::new(vms)),
            clients: Arc::default(),
            idle_limit,
        })
    }

    /// Serves clients until a signal arrives or the idle limit is reached. Every session is complete when this returns.
    pub fn run(mut self) {
        tracing::info!("listening on {}", self.socket.display());
        loop {
            let mut fds = [
                PollFd::new(self.listener.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
            ];
            // An interrupted poll and a timeout need no distinction, because the same checks follow.
            let _ = poll(&mut fds, PollTimeout::from(TICK_MS));
            if self.signalled() {
                tracing::info!("told to end");
                break;
            }
            self.accept();
            self.bound_log();
            if self.has_nothing_to_do() {
                tracing::info!("nothing to do: ending");
                break;
            }
        }
        // Later clients find no daemon and start another one.
        let _ = std::fs::remove_file(&self.socket);
        // Closes the connections that wait to be accepted. Their clients also start another one.
        drop(self.listener);
        self.registry.close();
        wait_for(&self.clients);
    }

    fn signalled(&mut self) -> bool {
        // The stream is non-blocking: an error means that there is nothing to read.
        self.signals.read(&mut [0; 16]).is_ok_and(|read| read > 0)
    }

    fn has_nothing_to_do(&self) -> bool {
        let idle = self.registry.idle_for();
        self.clients.load(Ordering::Acquire) == 0
            && self
                .idle_limit
                .is_some_and(|limit| idle.is_some_and(|idle| idle >= limit))
    }

    /// Truncates the log of a daemon that `varid start` has started in the background. Its output is opened for appending, so it continues
    /// at the new end.
    fn bound_log(&self) {
        if self.idle_limit.is_none() {
            return;
        }
        let path = paths::log();
        if std::fs::metadata(&path).is_ok_and(|log| log.len() > MAX_LOG) {
            // A failure is retried at the next check.
            let _ = OpenOptions::new()
                .write(true)
                .custom_flags(libc::O_NOFOLLOW)
                .open(&path)
                .and_then(|log| log.set_len(0));
        }
    }

    fn accept(&self) {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => self.admit(stream),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    tracing::warn!("cannot accept a client: {error}");
                    // No descriptor is free. The client stays in the queue, and the sessions continue.
                    std::thread::sleep(Duration::from_millis(u64::from(TICK_MS)));
                    return;
                }
            }
        }
    }

    fn admit(&self, mut stream: UnixStream) {
        let refusal = match refuse_strangers(&stream) {
            Err(reason) => Some(reason),
            Ok(()) if self.clients.load(Ordering::Acquire) >= MAX_CLIENTS => {
                Some(format!("{MAX_CLIENTS} clients are being served: try again"))
            }
            Ok(()) => None,
        };
        if let Some(reason) = refusal {
            tracing::warn!("client refused: {reason}");
            // The buffer of a new socket has space for this line, so this does not block.
            let _ = stream
                .set_nonblocking(true)
                .and_then(|()| protocol::send(&mut stream, Reply::Refused { reason }));
            return;
        }
        let place = Place::take(&self.clients);
        let registry = Arc::clone(&self.registry);
        let thread = std::thread::Builder::new()
            .name("client".to_owned())
            .spawn(move || {
                let _place = place;
                if let Err(error) = serve(&mut stream, &registry) {
                    tracing::debug!("a client was given up: {error}");
                }
            });
        if let Err(error) = thread {
            tracing::warn!("cannot start a thread for a client: {error}");
        }
    }
}

/// Waits until the clients that have requested the end of a session are answered.
fn wait_for(clients: &AtomicUsize) {
    let deadline = clock::after(PATIENCE);
    while clients.load(Ordering::Acquire) > 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// One of the [`MAX_CLIENTS`] connections.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(clients: &Arc<AtomicUsize>) -> Self {
        clients.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(clients))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn serve(stream: &mut UnixStream, registry: &Arc<Registry>) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let reply = match protocol::receive(stream, MAX_REQUEST, Some(clock::after(PATIENCE))) {
        Ok(None) => return Ok(()),
        Ok(Some(line)) => match protocol::parse(&line) {
            Ok(request) => answer(request, registry),
            Err(reason) => Reply::Refused {
                reason: format!("the daemon did not understand: {reason}"),
            },
        },
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Reply::Refused {
            reason: format!("the daemon did not understand: {error}"),
        },
        Err(error) => return Err(error),
    };
    protocol::send(stream, reply)
}

fn answer(request: Request, registry: &Arc<Registry>) -> Reply {
    let refused = |reason| Reply::Refused { reason };
    match request {
        Request::Start { recording } => registry
            .start(*recording)
            .map_or_else(Reply::from, Reply::Started),
        Request::Stop { session } => registry
            .stop(session.as_deref())
            .map_or_else(refused, |sessions| Reply::Stopped { sessions }),
        Request::Status => {
            let (sessions, failed) = registry.status();
            let varid = env!("CARGO_PKG_VERSION").to_owned();
            Reply::Status(DaemonStatus {
                pid: std::process::id(),
                varid,
                sessions,
                failed,
            })
        }
    }
}

impl From<NotStarted> for Reply {
    fn from(why: NotStarted) -> Self {
        match why {
            NotStarted::Ending => Self::Ending,
            NotStarted::Refused(reason) => Self::Refused { reason },
        }
    }
}

/// Checks that a client belongs to this user or root, independently of the mode of the socket.
fn refuse_strangers(stream: &UnixStream) -> Result<(), String> {
    let peer = getsockopt(stream, sockopt::PeerCredentials)
        .map_err(|error| format!("its user is not known: {error}"))?;
    let owner = nix::unistd::geteuid().as_raw();
    if peer.uid() == owner || peer.uid() == 0 {
        return Ok(());
    }
    Err(format!(
        "user {} may not use the daemon of user {owner}: only its owner and root may",
        peer.uid()
    ))
}

/// Takes the lock of the user's only daemon. Waits for a daemon that is ending.
fn take_lock(socket: &Path) -> Result<Flock<File>, ControlError> {
    let path = paths::runtime().join("lock");
    let mut options = OpenOptions::new();
    options
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW);
    let mut file = options
        .open(&path)
        .map_err(ControlError::io("open", &path))?;
    let deadline = clock::after(SUCCESSION);
    loop {
        file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((file, Errno::EWOULDBLOCK)) => file,
            Err((_, error)) => return Err(ControlError::io("lock", &path)(error.into())),
        };
        // A daemon that is starting or ending holds the lock and does not listen.
        let listens = !matches!(client::connect(), Err(ControlError::NoDaemon));
        if listens {
            return Err(ControlError::AlreadyRuns(socket.to_owned()));
        }
        if Instant::now() >= deadline {
            return Err(ControlError::StillEnds(path));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Removes the socket of a daemon that was killed. The caller holds the lock, so no other process does this at the same time.
fn remove_stale(socket: &Path) -> Result<(), ControlError> {
    match client::connect() {
        Ok(_) => return Err(ControlError::AlreadyRuns(socket.to_owned())),
        Err(ControlError::NoDaemon) => {}
        Err(error) => return Err(error),
    }
    match std::fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(ControlError::io("remove", socket)(error))
        }
        Ok(()) => {
            tracing::info!("replacing the socket of a daemon that was killed");
            Ok(())
        }
        Err(_) => Ok(()),
    }
}

/// Returns a stream that receives a byte for each signal that ends the daemon.
fn watch_signals() -> io::Result<UnixStream> {
    let (read, write) = UnixStream::pair()?;
    read.set_nonblocking(true)?;
    for signal in [
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGHUP,
    ] {
        signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
    }
    Ok(read)
}
