//! Reads memory and files of other processes without waiting for them.
//!
//! A process may map a file of a file system that it serves itself, and never answer. A read of that memory, of the file, or of a path on
//! that file system then blocks in the kernel, and no signal ends it. Such file systems cannot be recognised by a list, because file
//! systems can be stacked. So a session with rights over other users' processes reads through a helper process, which gets its requests
//! over a socket. A helper that does not answer in time is killed and replaced. The processes of one owner may delay a session for
//! `PATIENCE` in total, which recovers slowly. Once it is used up, no process of that owner is read.
//!
//! A session without such rights reads directly: it reads only processes of its own user. A helper would not work there: where the kernel
//! lets only a process's ancestors read it (Yama), a helper may not read it.

mod answer;
mod batch;
mod file;
mod helper;
mod prefetch;
mod request;
mod serve;
mod socket;
mod task;
#[cfg(test)]
mod testing;
mod tree;

pub use batch::{
    Batch, BatchAnswer, BatchMemory, BatchRead, LINKS, Link, MAX_PIECES, MemoryRange, Piece,
    PieceBytes,
};
pub use file::{FileMetadata, ForeignFile};
pub use prefetch::Prefetched;
pub use request::{Open, PathTarget};
pub(crate) use task::task_of;
pub use tree::TreeNode;

use helper::{Answer, DEADLINE, Helper};
use request::Request;
use rustix::thread::{CapabilitySet, CapabilitySets};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use varid_model::Pid;
use varid_tunnel::abi::VmFile;
use varid_tunnel::file::Kind;
use varid_tunnel::{Memory, TunnelError};

/// How long the processes of one owner may delay a session.
const PATIENCE: Duration = Duration::from_secs(1);
/// One second of the patience recovers in this many seconds.
const RECOVERY: u32 = 30;
/// The most killed helpers that may still be blocked on one owner's processes.
const MAX_STUCK: usize = 4;
/// The most file systems that are known to answer.
const MAX_PROMPT: usize = 1 << 10;
/// The verb that makes a program a helper.
const VERB: &str = "read-processes";

thread_local! {
    static READER: RefCell<Reader> = RefCell::default();
    static REQUESTS: Cell<u64> = const { Cell::new(0) };
    static WAITED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Warnings that have not been fetched. A session starts on one thread and runs on another.
static NOTES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Killed helpers that may still be blocked in the kernel, each with the owner of the process that it reads.
static KILLED: Mutex<Vec<(Option<Owner>, Child)>> = Mutex::new(Vec::new());

/// Whose budget is charged when reading a process blocks: the user's, or the process's own if the user is root.
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

/// The state for reading other processes.
#[derive(Debug, Default)]
struct Reader {
    helper: Option<Helper>,
    waited: HashMap<Owner, Waited>,
    /// Devices whose files were read without waiting the last time. They are read even if the owner's patience is used up.
    prompt: HashSet<u64>,
}

/// How long the session has waited for the processes of an owner, and when that was updated.
#[derive(Debug, Clone, Copy)]
struct Waited {
    spent: Duration,
    at: Instant,
    said: bool,
}

/// The memory of a live process.
#[derive(Debug, Clone, Copy)]
pub struct ForeignMemory {
    pid: Pid,
}

impl ForeignMemory {
    /// The memory of the process with this pid. Reading it requires the right to trace the process.
    pub const fn new(pid: Pid) -> Self {
        Self { pid }
    }
}

impl Memory for ForeignMemory {
    fn read(&self, address: u64, out: &mut [u8]) -> Result<(), TunnelError> {
        let len = out.len();
        let pid = self.pid;
        let request = Request::Memory {
            pid: task_of(pid),
            address,
            len: len as u64,
        };
        fill(pid, &request, None, out)
            .map(|_| ())
            .map_err(|error| TunnelError::Read {
                address,
                len,
                reason: error.to_string(),
            })
    }
}

impl BatchMemory for ForeignMemory {
    fn read_batch(&self, batch: &Batch) -> Result<BatchAnswer, TunnelError> {
        let pid = self.pid;
        let failed = |error: io::Error| TunnelError::Read {
            address: batch.control.first().map_or(0, |range| range.address),
            len: batch.pieces.len(),
            reason: error.to_string(),
        };
        let mut bytes = Vec::new();
        let request = Request::Batch(task_of(pid), batch.clone());
        ask(pid, &request, None, &mut |part| {
            bytes.extend_from_slice(part);
            Ok(())
        })
        .map_err(failed)?;
        let answer = BatchAnswer::decode(batch, &bytes);
        answer.ok_or_else(|| failed(io::Error::other("the answer is none to the request")))
    }
}

/// Reads a file of a process in /proc.
pub fn contents(pid: Pid, name: &str) -> io::Result<Vec<u8>> {
    let of_task = |task: Pid| {
        let mut contents = Vec::new();
        let path = PathBuf::from(format!("/proc/{task}/{name}"));
        ask(pid, &Request::Contents(path), None, &mut |part| {
            contents.extend_from_slice(part);
            Ok(())
        })?;
        Ok(contents)
    };
    let task = task_of(pid);
    let contents = of_task(task)?;
    // The files of a main thread that has ended are empty.
    let living = contents.is_empty().then(|| task::living_task(pid));
    match living.flatten().filter(|living| *living != task) {
        Some(living) => of_task(living),
        None => Ok(contents),
    }
}

/// Returns true if a process has memory. A process that has ended has none, even before its parent waits for it.
pub fn has_memory(pid: Pid) -> bool {
    task::living_task(pid).is_some()
}

/// Records that the main thread of a process has ended. The process is then read through another thread, if there is one left.
pub fn main_thread_ended(pid: Pid) {
    task::living_task(pid);
}

/// Opens a regular file of a process. `inside`: the folder that its path is relative to.
pub fn open(
    pid: Pid,
    path: &Path,
    what: PathTarget,
    inside: Option<&OwnedFd>,
) -> io::Result<ForeignFile> {
    let path = path.to_owned();
    let request = Request::Open(Open { path, what });
    let handle = opened(ask(pid, &request, inside, &mut |_| Ok(()))?)?;
    Ok(ForeignFile::new(pid, handle))
}

/// Opens a folder of a process, as a starting point for paths.
pub fn open_folder(pid: Pid, path: &Path) -> io::Result<OwnedFd> {
    let (path, what) = (path.to_owned(), PathTarget::Folder);
    let request = Request::Open(Open { path, what });
    opened(ask(pid, &request, None, &mut |_| Ok(()))?)
}

/// Opens a file to which a process's tunnel leads.
pub fn open_of_vm(pid: Pid, file: &VmFile, kind: Kind) -> Result<File, TunnelError> {
    let file = (file.address, file.size, file.fd);
    let task = task_of(pid);
    let request = Request::VmFile {
        pid: task,
        file,
        kind,
    };
    ask(pid, &request, None, &mut |_| Ok(()))
        .and_then(opened)
        .map(File::from)
        .map_err(|error| TunnelError::File {
            pid,
            name: kind.name(),
            reason: error.to_string(),
        })
}

/// Returns warnings about what could not be read since the last call.
pub fn notes() -> Vec<String> {
    std::mem::take(&mut NOTES.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Returns how many requests for memory and files of processes this thread has made. Each may need a helper's turn on a processor.
pub fn requests() -> u64 {
    REQUESTS.get()
}

/// Returns how long this thread has waited for processes whose memory or files could not be read at once.
pub fn waited() -> Duration {
    WAITED.get()
}

fn opened(answer: Option<OwnedFd>) -> io::Result<OwnedFd> {
    answer.ok_or_else(|| io::Error::other("the reader has opened nothing"))
}

/// Copies the bytes of an answer into a buffer, and returns how many there are.
fn fill(
    pid: Pid,
    request: &Request,
    inside: Option<&OwnedFd>,
    buffer: &mut [u8],
) -> io::Result<usize> {
    let len = buffer.len();
    let mut rest = buffer;
    ask(pid, request, inside, &mut |part| {
        let (here, behind) = std::mem::take(&mut rest)
            .split_at_mut_checked(part.len())
            .ok_or_else(|| io::Error::other("the answer is longer than the request"))?;
        here.copy_from_slice(part);
        rest = behind;
        Ok(())
    })?;
    Ok(len.saturating_sub(rest.len()))
}

fn ask(
    pid: Pid,
    request: &Request,
    inside: Option<&OwnedFd>,
    part: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<Option<OwnedFd>> {
    REQUESTS.set(REQUESTS.get().saturating_add(1));
    if needs_helper() {
        READER.with_borrow_mut(|reader| reader.ask(pid, request, inside, part))
    } else {
        request.carry_out(inside, part)
    }
}

/// Returns true if reads go through a helper: this session has rights over other users' processes.
fn needs_helper() -> bool {
    static NEEDED: OnceLock<bool> = OnceLock::new();
    IS_HELPER.load(Ordering::Relaxed) && *NEEDED.get_or_init(may_read_others)
}

/// Returns true if reads of others' processes may block for ever: this program may read them and has no helpers.
pub fn may_block() -> bool {
    !IS_HELPER.load(Ordering::Relaxed) && may_read_others()
}

/// True if this program serves as a helper when its first argument is [`VERB`].
static IS_HELPER: AtomicBool = AtomicBool::new(false);

/// Serves as a helper if the program was started as one: its first argument is the helpers' verb. Then returns the program's exit code.
///
/// Call this first in `main`. A program that does not call it has no helpers: it reads everything directly, and may block.
pub fn serve_if_helper() -> Option<ExitCode> {
    if std::env::args_os().nth(1).is_some_and(|verb| verb == VERB) {
        return Some(serve::serve().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS));
    }
    IS_HELPER.store(true, Ordering::Relaxed);
    None
}

/// Returns true if this program is root or has CAP_SYS_PTRACE.
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
    ) -> io::Result<Option<OwnedFd>> {
        // A read of a file on a file system that answers does not wait for the process.
        let device = match (request, inside) {
            (Request::Read { .. }, Some(file)) => file::device_of(file).ok(),
            _ => None,
        };
        let is_prompt = device.is_some_and(|device| self.prompt.contains(&device));
        if !is_prompt && !self.has_patience(pid) {
            return Err(too_late(pid));
        }
        if let Some(device) = device {
            self.prompt.remove(&device);
        }
        let helper = match &mut self.helper {
            Some(helper) => helper,
            none => none.insert(Helper::start()?),
        };
        let mut waited = Duration::ZERO;
        match helper.ask(request, inside, &mut waited, part) {
            Ok(Answer::Done(answer)) => {
                if !waited.is_zero() {
                    self.spent(Owner::of(pid), waited, pid);
                } else if answer.is_ok() && self.prompt.len() < MAX_PROMPT {
                    self.prompt.extend(device);
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
                // It was killed, or has violated the protocol. The next request starts another one.
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
        WAITED.set(WAITED.get().saturating_add(took));
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
        let is_noted = took >= DEADLINE || waited.spent >= PATIENCE;
        if is_noted && !std::mem::replace(&mut waited.said, true) {
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

/// Returns the killed helpers that have not ended yet.
fn killed() -> std::sync::MutexGuard<'static, Vec<(Option<Owner>, Child)>> {
    let mut killed = KILLED.lock().unwrap_or_else(PoisonError::into_inner);
    killed.retain_mut(|(_, process)| matches!(process.try_wait(), Ok(None)));
    killed
}
