//! How is a session written, and what survives a kill or a full disk?
//!
//! perf.data grows in whole records: a batch is appended first, then the header's data size
//! is set to include it, one aligned 8-byte write. A process killed between the two leaves
//! bytes that no reader looks at. Features are added at the end, their bits last.
//!
//! Room for the end is allocated ahead, behind the file's size: a disk that is full is known
//! while the session can still be completed.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use nix::{
    errno::Errno,
    fcntl::{FallocateFlags, Flock, FlockArg, fallocate},
};

use crate::{
    PERF_DATA, RAW_DATA, SESSION_JSON, SYMBOLS, encode,
    error::{Error, Result},
    features::{self, Facts},
    format::{DATA_SIZE_AT, FEATURE_BYTES, FEATURES_AT, data_at, head},
    manifest::{Counts, Manifest, State},
    record::{Mapping, Record, Sample},
    remap,
};

/// Bytes of records after which a batch is written without being asked for.
pub const BATCH: usize = 256 << 10;

/// Bytes of records that are kept when they cannot be written; samples beyond are lost, other
/// records beyond twice as much.
pub const MAX_BACKLOG: usize = 16 << 20;

/// Bytes behind the records that are allocated ahead: the batch that finds the disk full, what
/// follows it at the end, and the features fit; what is left is room for the manifest.
pub const RESERVE: u64 = 512 << 10;

/// The manifest while it is being replaced.
const SESSION_JSON_NEW: &str = "session.json.new";

/// The one writer of a session. Holds an exclusive flock(2) on the folder.
///
/// What perf makes of it depends on what is written: a [`Comm`](Record::Comm) and the mappings
/// of a process before its first sample, no sample after its exit; callers as return addresses;
/// substitutes mapped from offset 0 under their absolute path with their own build-id; the
/// kernel's text as `[kernel.kallsyms]_text`, pid `u32::MAX`, `pgoff` the same as `start`.
///
/// Dropping it without [`finish`](Self::finish) loses what was not flushed and leaves the
/// state `recording`, as a kill does.
#[derive(Debug)]
pub struct SessionWriter {
    dir: PathBuf,
    data: File,
    _lock: Flock<File>,
    manifest: Manifest,
    /// Kept here, not in the manifest, so that nobody counts twice.
    counts: Counts,
    facts: Facts,
    /// Where the records start.
    data_at: u64,
    /// Bytes of records inside the header's data size.
    on_disk: u64,
    /// Where what is allocated ends.
    reserved: u64,
    /// Whole records that are not.
    batch: Vec<u8>,
    /// Size of the batch at which it is written next without being asked for.
    write_at: usize,
    /// Records dropped since the last batch was written.
    dropped: u64,
    /// The latest time that was written.
    latest: u64,
    /// perf's features lie behind the records: the next batch overwrites them.
    has_features: bool,
}

impl SessionWriter {
    /// Starts a session in `dir`, which is created with its parents, for this user only.
    /// A session that is there already and not being recorded is replaced.
    ///
    /// From here on the folder is a session that varid and perf read. The manifest's state
    /// becomes `recording`; its `events` are what perf.data says: names and rates must not
    /// change later, times may.
    ///
    /// # Errors
    ///
    /// The folder holds something else than a session, is being recorded, or cannot be written.
    pub fn create(dir: impl Into<PathBuf>, mut manifest: Manifest) -> Result<Self> {
        let dir = dir.into();
        let mut folders = DirBuilder::new();
        folders.recursive(true).mode(0o700);
        folders
            .create(&dir)
            .map_err(Error::io("create", dir.clone()))?;
        own(&dir)?;
        let lock = lock(&dir)?;
        clear(&dir)?;

        manifest.state = State::Recording;
        let symbols = dir.join(SYMBOLS);
        DirBuilder::new()
            .mode(0o700)
            .create(&symbols)
            .map_err(Error::io("create", symbols))?;
        let path = dir.join(PERF_DATA);
        let data = create_new(&path)?;
        let mut bytes = head(&manifest.events);
        // perf refuses a file whose data size is zero, so it never is: an empty round.
        encode::finished_round(&mut bytes);
        let data_at = data_at(manifest.events.len());
        let on_disk = (bytes.len() as u64).saturating_sub(data_at);
        data.write_all_at(&bytes, 0)
            .and_then(|()| data.write_all_at(&on_disk.to_le_bytes(), DATA_SIZE_AT))
            .map_err(Error::io("write", path))?;
        let mut writer = Self {
            dir,
            data,
            _lock: lock,
            manifest,
            counts: Counts::default(),
            facts: Facts::default(),
            data_at,
            on_disk,
            reserved: 0,
            batch: Vec::new(),
            write_at: BATCH,
            dropped: 0,
            latest: 0,
            has_features: false,
        };
        writer.save_manifest()?;
        Ok(writer)
    }

    /// The session folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The folder for substitute ELF files.
    #[must_use]
    pub fn symbols(&self) -> PathBuf {
        self.dir.join(SYMBOLS)
    }

    /// What has been recorded so far: `samples`, `attributed`, `unattributed` and `lost`.
    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The manifest, to be changed; [`save_manifest`](Self::save_manifest) writes it. Of its
    /// counts only `throttled` and `transitions` are the caller's.
    pub const fn manifest_mut(&mut self) -> &mut Manifest {
        &mut self.manifest
    }

    /// Bytes of records that the next flush writes.
    #[must_use]
    pub const fn pending(&self) -> usize {
        self.batch.len()
    }

    /// Bytes of perf.data that are valid on disk.
    #[must_use]
    pub const fn bytes_written(&self) -> u64 {
        self.data_at.saturating_add(self.on_disk)
    }

    /// Adds a record to the batch; writes the batch when it has grown to [`BATCH`].
    ///
    /// Records may come out of order of time within a batch and the one before, not beyond:
    /// whoever holds records back must flush less often than that. Chains longer than a
    /// record can hold are cut and end in the marker of [`remap::Reason::Truncated`].
    ///
    /// # Errors
    ///
    /// [`Error::Append`] if the batch was due and could not be written. The record is not
    /// lost by that: see [`flush`](Self::flush).
    pub fn write(&mut self, record: &Record) -> Result<()> {
        self.push(record);
        if self.batch.len() < self.write_at {
            return Ok(());
        }
        self.flush()
    }

    /// Appends the batch to perf.data, after which a kill cannot lose it any more.
    ///
    /// # Errors
    ///
    /// [`Error::Append`], most often because the disk is full. The file is readable up to
    /// the last flush that succeeded; the records are kept, up to [`MAX_BACKLOG`] bytes, and
    /// the next flush tries again. Samples beyond are counted as lost, in the counts and by a
    /// record in perf.data. [`RESERVE`] bytes are left for [`finish`](Self::finish).
    pub fn flush(&mut self) -> Result<()> {
        self.flush_leaving(RESERVE)
    }

    /// Appends the batch if so many bytes can be had behind it, too.
    fn flush_leaving(&mut self, room: u64) -> Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            let lost = Record::Lost {
                time: self.latest,
                count: dropped,
            };
            encode::record(&mut self.batch, &lost);
        }
        let records = self.batch.len();
        encode::finished_round(&mut self.batch);
        match self.append(room) {
            Ok(()) => {
                self.batch.clear();
                self.batch.shrink_to(BATCH.saturating_mul(2));
                self.write_at = BATCH;
                Ok(())
            }
            Err(source) => {
                // The round ends when the batch is written, whatever joins it until then.
                self.batch.truncate(records);
                self.write_at = records.saturating_add(BATCH);
                Err(Error::Append {
                    path: self.dir.join(PERF_DATA),
                    pending: records,
                    source,
                })
            }
        }
    }

    /// Replaces session.json: a reader sees the old or the new one, never a part.
    ///
    /// # Errors
    ///
    /// It cannot be written; the old one stays.
    pub fn save_manifest(&mut self) -> Result<()> {
        self.manifest.counts = Counts {
            throttled: self.manifest.counts.throttled,
            transitions: self.manifest.counts.transitions,
            ..self.counts.clone()
        };
        let new = self.dir.join(SESSION_JSON_NEW);
        let mut json = serde_json::to_vec_pretty(&self.manifest)
            .map_err(io::Error::from)
            .map_err(Error::io("encode", new.clone()))?;
        json.push(b'\n');
        remove(&new)?;
        create_new(&new)?
            .write_all(&json)
            .map_err(Error::io("write", new.clone()))?;
        let path = self.dir.join(SESSION_JSON);
        fs::rename(&new, &path).map_err(Error::io("replace", path))
    }

    /// Flushes, with the room that was left for that, adds perf's features (event, host, command line, kernel build-id, times) and
    /// sets the manifest's state to `complete`, unless the caller has set `failed`.
    ///
    /// # Errors
    ///
    /// Something cannot be written; what was written before stays readable. It may be called
    /// again, after room was made on the disk.
    pub fn finish(&mut self) -> Result<()> {
        self.flush_leaving(0)?;
        let path = self.dir.join(PERF_DATA);
        let at = self.bytes_written();
        let (sections, bits) = features::sections(&self.manifest, &self.facts, at);
        self.data
            .write_all_at(&sections, at)
            .and_then(|()| self.data.write_all_at(&bits, FEATURES_AT))
            // What is allocated behind the end is free again.
            .and_then(|()| self.data.set_len(at.saturating_add(sections.len() as u64)))
            .map_err(Error::io("write", path))?;
        self.reserved = 0;
        self.has_features = true;
        if self.manifest.state == State::Recording {
            self.manifest.state = State::Complete;
        }
        let saved = self.save_manifest();
        if saved.is_err() && self.manifest.state == State::Complete {
            self.manifest.state = State::Recording;
        }
        saved
    }

    /// Encodes a record into the batch and counts it, unless there is no room for it.
    fn push(&mut self, record: &Record) {
        // Names and mappings have as much room again: samples need them.
        let room = match record {
            Record::Sample(_) => MAX_BACKLOG,
            _ => MAX_BACKLOG.saturating_mul(2),
        };
        if self.batch.len() >= room {
            add(&mut self.dropped, 1);
            add(&mut self.counts.lost, 1);
            return;
        }
        match record {
            Record::Sample(sample) => self.count(sample),
            Record::Lost { count, .. } => add(&mut self.counts.lost, *count),
            Record::Mapping(Mapping {
                kernel: true,
                path,
                build_id,
                ..
            }) if path
                .to_str()
                .is_some_and(|path| path.starts_with("[kernel.kallsyms]")) =>
            {
                self.facts.kernel_build_id.clone_from(build_id);
            }
            _ => {}
        }
        self.latest = self.latest.max(time(record));
        encode::record(&mut self.batch, record);
    }

    fn count(&mut self, sample: &Sample) {
        add(&mut self.counts.samples, 1);
        let cut = sample.kernel.len().saturating_add(sample.user.len()) > crate::format::MAX_FRAMES;
        let reason =
            remap::unattributed(&sample.user).or_else(|| cut.then_some(remap::Reason::Truncated));
        match reason {
            None => add(&mut self.counts.attributed, 1),
            Some(reason) => {
                let name = reason.name().to_owned();
                add(self.counts.unattributed.entry(name).or_default(), 1);
            }
        }
        let (first, last) = self
            .facts
            .sample_times
            .unwrap_or((sample.time, sample.time));
        self.facts.sample_times = Some((first.min(sample.time), last.max(sample.time)));
    }

    /// Writes the batch behind the records on disk, then makes the header include it.
    fn append(&mut self, room: u64) -> io::Result<()> {
        let at = self.data_at.saturating_add(self.on_disk);
        let on_disk = self.on_disk.saturating_add(self.batch.len() as u64);
        self.reserve(self.data_at.saturating_add(on_disk).saturating_add(room))?;
        if self.has_features {
            self.data.write_all_at(&[0; FEATURE_BYTES], FEATURES_AT)?;
            self.has_features = false;
        }
        self.data.write_all_at(&self.batch, at)?;
        self.data
            .write_all_at(&on_disk.to_le_bytes(), DATA_SIZE_AT)?;
        self.on_disk = on_disk;
        Ok(())
    }
}

impl SessionWriter {
    /// Allocates the file up to there, behind its size. Not every file system can.
    fn reserve(&mut self, end: u64) -> io::Result<()> {
        let Some(missing) = end
            .checked_sub(self.reserved)
            .filter(|missing| *missing > 0)
        else {
            return Ok(());
        };
        let (Ok(from), Ok(missing)) = (self.reserved.try_into(), missing.try_into()) else {
            return Ok(());
        };
        let keep_size = FallocateFlags::FALLOC_FL_KEEP_SIZE;
        match fallocate(&self.data, keep_size, from, missing) {
            Err(full @ (Errno::ENOSPC | Errno::EDQUOT)) => Err(full.into()),
            Err(_) => Ok(()),
            Ok(()) => {
                self.reserved = end;
                Ok(())
            }
        }
    }
}

fn add(count: &mut u64, more: u64) {
    *count = count.saturating_add(more);
}

fn time(record: &Record) -> u64 {
    match record {
        Record::Mapping(mapping) => mapping.time,
        Record::Sample(sample) => sample.time,
        Record::Comm { time, .. }
        | Record::Fork { time, .. }
        | Record::Exit { time, .. }
        | Record::Lost { time, .. } => *time,
    }
}

fn lock(dir: &Path) -> Result<Flock<File>> {
    let open = File::open(dir).map_err(Error::io("open", dir))?;
    Flock::lock(open, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| match errno {
        Errno::EWOULDBLOCK => Error::Busy {
            path: dir.to_owned(),
        },
        other => Error::io("lock", dir)(other.into()),
    })
}

/// Makes sure that nobody else can change what is in the folder while it is written.
fn own(dir: &Path) -> Result<()> {
    let uid = |path: &Path| fs::metadata(path).map(|meta| (meta.uid(), meta.mode()));
    let (owner, mode) = uid(dir).map_err(Error::io("look at", dir))?;
    let (me, _) = uid(Path::new("/proc/self")).map_err(Error::io("look at", "/proc/self"))?;
    if owner != me || mode & 0o022 != 0 {
        return Err(Error::NotOurs {
            path: dir.to_owned(),
        });
    }
    Ok(())
}

/// Removes a session's files from a folder that holds nothing else.
fn clear(dir: &Path) -> Result<()> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(Error::io("list", dir))? {
        found.push(entry.map_err(Error::io("list", dir))?.file_name());
    }
    let foreign = found.iter().find(|name| {
        ![PERF_DATA, RAW_DATA, SESSION_JSON, SESSION_JSON_NEW, SYMBOLS]
            .iter()
            .any(|ours| name.as_os_str() == *ours)
    });
    let is_session = found.iter().any(|name| name == SESSION_JSON);
    // A folder with symbols alone may be anybody's; a session has its manifest first.
    if let Some(name) = foreign.or_else(|| found.first().filter(|_| !is_session)) {
        return Err(Error::NotASession {
            path: dir.to_owned(),
            found: name.to_string_lossy().into_owned(),
        });
    }
    remove(&dir.join(PERF_DATA))?;
    remove(&dir.join(RAW_DATA))?;
    let symbols = dir.join(SYMBOLS);
    match fs::remove_dir_all(&symbols) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(Error::io("remove", symbols)(error));
        }
        _ => {}
    }
    remove(&dir.join(SESSION_JSON_NEW))?;
    remove(&dir.join(SESSION_JSON))
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// Creates a file that was not there, for this user only, following no link.
fn create_new(path: &Path) -> Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(Error::io("create", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CpuMode, EventDesc, Rate, SessionReader, Source, Target, TargetKind};

    fn writer(dir: &Path) -> SessionWriter {
        let event = EventDesc::new("cpu-clock", Rate::Frequency(997), 1, 0);
        let target = Target {
            kind: TargetKind::All,
            value: String::new(),
        };
        SessionWriter::create(dir, Manifest::new(event, Source::Bpf, target, 0)).unwrap()
    }

    fn sample(time: u64) -> Record {
        Record::Sample(Sample {
            event: 0,
            time,
            pid: 1,
            tid: 1,
            cpu: 0,
            period: 1,
            original_ip: 1,
            mode: CpuMode::User,
            kernel: vec![],
            user: vec![1; 100],
        })
    }

    fn read(dir: &Path) -> Vec<Record> {
        let records = SessionReader::open(dir).unwrap().records().unwrap();
        records.collect::<Result<_>>().unwrap()
    }

    /// Makes every write fail with ENOSPC; returns the real file.
    fn fill_disk(writer: &mut SessionWriter) -> File {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        std::mem::replace(&mut writer.data, full)
    }

    #[test]
    fn a_full_disk_keeps_the_file_readable_and_the_records_for_later() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = writer(dir.path());
        writer.write(&sample(1)).unwrap();
        writer.flush().unwrap();
        let real = fill_disk(&mut writer);
        writer.write(&sample(2)).unwrap();
        let error = writer.flush().unwrap_err();
        assert!(
            matches!(&error, Error::Append { source, .. }
            if source.kind() == io::ErrorKind::StorageFull),
            "{error}"
        );
        assert!(writer.finish().is_err());
        assert_eq!(read(dir.path()), [sample(1)]);
        writer.data = real;
        writer.write(&sample(3)).unwrap();
        writer.finish().unwrap();
        assert_eq!(read(dir.path()), [sample(1), sample(2), sample(3)]);
        assert_eq!(writer.counts().lost, 0);
    }

    #[test]
    fn a_disk_that_stays_full_costs_bounded_memory_and_counts_what_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = writer(dir.path());
        let real = fill_disk(&mut writer);
        let (mut errors, written) = (0, 30_000);
        for time in 0..written {
            errors += usize::from(writer.write(&sample(time)).is_err());
        }
        assert!(writer.pending() < MAX_BACKLOG + 1_000);
        assert!(
            (10..200).contains(&errors),
            "one error a batch, not one a record: {errors}"
        );
        let lost = writer.counts().lost;
        assert!(lost > 0 && writer.counts().samples == written - lost);
        writer.data = real;
        writer.finish().unwrap();
        let records = read(dir.path());
        let samples = records
            .iter()
            .filter(|r| matches!(r, Record::Sample(_)))
            .count();
        assert_eq!(samples as u64, written - lost);
        let latest = written - lost - 1;
        assert!(records.contains(&Record::Lost {
            time: latest,
            count: lost
        }));
    }
}
