//! Writes a session: batches records, and keeps them when they cannot be written.
//!
//! [`data`] has perf.data on the disk; [`folder`] has the folder's owner and content; [`kept_file`] has files of processes that are kept;
//! [`tally`] counts what was recorded and lost; [`remainder`] finds what fits into a file with a limit.

mod data;
pub(crate) mod folder;
mod kept_file;
mod remainder;
mod tally;

pub use folder::{Owner, may_hold, remove_session};
pub use kept_file::kept_file_of;

use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
};

use varid_model::Address;

use crate::{
    PERF_DATA, SYMBOLS,
    call_order::{CALL_ORDER_DATA, CallOrderWriter, ContextsKey},
    compiled_code::{COMPILED_CODE_DATA, RecordedCodeWriter},
    compression::RecordCompressor,
    contexts::{CONTEXTS_DATA, ContextCounter, ContextWriter},
    encode,
    error::{Error, Result},
    features,
    manifest::{Manifest, SampleCounts, SessionState},
    plain_name::plain_name,
    record::{Sample, SessionRecord},
};
use data::DataFile;
use folder::Folder;
use kept_file::SymbolFolder;
use tally::Tally;

/// The bytes of records after which a batch is written without a call of [`SessionWriter::flush`].
pub const BATCH: usize = 256 << 10;

/// The bytes of records that are kept when they cannot be written. Samples beyond that are lost, other records beyond twice as much.
pub const MAX_BACKLOG: usize = 16 << 20;

/// The bytes after the records that are allocated ahead. The batch that finds the disk full, what follows it at the end, and the features
/// fit in; what is left is room for the manifest.
pub const RESERVE: u64 = 512 << 10;

/// The one writer of a session. Holds an exclusive flock(2) on the folder.
///
/// What perf makes of a session depends on what is written: a [`Comm`](SessionRecord::Comm) and the mappings of a process before its first
/// sample; no sample after its exit; callers as return addresses; substitutes mapped from offset 0 under their absolute path with their own
/// build-id; the kernel's text as `[kernel.kallsyms]_text`, of [`Pid::KERNEL`](varid_model::Pid::KERNEL), `pgoff` the same as `start`.
///
/// Dropping it without [`finish`](Self::finish) loses what was not flushed and leaves the state `recording`, as a kill does.
#[derive(Debug)]
pub struct SessionWriter {
    folder: Folder,
    owner: Option<Owner>,
    data: DataFile,
    manifest: Manifest,
    tally: Tally,
    /// The whole records that are not in perf.data yet.
    batch: Vec<u8>,
    /// The size of the batch in bytes at which it is written without a flush.
    write_at: usize,
    /// Compresses records; `None` writes them plain.
    compressor: Option<RecordCompressor>,
}

impl SessionWriter {
    /// Starts a session in `dir`, which is created with its parents, for this user only. A session that is already there and not being
    /// recorded is replaced.
    ///
    /// From here on the folder is a session that varid and perf read. The manifest's state becomes `recording`. Its `events` are what
    /// perf.data says: names and rates must not change later, times may.
    ///
    /// # Errors
    ///
    /// The folder holds something other than a session, is being recorded, or cannot be written.
    pub fn create(dir: impl AsRef<Path>, manifest: Manifest) -> Result<Self> {
        Self::create_for(dir, manifest, None)
    }

    /// Starts a session as [`create`](Self::create) does, but a session that is already there stays as it is until
    /// [`finish`](Self::finish). If the writer is dropped before that, nothing of the new session is left.
    ///
    /// # Errors
    ///
    /// The errors of [`create`](Self::create).
    pub fn create_to_replace(dir: impl AsRef<Path>, manifest: Manifest) -> Result<Self> {
        Self::begin(Folder::take_to_replace(dir.as_ref())?, manifest, None)
    }

    /// Starts a session as [`create`](Self::create) does, where root records for a user: the session becomes `owner`'s when it is complete.
    ///
    /// # Errors
    ///
    /// The errors of [`create`](Self::create).
    pub fn create_for(
        dir: impl AsRef<Path>,
        manifest: Manifest,
        owner: Option<Owner>,
    ) -> Result<Self> {
        Self::begin(Folder::take(dir.as_ref(), owner)?, manifest, owner)
    }

    fn begin(mut folder: Folder, mut manifest: Manifest, owner: Option<Owner>) -> Result<Self> {
        manifest.state = SessionState::Recording;
        // The manifest comes first, so that another session may replace this one whenever a kill comes.
        folder.save_manifest(&manifest)?;
        folder.add_symbols()?;
        let data = DataFile::create(&folder, &manifest.events)?;
        Ok(Self {
            folder,
            owner,
            data,
            manifest,
            tally: Tally::default(),
            batch: Vec::new(),
            write_at: BATCH,
            compressor: None,
        })
    }

    /// Compresses records from here on. varid and perf read them, most other readers do not.
    pub fn compress(&mut self) {
        self.compressor = Some(RecordCompressor::new());
    }

    /// Sets what the raw data of tracepoints means, as perf keeps it (`HEADER_TRACING_DATA`). perf needs it to read events of that type.
    pub fn describe_tracepoints(&mut self, tracing_data: Vec<u8>) {
        self.tally.describe_tracepoints(tracing_data);
    }

    /// Returns the session folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.folder.path
    }

    /// Returns the folder for substitute ELF files, by the path that mappings record.
    #[must_use]
    pub fn symbols(&self) -> PathBuf {
        self.folder.path.join(SYMBOLS)
    }

    /// Returns the same folder by its descriptor, for this process to write into. It is the folder that was created, even if another user
    /// has put something else in its place.
    #[must_use]
    pub fn symbols_here(&self) -> PathBuf {
        self.folder.symbols()
    }

    /// Creates a file of the session, for this user only.
    ///
    /// # Errors
    ///
    /// The file exists already, or cannot be created.
    pub fn create_file(&self, name: &str) -> Result<File> {
        self.folder.create_new(name)
    }

    /// Creates the folder of a file that names addresses of `original`, whose content `id` identifies. Returns the path of that file
    /// relative to [`symbols`](Self::symbols): `ID/NAME`.
    ///
    /// # Errors
    ///
    /// The folder cannot be created.
    pub fn symbol_file(&self, id: &str, original: &Path) -> Result<String> {
        kept_file::make_folder(&self.symbols_here().join(id))
            .map_err(Error::io("create", &self.symbols().join(id)))?;
        Ok(format!("{id}/{}", plain_name(original)))
    }

    /// Keeps a file that names addresses of `original`, as `write` writes it. Returns its path relative to the session's folder,
    /// `symbols/ID/NAME`, and the bytes that it takes: 0 if the same file was kept before.
    ///
    /// # Errors
    ///
    /// The file cannot be written. Nothing of it is left.
    pub fn keep_file<E: From<Error>>(
        &self,
        original: &Path,
        write: impl FnOnce(&mut dyn Write) -> std::result::Result<(), E>,
    ) -> std::result::Result<(String, u64), E> {
        let symbols = SymbolFolder {
            path: &self.symbols_here(),
            shown: &self.symbols(),
        };
        kept_file::keep(symbols, original, write)
    }

    /// Returns what has been recorded so far: `samples`, `attributed`, `unattributed`, `lost` and `dropped`.
    #[must_use]
    pub const fn counts(&self) -> &SampleCounts {
        self.tally.counts()
    }

    /// Returns the manifest for changes; [`save_manifest`](Self::save_manifest) writes it. Of its counts, the caller sets only `malformed`,
    /// `throttled`, `transitions` and `filtered`.
    pub const fn manifest_mut(&mut self) -> &mut Manifest {
        &mut self.manifest
    }

    /// Returns the bytes of records that the next flush writes.
    #[must_use]
    pub const fn pending(&self) -> usize {
        self.batch.len()
    }

    /// Returns the bytes of perf.data that are valid on disk.
    #[must_use]
    pub const fn bytes_written(&self) -> u64 {
        self.data.end()
    }

    /// Adds a record to the batch, and writes the batch when it has grown to [`BATCH`].
    ///
    /// Records may be out of time order within a batch and the one before, not beyond that: a caller that holds records back must flush
    /// less often. Chains that are too long for a record are cut and end with the marker of [`varid_model::Reason::Truncated`].
    ///
    /// # Errors
    ///
    /// [`Error::Append`] if the batch was due and could not be written. The record is not lost by that: see [`flush`](Self::flush).
    pub fn write(&mut self, record: &SessionRecord) -> Result<()> {
        self.add(record);
        self.flush_if_due()
    }

    /// Adds a record to the batch, as [`write`](Self::write) does, and does not write the batch. The caller does so when it
    /// [is due](Self::is_due).
    pub fn add(&mut self, record: &SessionRecord) {
        if let SessionRecord::Sample(sample) = record {
            return self.add_sample(&sample.borrowed());
        }
        // Names and mappings have as much room again, because samples need them.
        if self.batch.len() < MAX_BACKLOG.saturating_mul(2) {
            self.tally.note(record);
            encode::record(&mut self.batch, record);
        } else {
            self.tally.drop(record);
        }
    }

    /// Adds a sample to the batch, as [`write`](Self::write) does.
    ///
    /// # Errors
    ///
    /// The errors of [`write`](Self::write).
    pub fn write_sample(&mut self, sample: &Sample<&[Address]>) -> Result<()> {
        self.add_sample(sample);
        self.flush_if_due()
    }

    /// Adds a sample to the batch, as [`add`](Self::add) does.
    pub fn add_sample(&mut self, sample: &Sample<&[Address]>) {
        self.append_sample(sample, |batch| encode::sample(batch, sample));
    }

    /// Adds a sample as another recorder has it. The sampled instruction is `original_ip`, and the callchain may start elsewhere, as it
    /// does for precise events. `tracepoint` is the raw data of a tracepoint's sample, `None` for other events.
    ///
    /// # Errors
    ///
    /// The errors of [`write`](Self::write).
    pub fn write_recorded_sample(
        &mut self,
        sample: &Sample<&[Address]>,
        tracepoint: Option<&[u8]>,
    ) -> Result<()> {
        self.append_sample(sample, |batch| {
            encode::recorded_sample(batch, sample, tracepoint);
        });
        self.flush_if_due()
    }

    fn append_sample(&mut self, sample: &Sample<&[Address]>, append: impl FnOnce(&mut Vec<u8>)) {
        if self.batch.len() < MAX_BACKLOG {
            self.tally.count(sample);
            append(&mut self.batch);
        } else {
            self.tally.lose(1);
        }
    }

    /// Returns true if the batch has grown to [`BATCH`], so that it must be written.
    #[must_use]
    pub const fn is_due(&self) -> bool {
        self.batch.len() >= self.write_at
    }

    /// Defers the batch until it has grown by [`BATCH`], because what its records refer to could not be written.
    pub const fn defer(&mut self) {
        self.write_at = self.batch.len().saturating_add(BATCH);
    }

    fn flush_if_due(&mut self) -> Result<()> {
        match self.is_due() {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Appends the batch to perf.data. After that a kill cannot lose it.
    ///
    /// # Errors
    ///
    /// [`Error::Append`], most often because the disk is full. The file is readable up to the last flush that succeeded. The records are
    /// kept, up to [`MAX_BACKLOG`] bytes, and the next flush tries again. Samples beyond that are counted as lost, in the counts and by a
    /// record in perf.data. [`RESERVE`] bytes are left for [`finish`](Self::finish).
    pub fn flush(&mut self) -> Result<()> {
        self.flush_leaving(RESERVE)
    }

    /// Appends the batch if `room` further bytes can be allocated after it.
    fn flush_leaving(&mut self, room: u64) -> Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        if let Some(lost) = self.tally.take_lost() {
            encode::record(&mut self.batch, &lost);
        }
        let records = self.batch.len();
        let (mut bytes, mut features) = (Vec::new(), Vec::new());
        let batch = match &mut self.compressor {
            Some(compressor) => {
                compressor.compress(&mut bytes, &self.batch);
                // Without this feature perf reads nothing of a recording that was killed.
                features.push(features::compression());
                &mut bytes
            }
            None => &mut self.batch,
        };
        encode::finished_round(batch);
        let appended = self.data.append(batch, features, room);
        match appended {
            Ok(()) => {
                self.batch.clear();
                self.batch.shrink_to(BATCH.saturating_mul(2));
                self.write_at = BATCH;
                Ok(())
            }
            Err(source) => {
                // The round ends when the batch is written, whatever joins it until then.
                self.batch.truncate(records);
                self.defer();
                Err(Error::Append {
                    path: self.folder.path.join(PERF_DATA),
                    pending: records,
                    source,
                })
            }
        }
    }

    /// Appends the records of the batch that fit into a limited file, and counts the others as lost. Returns `None` if the file has no such
    /// limit.
    fn flush_what_fits(&mut self) -> Option<Result<()>> {
        let room = usize::try_from(self.data.room()?).unwrap_or(usize::MAX);
        let kept = remainder::fitting(&self.batch, room);
        let lost = self.batch.split_off(kept);
        remainder::lose(&lost, &self.manifest.events, &mut self.tally);
        Some(self.flush_leaving(0))
    }

    /// Creates the session's contexts.data, for these counters. One that is there already is removed. The file must be complete before
    /// [`finish`](Self::finish) gives the session to its owner.
    ///
    /// # Errors
    ///
    /// The file cannot be created or written, or there are more than 64 counters.
    pub fn create_contexts(&self, counters: &[ContextCounter]) -> Result<ContextWriter> {
        self.folder.remove(CONTEXTS_DATA)?;
        let file = self.folder.create_new(CONTEXTS_DATA)?;
        ContextWriter::create(self.folder.path.join(CONTEXTS_DATA), file, counters)
    }

    /// Creates the session's call-order.data, for the contexts that are written: they have this number of nodes, and cannot be changed
    /// any more. One that is there already is removed. The file must be complete before [`finish`](Self::finish) gives the session to its
    /// owner.
    ///
    /// # Errors
    ///
    /// The contexts cannot be read, or the file cannot be created or written.
    pub fn create_call_order(&self, nodes: u32) -> Result<CallOrderWriter> {
        let contexts = ContextsKey::of(&self.folder.path, nodes)?;
        self.folder.remove(CALL_ORDER_DATA)?;
        let file = self.folder.create_new(CALL_ORDER_DATA)?;
        CallOrderWriter::create(self.folder.path.join(CALL_ORDER_DATA), file, contexts)
    }

    /// Creates the session's compiled-code.data. One that is there already is removed.
    ///
    /// # Errors
    ///
    /// The file cannot be created.
    pub fn create_compiled_code(&self) -> Result<RecordedCodeWriter> {
        self.folder.remove(COMPILED_CODE_DATA)?;
        let file = self.folder.create_new(COMPILED_CODE_DATA)?;
        let path = self.folder.path.join(COMPILED_CODE_DATA);
        Ok(RecordedCodeWriter::create(path, file))
    }

    /// Replaces session.json. A reader sees the old or the new one, never a part.
    ///
    /// # Errors
    ///
    /// The file cannot be written. The old one stays.
    pub fn save_manifest(&mut self) -> Result<()> {
        self.manifest.counts = SampleCounts {
            malformed: self.manifest.counts.malformed,
            throttled: self.manifest.counts.throttled,
            transitions: self.manifest.counts.transitions,
            filtered: std::mem::take(&mut self.manifest.counts.filtered),
            ..self.counts().clone()
        };
        self.folder.save_manifest(&self.manifest)
    }

    /// Flushes into the room that was left for it, adds perf's features (event, host, command line, kernel build-id, times) and sets the
    /// manifest's state to `complete`, unless the caller has set `failed`.
    ///
    /// # Errors
    ///
    /// Something cannot be written. What was written before stays readable. The call may be repeated after room was made on the disk.
    pub fn finish(&mut self) -> Result<()> {
        self.flush_leaving(0)
            .or_else(|error| self.flush_what_fits().ok_or(error)?)?;
        let path = self.folder.path.join(PERF_DATA);
        let is_compressed = self.compressor.is_some();
        let features = features::sections(&self.manifest, self.tally.facts(), is_compressed);
        // Where there is no room for them, the manifest still says what was recorded.
        let completed = self.data.complete(features);
        if self.manifest.state == SessionState::Recording && completed.is_ok() {
            self.manifest.state = SessionState::Complete;
        }
        let saved = self
            .save_manifest()
            .and_then(|()| self.folder.place())
            .and_then(|()| {
                self.owner
                    .map_or(Ok(()), |owner| self.folder.give_to(owner))
            });
        if saved.is_err() && self.manifest.state == SessionState::Complete {
            self.manifest.state = SessionState::Recording;
        }
        completed.map_err(Error::io("write", path)).and(saved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs::{File, OpenOptions},
        io,
    };

    use crate::{CpuMode, EventDesc, SampleSource, SessionReader, SessionTarget, TargetKind};
    use varid_model::{MonotonicNs, Period, Pid, Precision, Rate, Tid};

    fn writer(dir: &Path) -> SessionWriter {
        let event = EventDesc::new("cpu-clock", Rate::Frequency(997), 1, 0);
        let target = SessionTarget {
            kind: TargetKind::All,
            value: String::new(),
        };
        SessionWriter::create(
            dir,
            Manifest::new(event, SampleSource::Bpf, target, MonotonicNs::ZERO),
        )
        .unwrap()
    }

    fn sample(time: u64) -> SessionRecord {
        SessionRecord::Sample(Sample {
            event: 0,
            time: MonotonicNs::new(time),
            pid: Pid::new(1),
            tid: Tid::new(1),
            cpu: 0,
            period: Period::new(1),
            original_ip: Address::new(1),
            interrupt: None,
            mode: CpuMode::User,
            uid: 1000,
            frame: None,
            precision: Precision::Exact,
            kernel: vec![],
            user: vec![Address::new(1); 100],
        })
    }

    fn read(dir: &Path) -> Vec<SessionRecord> {
        let records = SessionReader::open(dir).unwrap().records().unwrap();
        records.collect::<Result<_>>().unwrap()
    }

    /// Makes every write fail with ENOSPC; returns the real file.
    fn fill_disk(writer: &mut SessionWriter) -> File {
        fail_as(writer, "/dev/full")
    }

    /// Makes every write fail as those of another file do; returns the real file.
    fn fail_as(writer: &mut SessionWriter, path: &str) -> File {
        let other = OpenOptions::new().write(true).open(path).unwrap();
        std::mem::replace(&mut writer.data.file, other)
    }

    #[test]
    fn a_manifest_that_no_reader_takes_does_not_replace_one_that_they_take() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = writer(dir.path());
        let notes = &mut writer.manifest_mut().notes;
        // In JSON such a character takes six bytes.
        notes.push("\u{1}".repeat(11 << 20));
        let error = writer.save_manifest().unwrap_err();
        assert!(error.to_string().contains("no reader"), "{error}");
        assert!(SessionReader::open(dir.path()).is_ok());
        writer.manifest_mut().notes.clear();
        writer.save_manifest().unwrap();
    }

    #[test]
    fn a_disk_that_is_full_or_broken_keeps_the_file_readable_and_the_records_for_later() {
        // ENOSPC, and EIO: nothing is mapped at low addresses.
        for (path, errno) in [("/dev/full", 28), ("/proc/self/mem", 5)] {
            let dir = tempfile::tempdir().unwrap();
            let mut writer = writer(dir.path());
            writer.write(&sample(1)).unwrap();
            writer.flush().unwrap();
            let real = fail_as(&mut writer, path);
            writer.write(&sample(2)).unwrap();
            let error = writer.flush().unwrap_err();
            assert!(
                matches!(&error, Error::Append { source, .. } if source.raw_os_error() == Some(errno)),
                "{error}"
            );
            assert!(writer.finish().is_err());
            assert_eq!(read(dir.path()), [sample(1)]);
            writer.data.file = real;
            writer.write(&sample(3)).unwrap();
            writer.finish().unwrap();
            assert_eq!(read(dir.path()), [sample(1), sample(2), sample(3)]);
            assert_eq!(writer.counts().lost, 0);
        }
    }

    #[test]
    fn a_file_that_may_not_grow_holds_what_fits_and_the_rest_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = writer(dir.path());
        writer.data.limit = Some(64 << 10);
        let written = 200;
        writer.write(&sample(0)).unwrap();
        // What is kept free on a disk is more than the file may have.
        writer.flush().unwrap();
        for time in 1..written {
            writer.write(&sample(time)).unwrap();
        }
        let error = writer.flush().unwrap_err();
        let too_large = io::ErrorKind::FileTooLarge;
        assert!(
            matches!(&error, Error::Append { source, .. } if source.kind() == too_large),
            "{error}"
        );
        writer.finish().unwrap();
        let path = dir.path().join(PERF_DATA);
        assert!(path.metadata().unwrap().len() <= 64 << 10);
        let records = read(dir.path());
        let counts = SessionReader::open(dir.path())
            .unwrap()
            .manifest()
            .counts
            .clone();
        let kept = counts.samples;
        assert!(kept > 20 && counts.lost > 20, "{counts:?}");
        assert_eq!((kept + counts.lost, counts.attributed), (written, kept));
        let expected: Vec<_> = (0..kept).map(sample).collect();
        assert_eq!(records[..expected.len()], expected);
        let lost = SessionRecord::Lost {
            time: MonotonicNs::new(written - 1),
            count: counts.lost,
        };
        assert_eq!(records[expected.len()..], [lost]);
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
        writer.data.file = real;
        writer.finish().unwrap();
        let records = read(dir.path());
        let samples = records
            .iter()
            .filter(|r| matches!(r, SessionRecord::Sample(_)))
            .count();
        assert_eq!(samples as u64, written - lost);
        let latest = written - lost - 1;
        assert!(records.contains(&SessionRecord::Lost {
            time: MonotonicNs::new(latest),
            count: lost
        }));
    }

    #[test]
    fn what_the_backlog_has_no_room_for_is_counted_as_what_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = writer(dir.path());
        let real = fill_disk(&mut writer);
        writer.write(&sample(1)).unwrap();
        writer.batch.resize(2 * MAX_BACKLOG, 0);
        writer.write_at = usize::MAX;
        let exit = SessionRecord::Exit {
            time: MonotonicNs::new(2),
            pid: Pid::new(1),
            ppid: Pid::new(1),
            tid: Tid::new(1),
            ptid: Tid::new(1),
        };
        writer.write(&exit).unwrap();
        writer
            .write(&SessionRecord::Lost {
                time: MonotonicNs::new(2),
                count: 7,
            })
            .unwrap();
        writer.write(&sample(3)).unwrap();
        let counts = writer.counts();
        assert_eq!((counts.samples, counts.lost, counts.dropped), (1, 8, 1));
        writer.batch.clear();
        writer.data.file = real;
        writer.write(&exit).unwrap();
        writer.finish().unwrap();
        let lost = SessionRecord::Lost {
            time: MonotonicNs::new(2),
            count: 8,
        };
        assert_eq!(read(dir.path()), [exit, lost]);
    }
}
