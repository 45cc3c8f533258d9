//! The files in which a process names its code: `/tmp/perf-PID.map`, and a jitdump file.
//!
//! They are the process's: taken only where it looks for them itself, and only if they are regular
//! files of its own user, written since it started.

use super::super::file;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use varid_symbolizer::jit::{CodeMap, JitDump, PerfMap};

/// Bytes that are read of a file at once; a record or a line is not longer.
const CHUNK: usize = 1 << 22;
/// Bytes of a file that are read in one turn of the session.
const MAX_TURN: u64 = 1 << 26;
/// Seconds by which a file's time and that of a process's start may differ: both are rounded.
const TOLERANCE: i64 = 2;

/// Addresses that have another name now, and whether anything was new.
pub type News = (Vec<Range<u64>>, bool);

/// A process's files.
#[derive(Debug, Default)]
pub struct Files {
    owner: Option<Owner>,
    map: Option<(PerfMap, Reading)>,
    dump_file: Option<(Rc<File>, PathBuf)>,
    dump: Option<(JitDump, u64)>,
}

/// Whose files are read.
#[derive(Debug)]
struct Owner {
    /// Its `/tmp`, which outlives it.
    folder: File,
    /// How it knows itself.
    pid: u32,
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
}

impl Files {
    /// Opens the process's `/tmp`.
    pub fn expect(&mut self, pid: u32) {
        if self.owner.is_none() {
            self.owner = Owner::of(pid)
                .inspect_err(|error| tracing::debug!(pid, %error, "cannot look for a perf map"))
                .ok();
        }
    }

    /// Whether it has memory that may hold code.
    pub const fn is_expecting(&self) -> bool {
        self.owner.is_some()
    }

    /// Its jitdump file.
    pub fn jitdump(&mut self, file: Rc<File>, path: &Path) {
        (self.dump_file, self.dump) = (Some((file, path.to_owned())), None);
    }

    /// What a forked child inherits.
    pub fn fork(&self) -> Self {
        Self {
            dump_file: self.dump_file.clone(),
            ..Self::default()
        }
    }

    /// What the files say: the jitdump file, the map.
    pub fn maps(&self) -> [Option<&CodeMap>; 2] {
        let dump = self.dump.as_ref().map(|(dump, _)| dump.map());
        [dump, self.map.as_ref().map(|(map, _)| map.map())]
    }

    /// Reads what has been appended since the last time.
    pub fn read(&mut self, now: u64) -> News {
        let (mut replaced, mut news) = self.read_dump();
        if let Some((more, more_news)) = self.read_map(now) {
            replaced.extend(more);
            news |= more_news;
        }
        (replaced, news)
    }

    fn read_dump(&mut self) -> News {
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
        let read = read_on(file, *to, |bytes| {
            let (read, more) = dump.feed(bytes);
            replaced.extend(more);
            read
        });
        let news = read > 0;
        *to = to.saturating_add(read);
        (replaced, news)
    }

    fn read_map(&mut self, now: u64) -> Option<News> {
        let opened = self.owner.as_ref()?.open_map();
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
        let mut replaced = Vec::new();
        let read = read_on(&file, reading.to, |bytes| {
            let (read, more) = map.feed(bytes, now);
            replaced.extend(more);
            read
        });
        reading.to = reading.to.saturating_add(read);
        reading.changed = changed;
        Some((replaced, read > 0))
    }
}

/// Reads a file from `from` on, as far as `take` takes it; how many bytes that were.
fn read_on(file: &File, from: u64, mut take: impl FnMut(&[u8]) -> usize) -> u64 {
    let mut buffer = Vec::new();
    let mut total = 0u64;
    while total < MAX_TURN {
        let len = file.metadata().map_or(0, |meta| meta.len());
        let at = from.saturating_add(total);
        let left = usize::try_from(len.saturating_sub(at)).unwrap_or(usize::MAX);
        buffer.resize(left.min(CHUNK), 0);
        let read = file.read_at(&mut buffer, at).unwrap_or(0);
        let taken = take(buffer.get(..read).unwrap_or_default());
        if taken == 0 {
            break;
        }
        total = total.saturating_add(taken as u64);
    }
    total
}

#[cfg(test)]
impl Files {
    /// Those of this process, in another folder and under another id.
    pub fn of_folder(folder: &Path, pid: u32) -> Self {
        let own = Owner::of(std::process::id()).unwrap();
        let folder = File::open(folder).unwrap();
        Self {
            owner: Some(Owner { folder, pid, ..own }),
            ..Self::default()
        }
    }
}

impl Owner {
    fn of(pid: u32) -> io::Result<Self> {
        let process = procfs::process::Process::new(i32::try_from(pid).map_err(io::Error::other)?)
            .map_err(io::Error::other)?;
        let status = process.status().map_err(io::Error::other)?;
        let ticks = process.stat().map_err(io::Error::other)?.starttime;
        let booted = procfs::boot_time_secs().map_err(io::Error::other)?;
        let seconds = ticks
            .checked_div(procfs::ticks_per_second())
            .unwrap_or_default();
        let folder = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW)
            .open(format!("/proc/{pid}/root/tmp"))?;
        let inner = status.nspid.as_ref().and_then(|ids| ids.last());
        Ok(Self {
            folder,
            pid: inner
                .and_then(|inner| u32::try_from(*inner).ok())
                .unwrap_or(pid),
            uid: status.euid,
            started: i64::try_from(booted.saturating_add(seconds)).unwrap_or(i64::MAX),
        })
    }

    /// The map as it is now, if it is there and the process's own.
    fn open_map(&self) -> io::Result<(File, std::fs::Metadata)> {
        let folder = self.folder.as_raw_fd();
        let path = format!("/proc/self/fd/{folder}/perf-{}.map", self.pid);
        let (file, meta) = file::open_unmapped(Path::new(&path))?;
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
