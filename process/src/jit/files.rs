//! The files in which a process names its code: `/tmp/perf-PID.map`, and a jitdump file.
//!
//! They are the process's: taken only where it looks for them itself, and only if they are regular
//! files of its own user, written since it started.

use super::super::reader::{self, PathTarget};
use super::ReadBudget;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use varid_model::Pid;
use varid_symbolizer::jit::{CodeMap, JitDump, PerfMap};

/// Bytes that a record or a line may have.
const LONGEST: usize = 1 << 22;
/// Bytes that are read of a file at once, unless one is longer: a line may be dear.
const CHUNK: usize = 1 << 14;
/// How often a process's folder is looked for: one that has ended has none any more, and each look asks the helper.
const TRIES: u8 = 8;
/// Seconds by which a file's time and that of a process's start may differ: both are rounded.
const TOLERANCE: i64 = 2;

/// Addresses that have another name now, and whether anything was new.
pub(super) type News = (Vec<Range<u64>>, bool);

/// A process's files.
#[derive(Debug, Default)]
pub(super) struct Files {
    owner: Option<Owner>,
    /// How often that was looked for in vain.
    tried: u8,
    map: Option<(PerfMap, Reading)>,
    dump_file: Option<(Rc<File>, PathBuf)>,
    dump: Option<(JitDump, u64)>,
    /// The last turn left something of them to be read.
    more: bool,
}

/// Whose files are read.
#[derive(Debug)]
struct Owner {
    /// Its `/tmp`, which outlives it.
    folder: OwnedFd,
    /// How we know it, and how it knows itself.
    pid: Pid,
    own_pid: Pid,
    uid: u32,
    /// When it started, in seconds since 1970.
    started: i64,
}

/// How far a file has been read.
#[derive(Debug)]
struct Reading {
    inode: u64,
    to: u64,
    changed: (i64, i64),
    /// The look at it that is not over yet: how long it was at its beginning, and when that was.
    look: Option<(u64, u64)>,
}

impl Files {
    /// Opens the process's `/tmp`.
    pub(super) fn expect(&mut self, pid: Pid) {
        if self.owner.is_some() || self.tried >= TRIES {
            return;
        }
        match Owner::of(pid) {
            Ok(owner) => self.owner = Some(owner),
            Err(error) => {
                self.tried = self.tried.saturating_add(1);
                tracing::debug!(%pid, %error, "cannot look for a perf map");
            }
        }
    }

    /// Whether it has memory that may hold code.
    pub(super) const fn is_expecting(&self) -> bool {
        self.owner.is_some()
    }

    /// Its jitdump file.
    pub(super) fn jitdump(&mut self, file: Rc<File>, path: &Path) {
        (self.dump_file, self.dump) = (Some((file, path.to_owned())), None);
    }

    /// What a forked child inherits.
    pub(super) fn fork(&self) -> Self {
        Self {
            dump_file: self.dump_file.clone(),
            ..Self::default()
        }
    }

    /// What the files say: the jitdump file, the map.
    pub(super) fn maps(&self) -> [Option<&CodeMap>; 2] {
        let dump = self.dump.as_ref().map(|(dump, _)| dump.map());
        [dump, self.map.as_ref().map(|(map, _)| map.map())]
    }

    /// Whether the last turn left something of them to be read.
    pub(super) const fn has_more(&self) -> bool {
        self.more
    }

    /// Reads what has been appended since the last time.
    pub(super) fn read(&mut self, now: u64, budget: &ReadBudget) -> News {
        self.more = false;
        let (mut replaced, mut news) = self.read_dump(budget);
        if let Some((more, more_news)) = self.read_map(now, budget) {
            replaced.extend(more);
            news |= more_news;
        }
        (replaced, news)
    }

    fn read_dump(&mut self, budget: &ReadBudget) -> News {
        let Some((file, path)) = &self.dump_file else {
            return News::default();
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
                    return News::default();
                }
                Ok(dump) => {
                    let start = dump.header_size() as u64;
                    self.dump = Some((dump, start));
                }
                // It is being created.
                Err(_) => return News::default(),
            }
        }
        let (Some((file, _)), Some((dump, to))) = (&self.dump_file, &mut self.dump) else {
            return News::default();
        };
        let mut replaced = Vec::new();
        let len = file.metadata().map_or(0, |meta| meta.len());
        let (read, is_over) = read_on(file, *to..len, budget, |bytes| {
            let (read, more) = dump.feed(bytes);
            replaced.extend(more);
            read
        });
        let news = read > 0;
        *to = to.saturating_add(read);
        self.more |= !is_over;
        (replaced, news)
    }

    fn read_map(&mut self, now: u64, budget: &ReadBudget) -> Option<News> {
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
        let changed = (meta.mtime(), meta.mtime_nsec());
        let fresh = || Reading {
            inode: meta.ino(),
            to: 0,
            changed: (0, 0),
            look: None,
        };
        let (map, reading) = self
            .map
            .get_or_insert_with(|| (PerfMap::default(), fresh()));
        if reading.inode != meta.ino() || reading.to > meta.len() {
            // Written anew: what it says now is new where it differs.
            *reading = fresh();
        }
        if reading.changed == changed && reading.to >= meta.len() {
            return None;
        }
        // A look may take several turns; what is appended meanwhile is seen in the next one.
        let (len, began) = *reading.look.get_or_insert((meta.len(), now));
        let mut replaced = Vec::new();
        let (read, is_over) = read_on(&file, reading.to..len, budget, |bytes| {
            let (read, more) = map.feed(bytes, now);
            replaced.extend(more);
            read
        });
        reading.to = reading.to.saturating_add(read);
        reading.changed = changed;
        if is_over {
            map.finish_listing(began);
            reading.look = None;
        }
        self.more |= !is_over;
        Some((replaced, read > 0))
    }
}

/// Reads these bytes of a file as far as `take` takes them, or, a little more, a turn's worth:
/// how many bytes that were, and whether there is nothing more to take.
fn read_on(
    file: &File,
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
            // One record or line is longer.
            chunk = LONGEST;
        } else {
            return (total, true);
        }
    }
    (total, range.start.saturating_add(total) >= range.end)
}

#[cfg(test)]
impl Files {
    /// Those of this process, in another folder and under another id.
    pub fn of_folder(folder: &Path, pid: Pid) -> Self {
        let own = Owner::of(Pid::new(std::process::id())).unwrap();
        let folder = File::open(folder).unwrap().into();
        Self {
            owner: Some(Owner {
                folder,
                own_pid: pid,
                ..own
            }),
            ..Self::default()
        }
    }

    /// As if the process had been that user when its memory appeared.
    pub fn was_user(&mut self, uid: u32) {
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
        let tmp = PathBuf::from(format!("/proc/{pid}/root/tmp"));
        let folder = reader::open(pid, &tmp, PathTarget::Folder, None)?;
        let inner = status.nspid.as_ref().and_then(|ids| ids.last());
        Ok(Self {
            folder: folder.into(),
            pid,
            own_pid: inner
                .and_then(|inner| Some(Pid::new(u32::try_from(*inner).ok()?)))
                .unwrap_or(pid),
            uid: status.euid,
            started: i64::try_from(booted.saturating_add(seconds)).unwrap_or(i64::MAX),
        })
    }

    /// The map as it is now, if it is there and the process's own.
    fn open_map(&mut self) -> io::Result<(File, std::fs::Metadata)> {
        let name = PathBuf::from(format!("perf-{}.map", self.own_pid));
        let file = reader::open(self.pid, &name, PathTarget::Regular, Some(&self.folder))?;
        let meta = file.metadata()?;
        if meta.uid() != self.uid
            && let Ok(now) = Self::of(self.pid)
            && now.started.abs_diff(self.started) <= TOLERANCE.unsigned_abs()
        {
            // A zygote's child was root when its memory appeared.
            self.uid = now.uid;
        }
        if meta.uid() != self.uid {
            return Err(io::Error::other("it belongs to another user"));
        }
        if meta.mtime().saturating_add(TOLERANCE) < self.started {
            return Err(io::Error::other(
                "it was written before the process started",
            ));
        }
        Ok((file, meta))
    }
}
