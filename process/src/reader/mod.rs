//! Reads what belongs to other processes, and is not held up by them.
//!
//! A process may map a file of a file system that it serves itself, and never answer: whoever reads that memory,
//! or looks at a path there, waits in the kernel, and no signal ends it. So a helper process reads for a session that
//! has rights over others' processes: it is asked over a socket, and one that does not answer in time is left behind
//! and replaced. Whose processes keep it waiting has a little time to spend, which comes back slowly; then nothing of
//! theirs is read.
//!
//! Without such rights varid reads only what its user could hold up anyway, and does it itself: where the kernel lets
//! only a process's ancestors read it (yama), a helper may not.

mod request;
mod serve;

pub use request::{Open, PathTarget};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg,
    sendmsg, socketpair,
};
use request::{ON_FUSE, PART, Request};
use rustix::thread::{CapabilitySet, CapabilitySets};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use varid_model::{Device, Pid};
use varid_tunnel::abi::VmFile;
use varid_tunnel::file::Kind;
use varid_tunnel::{Error, Memory};

/// How long a helper may wait for an answer: time in which it could run and had no processor does not count.
const DEADLINE: Duration = Duration::from_millis(500);
/// How often that is looked at; a faster answer keeps nobody waiting.
const SLICE: Duration = Duration::from_millis(50);
/// How long an answer may take even so.
const MAX_ANSWER: Duration = Duration::from_secs(10);
/// How long one owner's processes may keep a session waiting.
const PATIENCE: Duration = Duration::from_secs(1);
/// So much slower comes back what was spent of it.
const RECOVERY: u32 = 30;
/// So many helpers may wait for one owner's processes at a time.
const MAX_STUCK: usize = 4;
/// The verb by which a program is a helper.
const VERB: &str = "read-processes";

thread_local! {
    static READER: RefCell<Reader> = RefCell::default();
}

/// What could not be read, and has not been said: a session starts on one thread and runs on another.
static NOTES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Helpers that have been killed, and for whose processes they waited: each ends when the kernel lets it.
static KILLED: Mutex<Vec<(Option<Owner>, Child)>> = Mutex::new(Vec::new());

/// Who answers for what is read: a user; of root's processes each for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Owner {
    User(u32),
    Process(Pid),
}

impl Owner {
    fn of(pid: Pid) -> Self {
        match std::fs::metadata(format!("/proc/{pid}")).map(|process| process.uid()) {
            Ok(0) | Err(_) => Self::Process(pid),
            Ok(user) => Self::User(user),
        }
    }
}

/// A session's way to other processes.
#[derive(Debug, Default)]
struct Reader {
    helper: Option<Helper>,
    waited: HashMap<Owner, Waited>,
    /// Devices of file systems in user space: what is on them is not asked for again.
    on_fuse: HashSet<Device>,
}

/// How long an owner's processes have kept the session waiting, as of when.
#[derive(Debug, Clone, Copy)]
struct Waited {
    spent: Duration,
    at: Instant,
    said: bool,
}

/// A process that reads.
#[derive(Debug)]
struct Helper {
    /// None: it has been killed.
    process: Option<Child>,
    socket: OwnedFd,
}

/// The memory of a live process.
#[derive(Debug, Clone, Copy)]
pub struct ForeignMemory {
    pid: Pid,
}

impl ForeignMemory {
    /// Of the process with this pid. It takes the right to trace it.
    pub const fn new(pid: Pid) -> Self {
        Self { pid }
    }
}

impl Memory for ForeignMemory {
    fn read(&self, address: u64, out: &mut [u8]) -> Result<(), Error> {
        let len = out.len();
        let pid = self.pid;
        let request = Request::Memory {
            pid,
            address,
            len: len as u64,
        };
        let mut rest = out;
        ask(pid, &request, None, &mut |part| {
            let (here, behind) = std::mem::take(&mut rest)
                .split_at_mut_checked(part.len())
                .ok_or_else(|| io::Error::other("more than was wanted"))?;
            here.copy_from_slice(part);
            rest = behind;
            Ok(())
        })
        .map(|_| ())
        .map_err(|error| Error::Read {
            address,
            len,
            reason: error.to_string(),
        })
    }
}

/// A file of a process's below /proc.
pub fn contents(pid: Pid, name: &str) -> io::Result<Vec<u8>> {
    let mut contents = Vec::new();
    let path = PathBuf::from(format!("/proc/{pid}/{name}"));
    ask(pid, &Request::Contents(path), None, &mut |part| {
        contents.extend_from_slice(part);
        Ok(())
    })?;
    Ok(contents)
}

/// A file or folder of a process's; `inside`: the folder that its path is below.
pub fn open(pid: Pid, path: &Path, what: PathTarget, inside: Option<&OwnedFd>) -> io::Result<File> {
    let path = path.to_owned();
    opened(ask(
        pid,
        &Request::Open(Open { path, what }),
        inside,
        &mut |_| Ok(()),
    )?)
}

/// A file to which a process's tunnel leads.
pub fn open_of_vm(pid: Pid, file: &VmFile, kind: Kind) -> Result<File, Error> {
    let file = (file.address, file.size, file.fd);
    let request = Request::VmFile { pid, file, kind };
    ask(pid, &request, None, &mut |_| Ok(()))
        .and_then(opened)
        .map_err(|error| Error::File {
            pid: pid.get(),
            name: kind.name(),
            reason: error.to_string(),
        })
}

/// What could not be read since this was asked last.
pub fn notes() -> Vec<String> {
    std::mem::take(&mut NOTES.lock().unwrap_or_else(PoisonError::into_inner))
}

fn opened(answer: Option<File>) -> io::Result<File> {
    answer.ok_or_else(|| io::Error::other("the reader has opened nothing"))
}

fn ask(
    pid: Pid,
    request: &Request,
    inside: Option<&OwnedFd>,
    part: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<Option<File>> {
    if needs_helper() {
        READER.with_borrow_mut(|reader| reader.ask(pid, request, inside, part))
    } else {
        request.carry_out(inside, part)
    }
}

/// Whether varid may read what others may hold up.
fn needs_helper() -> bool {
    static NEEDED: OnceLock<bool> = OnceLock::new();
    IS_HELPER.load(Ordering::Relaxed) && *NEEDED.get_or_init(may_read_others)
}

/// Whether this program is a helper when its first argument is [`VERB`].
static IS_HELPER: AtomicBool = AtomicBool::new(false);

/// Makes a program that reads others' processes a helper, too, if it is called as one: its first argument is [`VERB`].
/// To be called first in `main`; the exit code is the program's. A program that does not call it reads everything itself,
/// and may be held up.
pub fn serve_if_helper() -> Option<ExitCode> {
    if std::env::args_os().nth(1).is_some_and(|verb| verb == VERB) {
        return Some(serve::serve().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS));
    }
    IS_HELPER.store(true, Ordering::Relaxed);
    None
}

/// Whether it is root or has CAP_SYS_PTRACE.
fn may_read_others() -> bool {
    let sets = rustix::thread::capabilities(None);
    let may_trace = |sets: CapabilitySets| sets.effective.contains(CapabilitySet::SYS_PTRACE);
    nix::unistd::geteuid().is_root() || sets.is_ok_and(may_trace)
}

impl Reader {
    fn ask(
        &mut self,
        pid: Pid,
        request: &Request,
        inside: Option<&OwnedFd>,
        part: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<Option<File>> {
        let device = match request {
            Request::Open(Open {
                what: PathTarget::Same(device, _),
                ..
            }) => Some(*device),
            _ => None,
        };
        if device.is_some_and(|device| self.on_fuse.contains(&device)) {
            return Err(io::Error::from_raw_os_error(ON_FUSE));
        }
        if !self.has_patience(pid) {
            return Err(too_late(pid));
        }
        let helper = match &mut self.helper {
            Some(helper) => helper,
            none => none.insert(Helper::start()?),
        };
        let mut waited = Duration::ZERO;
        match helper.ask(request, inside, &mut waited, part) {
            Ok(Answer::Done(answer)) => {
                let error = answer.as_ref().err().and_then(io::Error::raw_os_error);
                if error == Some(ON_FUSE) {
                    self.on_fuse.extend(device);
                }
                if !waited.is_zero() {
                    self.spent(Owner::of(pid), waited, pid);
                }
                answer
            }
            Ok(Answer::Late) => {
                let owner = Owner::of(pid);
                if let Some(mut helper) = self.helper.take() {
                    helper.kill(Some(owner));
                }
                self.spent(owner, waited.max(DEADLINE), pid);
                Err(too_late(pid))
            }
            Err(error) => {
                // It was killed, or is out of step: the next one is not.
                self.helper = None;
                Err(error)
            }
        }
    }

    fn has_patience(&self, pid: Pid) -> bool {
        if self.waited.is_empty() {
            return true;
        }
        let owner = Owner::of(pid);
        let stuck = killed();
        let stuck = stuck
            .iter()
            .filter(|(whose, _)| *whose == Some(owner))
            .count();
        let spent = self.waited.get(&owner).map_or(Duration::ZERO, |waited| {
            let recovered = waited.at.elapsed().checked_div(RECOVERY);
            waited.spent.saturating_sub(recovered.unwrap_or_default())
        });
        stuck < MAX_STUCK && spent < PATIENCE
    }

    fn spent(&mut self, owner: Owner, took: Duration, pid: Pid) {
        let now = Instant::now();
        let waited = self.waited.entry(owner).or_insert(Waited {
            spent: Duration::ZERO,
            at: now,
            said: false,
        });
        let recovered = now.duration_since(waited.at).checked_div(RECOVERY);
        waited.spent = waited
            .spent
            .saturating_sub(recovered.unwrap_or_default())
            .saturating_add(took);
        waited.at = now;
        let is_told = took >= DEADLINE || waited.spent >= PATIENCE;
        if is_told && !std::mem::replace(&mut waited.said, true) {
            let whose = match owner {
                Owner::User(user) => format!("those of user {user}"),
                Owner::Process(_) => "it".to_owned(),
            };
            let mut notes = NOTES.lock().unwrap_or_else(PoisonError::into_inner);
            notes.push(format!(
                "process {pid} keeps varid waiting when its memory or files are read, as one does that has mapped a file which nobody serves: some names of {whose} are missing"
            ));
        }
    }
}

fn too_late(pid: Pid) -> io::Error {
    let why = format!("process {pid}: what it has mapped cannot be read in time");
    io::Error::new(io::ErrorKind::TimedOut, why)
}

/// Those that have not ended yet.
fn killed() -> std::sync::MutexGuard<'static, Vec<(Option<Owner>, Child)>> {
    let mut killed = KILLED.lock().unwrap_or_else(PoisonError::into_inner);
    killed.retain_mut(|(_, process)| matches!(process.try_wait(), Ok(None)));
    killed
}

/// What came of a request.
enum Answer {
    Done(io::Result<Option<File>>),
    Late,
}

impl Helper {
    fn start() -> io::Result<Self> {
        let (socket, theirs) = socketpair(
            AddressFamily::Unix,
            SockType::SeqPacket,
            None,
            SockFlag::SOCK_CLOEXEC,
        )?;
        let process = Command::new("/proc/self/exe")
            .arg(VERB)
            .env_clear()
            .current_dir("/")
            // What a terminal sends is for varid.
            .process_group(0)
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self {
            process: Some(process),
            socket,
        })
    }

    /// Nobody waits until it ends. `waits_for`: whose processes it waits for.
    fn kill(&mut self, waits_for: Option<Owner>) {
        if let Some(mut process) = self.process.take() {
            // It may have ended by itself.
            let _ = process.kill();
            killed().push((waits_for, process));
        }
    }

    /// Whether it waits for something else than a processor.
    fn is_blocked(&self) -> bool {
        let stat = self.process.as_ref().and_then(|process| {
            std::fs::read_to_string(format!("/proc/{}/stat", process.id())).ok()
        });
        // "PID (NAME) STATE ..."
        let state = stat.as_ref().and_then(|stat| stat.rsplit_once(") "));
        state.is_none_or(|(_, state)| !state.starts_with('R'))
    }

    /// `waited` becomes how long the helper waited for what it reads, in whole slices. An error: the helper does not
    /// answer as one.
    fn ask(
        &mut self,
        request: &Request,
        inside: Option<&OwnedFd>,
        waited: &mut Duration,
        part: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<Answer> {
        let descriptor = inside.map(|folder| [folder.as_raw_fd()]);
        let handed: Vec<_> = descriptor
            .iter()
            .map(|folder| ControlMessage::ScmRights(folder))
            .collect();
        sendmsg::<()>(
            self.socket.as_raw_fd(),
            &[IoSlice::new(&request.encode())],
            &handed,
            MsgFlags::MSG_NOSIGNAL,
            None,
        )?;
        let began = Instant::now();
        // The helper finishes its answer whether that is wanted or not.
        let mut wanted = Ok(());
        loop {
            let mut polled = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
            let timeout = PollTimeout::try_from(SLICE).unwrap_or(PollTimeout::ZERO);
            match poll(&mut polled, timeout) {
                Ok(0) => {
                    if self.is_blocked() {
                        *waited = waited.saturating_add(SLICE);
                    }
                    if *waited >= DEADLINE || began.elapsed() >= MAX_ANSWER {
                        return Ok(Answer::Late);
                    }
                    continue;
                }
                Err(Errno::EINTR) => continue,
                ready => ready?,
            };
            let mut bytes = [0; PART + 1];
            let (len, file) = receive(&self.socket, &mut bytes)?;
            let (kind, rest) = bytes
                .get(..len)
                .and_then(<[u8]>::split_first)
                .ok_or_else(|| io::Error::other("the reader of other processes has ended"))?;
            match *kind {
                serve::MORE => wanted = wanted.and_then(|()| part(rest)),
                serve::DONE => return Ok(Answer::Done(wanted.map(|()| file.map(File::from)))),
                serve::ERRNO => {
                    let code = rest
                        .first_chunk()
                        .map_or(0, |code| i32::from_ne_bytes(*code));
                    return Ok(Answer::Done(Err(io::Error::from_raw_os_error(code))));
                }
                _ => {
                    let reason = String::from_utf8_lossy(rest).into_owned();
                    return Ok(Answer::Done(Err(io::Error::other(reason))));
                }
            }
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.kill(None);
    }
}

/// A packet, and what was handed over with it; of no length: the other end has gone.
fn receive(socket: &OwnedFd, bytes: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = nix::cmsg_space!([i32; 1]);
    let mut slices = [IoSliceMut::new(bytes)];
    let received = recvmsg::<()>(
        socket.as_raw_fd(),
        &mut slices,
        Some(&mut space),
        MsgFlags::MSG_CMSG_CLOEXEC,
    )?;
    let mut file = None;
    for message in received.cmsgs()? {
        if let ControlMessageOwned::ScmRights(files) = message {
            for received in files {
                // SAFETY: the kernel has just made the descriptor for this process, and nobody else knows it.
                file = Some(unsafe { OwnedFd::from_raw_fd(received) });
            }
        }
    }
    Ok((received.bytes, file))
}
