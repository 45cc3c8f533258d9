//! Reads the files in which a process names its code: `/tmp/perf-PID.map`, and a jitdump file.
//!
//! A perf map is read only from the process's own `/tmp`, and only if it is a regular file of the process's user that was written since
//! the process started.

use super::super::reader::{self, FileMetadata, ForeignFile, PathTarget};
use super::ReadBudget;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use varid_model::{Address, MonotonicNs, Pid};
use varid_symbolizer::jit::{CodeMap, JitDump, JitFunction, PerfMap, Replacement};

/// The longest record or line that is read, in bytes.
const LONGEST: usize = 1 << 22;
/// Bytes that are read of a file at a time, except for a longer record or line. Parsing a line can take long, so a turn's budget is checked
/// after each chunk.
const CHUNK: usize = 1 << 14;
/// Bytes of a perf map that are compared to detect that it was rewritten: those that were read last.
const TAIL: usize = 4096;
/// How often opening a process's `/tmp` is tried. It fails when the process has exited, and each try is a request to the helper process.
const TRIES: u8 = 8;
/// By how many seconds a file may be older than its process: both times are rounded.
const TOLERANCE: i64 = 2;

/// The changes that reading names has found.
#[derive(Debug, Default)]
pub(super) struct NameUpdate {
    /// Code that was replaced.
    pub replaced: Vec<Replacement>,
    /// True if any name was added or removed.
    pub changed: bool,
}

impl NameUpdate {
    /// Adds the changes of another source.
    pub(super) fn add(&mut self, other: Self) {
        self.replaced.extend(other.replaced);
        self.changed |= other.changed;
    }
}

/// The name files of a process.
#[derive(Debug, Default)]
pub(super) struct NameFiles {
    owner: Option<Owner>,
    /// How often opening the folder has failed.
    failed_tries: u8,
    map: Option<(PerfMap, ReadState)>,
    dump_file: Option<(ForeignFile, PathBuf)>,
    dump: Option<(JitDump, u64)>,
    /// The budget of the last turn was spent before everything was read: in the map, and in the dump.
    has_unread_map: bool,
    has_unread_dump: bool,
}

/// The process that a perf map must belong to.
#[derive(Debug)]
struct Owner {
    /// Its `/tmp`, which stays readable after the process has exited.
    folder: OwnedFd,
    /// Its id in the initial pid namespace.
    pid: Pid,
    /// Its id in its own pid namespace, which names its map.
    own_pid: Pid,
    uid: u32,
    /// The time of its start, in seconds since 1970.
    started: i64,
}

/// How far the perf map has been read.
#[derive(Debug)]
struct ReadState {
    inode: u64,
    /// Offset of the first byte that has not been read.
    offset: u64,
    /// The last bytes before it, at most [`TAIL`].
    tail: Vec<u8>,
    /// Seconds and nanoseconds of the file's last change.
    changed: (i64, i64),
    /// The unfinished pass over the file: the length of the file at its beginning, and the time of that.
    pass: Option<(u64, MonotonicNs)>,
}

impl ReadState {
    /// Records that these bytes were read.
    fn advance(&mut self, bytes: &[u8]) {
        self.offset = self.offset.saturating_add(bytes.len() as u64);
        self.tail.extend_from_slice(bytes);
        let excess = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..excess);
    }

    /// Returns true if a file has the last bytes that were read at the same offset.
    fn continues_in(&self, file: &ForeignFile) -> bool {
        let mut found = vec![0; self.tail.len()];
        let at = self.offset.saturating_sub(found.len() as u64);
        file.read_exact_at(&mut found, at).is_ok() && found == self.tail
    }
}

impl NameFiles {
    /// Opens the process's `/tmp`.
    pub(super) fn open(&mut self, pid: Pid) {
        if self.owner.is_some() || self.failed_tries >= TRIES {
            return;
        }
        match Owner::of(pid) {
            Ok(owner) => self.owner = Some(owner),
            Err(error) => {
                self.failed_tries = self.failed_tries.saturating_add(1);
                tracing::debug!(%pid, %error, "cannot look for a perf map");
            }
        }
    }

    /// Returns true if the process's `/tmp` is open.
    pub(super) const fn are_open(&self) -> bool {
        self.owner.is_some()
    }

    /// Sets the jitdump file, which is read from the start.
    pub(super) fn set_jitdump(&mut self, file: ForeignFile, path: &Path) {
        (self.dump_file, self.dump) = (Some((file, path.to_owned())), None);
    }

    /// Returns true if there is a jitdump file.
    pub(super) const fn has_jitdump(&self) -> bool {
        self.dump_file.is_some()
    }

    /// Returns what a forked child inherits.
    pub(super) fn fork(&self) -> Self {
        Self {
            dump_file: self.dump_file.clone(),
            ..Self::default()
        }
    }

    /// Returns the names in the jitdump file, and those in the perf map.
    pub(super) fn maps(&self) -> [Option<&CodeMap>; 2] {
        let dump = self.dump.as_ref().map(|(dump, _)| dump.map());
        [dump, self.map.as_ref().map(|(map, _)| map.map())]
    }

    /// Returns the function that the jitdump file has at an address at a time.
    pub(super) fn in_dump(&self, address: Address, time: MonotonicNs) -> Option<&JitFunction> {
        let (dump, _) = self.dump.as_ref()?;
        dump.map().lookup(time.get(), address.get())
    }

    /// Returns true if the budget of the last turn was spent before everything was read.
    pub(super) const fn has_unread(&self) -> bool {
        self.has_unread_map || self.has_unread_dump
    }

    /// Reads what was appended to the jitdump file since the last turn.
    pub(super) fn read_dump(&mut self, budget: &ReadBudget) -> NameUpdate {
        self.has_unread_dump = false;
        let Some((file, path)) = &self.dump_file else {
            return NameUpdate::default();
        };
        if self.dump.is_none() {
            let mut header = [0; 64];
            let len = file.read_at(&mut header, 0).unwrap_or(0);
            let header = header.get(..len).unwrap_or_default();
            match JitDump::new(header) {
                Ok(dump) if dump.has_machine_times() => {
                    tracing::warn!(
                        "{}: its times are counts of a clock that samples do not have: it is not used",
                        path.display()
                    );
                    self.dump_file = None;
                    return NameUpdate::default();
                }
                Ok(dump) => {
                    let start = dump.header_size() as u64;
                    self.dump = Some((dump, start));
                }
                // The process has not written the header yet.
                Err(_) => return NameUpdate::default(),
            }
        }
        let (Some((file, _)), Some((dump, to))) = (&self.dump_file, &mut self.dump) else {
            return NameUpdate::default();
        };
        let mut replaced = Vec::new();
        let len = file.metadata().map_or(0, |meta| meta.len());
        let (read, is_over) = read_on(file, *to..len, budget, |bytes| {
            let (read, more) = dump.feed(bytes);
            replaced.extend(more);
            read
        });
        *to = to.saturating_add(read);
        self.has_unread_dump = !is_over;
        NameUpdate {
            replaced,
            changed: read > 0,
        }
    }

    /// Reads what was appended to the perf map since the last turn, or all of it if it was rewritten. To rewrite it, a process may truncate
    /// the file or replace it.
    pub(super) fn read_map(&mut self, now: MonotonicNs, budget: &ReadBudget) -> Option<NameUpdate> {
        self.has_unread_map = false;
        let opened = self.owner.as_mut()?.open_map();
        let (file, meta) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    tracing::debug!(%error, "a perf map is not used");
                }
                return None;
            }
        };
        let changed = meta.changed();
        let from_start = || ReadState {
            inode: meta.ino(),
            offset: 0,
            tail: Vec::new(),
            changed: (0, 0),
            pass: None,
        };
        let (map, state) = self
            .map
            .get_or_insert_with(|| (PerfMap::default(), from_start()));
        if state.inode == meta.ino() && state.changed == changed && state.offset == meta.len() {
            return None;
        }
        if state.inode != meta.ino() || state.offset > meta.len() || !state.continues_in(&file) {
            // Names that differ from the previous ones are new.
            *state = from_start();
        }
        // A pass may take several turns. What is appended meanwhile belongs to the next pass.
        let (len, began) = *state.pass.get_or_insert((meta.len(), now));
        let mut replaced = Vec::new();
        let (read, is_over) = read_on(&file, state.offset..len, budget, |bytes| {
            let (read, more) = map.feed(bytes, now.get());
            replaced.extend(more);
            state.advance(bytes.get(..read).unwrap_or_default());
            read
        });
        state.changed = changed;
        if is_over {
            map.finish_listing(began.get());
            state.pass = None;
        }
        self.has_unread_map = !is_over;
        Some(NameUpdate {
            replaced,
            changed: read > 0,
        })
    }
}

/// Reads a range of a file in chunks. `take` parses a chunk and returns how many of its bytes it has used. Reading ends at the end of the
/// range, when `take` uses no bytes, or after the chunk that exceeds the budget. Returns how many bytes were used, and whether everything
/// that can be read was read.
fn read_on(
    file: &ForeignFile,
    range: Range<u64>,
    budget: &ReadBudget,
    mut take: impl FnMut(&[u8]) -> usize,
) -> (u64, bool) {
    let mut buffer = Vec::new();
    let mut total = 0u64;
    let least = usize::try_from(budget.bytes).map_or(CHUNK, |bytes| bytes.min(CHUNK));
    let mut chunk = least;
    while total < budget.bytes && (total == 0 || !budget.is_over()) {
        let at = range.start.saturating_add(total);
        let left = usize::try_from(range.end.saturating_sub(at)).unwrap_or(usize::MAX);
        buffer.resize(left.min(chunk), 0);
        let read = file.read_at(&mut buffer, at).unwrap_or(0);
        let taken = take(buffer.get(..read).unwrap_or_default());
        total = total.saturating_add(taken as u64);
        if taken > 0 {
            chunk = least;
        } else if read == chunk && chunk < LONGEST {
            // A record or line is longer than a chunk.
            chunk = LONGEST;
        } else {
            return (total, true);
        }
    }
    (total, range.start.saturating_add(total) >= range.end)
}

#[cfg(test)]
impl NameFiles {
    /// The files of this process, in another folder and for another id.
    pub fn of_folder(folder: &Path, pid: Pid) -> Self {
        let own = Owner::of(Pid::new(std::process::id())).unwrap();
        let folder = std::fs::File::open(folder).unwrap().into();
        Self {
            owner: Some(Owner {
                folder,
                own_pid: pid,
                ..own
            }),
            ..Self::default()
        }
    }

    /// Makes this the user that the process had when its `/tmp` was opened.
    pub fn set_user(&mut self, uid: u32) {
        self.owner.as_mut().unwrap().uid = uid;
    }
}

impl Owner {
    fn of(pid: Pid) -> io::Result<Self> {
        let process =
            procfs::process::Process::new(i32::try_from(pid.get()).map_err(io::Error::other)?)
                .map_err(io::Error::other)?;
        let status = process.status().map_err(io::Error::other)?;
        let ticks = process.stat().map_err(io::Error::other)?.starttime;
        let booted = procfs::boot_time_secs().map_err(io::Error::other)?;
        let seconds = ticks
            .checked_div(procfs::ticks_per_second())
            .unwrap_or_default();
        let tmp = PathBuf::from(format!("/proc/{}/root/tmp", reader::task_of(pid)));
        let folder = reader::open_folder(pid, &tmp)?;
        let inner = status.nspid.as_ref().and_then(|ids| ids.last());
        Ok(Self {
            folder,
            pid,
            own_pid: inner
                .and_then(|inner| Some(Pid::new(u32::try_from(*inner).ok()?)))
                .unwrap_or(pid),
            uid: status.euid,
            started: i64::try_from(booted.saturating_add(seconds)).unwrap_or(i64::MAX),
        })
    }

    /// Opens the perf map, if it exists and belongs to the process.
    fn open_map(&mut self) -> io::Result<(ForeignFile, FileMetadata)> {
        let name = PathBuf::from(format!("perf-{}.map", self.own_pid));
        let file = reader::open(self.pid, &name, PathTarget::Regular, Some(&self.folder))?;
        let meta = file.metadata()?;
        if meta.uid() != self.uid
            && let Ok(now) = Self::of(self.pid)
            && now.started.abs_diff(self.started) <= TOLERANCE.unsigned_abs()
        {
            // A child of a zygote was still root when its `/tmp` was opened.
            self.uid = now.uid;
        }
        if meta.uid() != self.uid {
            return Err(io::Error::other("it belongs to another user"));
        }
        let (seconds, _) = meta.changed();
        if seconds.saturating_add(TOLERANCE) < self.started {
            return Err(io::Error::other(
                "it was written before the process started",
            ));
        }
        Ok((file, meta))
    }
}
