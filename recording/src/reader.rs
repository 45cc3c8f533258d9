//! Reads a session, whether it is live, was killed or is complete.

use std::{
    fs::File,
    io::{BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use varid_model::MonotonicNs;
use varid_model::perf::{Header, Malformed};

use crate::{
    PERF_DATA, SESSION_JSON, SYMBOLS,
    compression::{self, Expansion},
    contexts::{self, ContextTrace, Contexts},
    decode::{self, Decoded, RawContent},
    error::{Error, Result},
    event::SessionEvents,
    format::{
        ATTR_SIZE, DATA_SIZE_AT, HEADER_SIZE, MAGIC, MAX_EVENTS, OLD_SAMPLE_TYPE,
        RECORD_HEADER_SIZE, SAMPLE_TYPE, SAMPLE_TYPE_AT, kind,
    },
    manifest::Manifest,
    record::{RecordRef, SessionRecord},
    regular::open_regular,
    time_order::TimeOrder,
    writer::{BATCH, MAX_BACKLOG},
};

/// The bytes that are read at once.
const READ_AHEAD: usize = 256 << 10;

/// A session folder, opened for reading. Its content is not trusted.
#[derive(Debug)]
pub struct SessionReader {
    dir: PathBuf,
    manifest: Manifest,
}

impl SessionReader {
    /// Opens a session folder.
    ///
    /// # Errors
    ///
    /// The folder is not a session, or its manifest cannot be read.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self> {
        let dir = dir.into();
        let path = dir.join(SESSION_JSON);
        if matches!(path.try_exists(), Ok(false)) {
            return Err(Error::NoSession { path: dir });
        }
        let manifest = Manifest::read(&path)?;
        Ok(Self { dir, manifest })
    }

    /// Returns the session folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the folder of substitute ELF files.
    #[must_use]
    pub fn symbols(&self) -> PathBuf {
        self.dir.join(SYMBOLS)
    }

    /// Returns the manifest as it was when the session was opened. A killed session has the counts of the last save; the records are exact.
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the calling contexts in which something was counted, as far as the file has them: see [`Contexts::damage`]. Those of a
    /// session from before contexts.data are methods without callers, with the counters `calls`, `returns` and `unwinds`. None: nothing was
    /// counted.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, is another one, or one of another version.
    pub fn contexts(&self) -> Result<Option<Contexts>> {
        contexts::read(&self.dir)
    }

    /// Reads the bytes of a part of a trace of this session, as they were written.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn read_trace(&self, trace: &ContextTrace) -> Result<Vec<u8>> {
        contexts::read_trace(&self.dir, trace)
    }

    /// Returns false if the session has no perf.data. It may have [`contexts`](Self::contexts).
    #[must_use]
    pub fn has_records(&self) -> bool {
        !matches!(self.dir.join(PERF_DATA).try_exists(), Ok(false))
    }

    /// Returns the records that the file holds now, in order of time.
    ///
    /// # Errors
    ///
    /// perf.data cannot be opened, or its head is not one that varid writes.
    pub fn records(&self) -> Result<Records> {
        Records::open(self.dir.join(PERF_DATA), &self.manifest.events)
    }
}

/// The records of a session in order of time. An error ends them, after the records before it.
///
/// Holds back records that an earlier one may still precede: those of two flushes. As an iterator it allocates memory for each record.
/// [`next_ref`](Self::next_ref) allocates no memory for samples.
#[derive(Debug)]
pub struct Records {
    path: PathBuf,
    file: BufReader<File>,
    /// The content of the raw data of each event's samples.
    events: Vec<RawContent>,
    /// Where the records are in the file.
    extent: Extent,
    /// The body of the current record.
    body: Vec<u8>,
    compressed: Compressed,
    rounds: Rounds,
    /// The error that ended the records early.
    damage: Option<Error>,
    /// More records may come, and records that they may precede are held back.
    follows: bool,
}

/// Where the records are in the file.
#[derive(Debug)]
struct Extent {
    /// The offset of the first record.
    start: u64,
    /// The offset of the next record.
    offset: u64,
    /// The offset at which the records end, or would end if the file were not cut.
    end: u64,
    /// The size of the file in bytes.
    len: u64,
}

/// The state of compressed records.
#[derive(Debug, Default)]
struct Compressed {
    /// The records of the current compressed record.
    chunk: Chunk,
    /// The bytes since the last end of a round, after decompression.
    in_round: usize,
    /// The bytes since the first record.
    expansion: Expansion,
}

/// The records by rounds.
#[derive(Debug, Default)]
struct Rounds {
    /// The records that were read and not delivered.
    order: TimeOrder,
    /// The latest time of the rounds before the current one.
    previous: MonotonicNs,
    /// The latest time so far.
    latest: MonotonicNs,
}

impl Rounds {
    fn push(&mut self, time: MonotonicNs, record: Decoded) {
        self.latest = self.latest.max(time);
        self.order.push(time, record);
    }

    /// Ends the current round: no later record is older than the previous one.
    fn end_round(&mut self) {
        self.order.release(self.previous);
        self.previous = self.latest;
    }

    /// Releases all records: no more come.
    fn end(&mut self) {
        self.order.release(MonotonicNs::MAX);
    }
}

/// The most bytes of compressed records in a round: the writer's backlog and a batch.
const MAX_ROUND: usize = MAX_BACKLOG
    .saturating_mul(2)
    .saturating_add(BATCH.saturating_mul(2));

/// The records of a compressed record.
#[derive(Debug, Default)]
struct Chunk {
    /// The file offset of the compressed record; 0 before the first.
    at: u64,
    records: Vec<u8>,
    /// The bytes of these records that have been taken.
    taken: usize,
}

impl Chunk {
    fn open(&mut self, at: u64, body: &[u8]) -> std::result::Result<(), &'static str> {
        (self.at, self.taken) = (at, 0);
        compression::decompress(body, &mut self.records)
    }

    fn has_more(&self) -> bool {
        self.taken < self.records.len()
    }

    /// Takes the next record: returns its header and fills `body`.
    fn next(&mut self, body: &mut Vec<u8>) -> std::result::Result<Header, &'static str> {
        let rest = self.records.get(self.taken..).unwrap_or_default();
        let cut = "a compressed record that ends within one of its records";
        let header = Header::from_bytes(*rest.first_chunk().ok_or(cut)?);
        let size = usize::from(header.size);
        let range = RECORD_HEADER_SIZE..size;
        body.clear();
        body.extend_from_slice(rest.get(range).ok_or(cut)?);
        self.taken = self.taken.saturating_add(size);
        Ok(header)
    }
}

impl Records {
    /// Treats the session as one that is being written: records that later ones may precede are held back until [`grow`](Self::grow) has
    /// found these, or [`end`](Self::end) says that no more come. `None` from the iterator is then not the end.
    #[must_use]
    pub const fn following(mut self) -> Self {
        self.follows = true;
        self
    }

    /// Looks up how far the records of the file reach now. Only what was added is read.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn grow(&mut self) -> Result<()> {
        let failed = Error::io("read", self.path.clone());
        let mut size = [0; 8];
        let found = (self.file.get_ref().metadata())
            .and_then(|file| {
                self.file.seek(SeekFrom::Start(DATA_SIZE_AT))?;
                self.file.read_exact(&mut size)?;
                // The buffer may hold a part of a batch from after the records.
                self.file.seek(SeekFrom::Start(self.extent.offset))?;
                Ok(file.len())
            })
            .map_err(failed)?;
        self.extent.len = found;
        let end = self.extent.start.saturating_add(u64::from_le_bytes(size));
        self.extent.end = self.extent.end.max(end);
        Ok(())
    }

    /// Says that the session is no longer written. After a last [`grow`](Self::grow) the iterator ends with the last record.
    pub const fn end(&mut self) {
        self.follows = false;
    }

    fn open(path: PathBuf, events: &SessionEvents) -> Result<Self> {
        let DataSection {
            file,
            data: offset,
            size,
        } = open_data(&path, events.len())?;
        let len = file
            .get_ref()
            .metadata()
            .map_err(Error::io("read", path.clone()))?
            .len();
        let mut file = file.into_inner();
        file.seek(SeekFrom::Start(offset))
            .map_err(Error::io("read", path.clone()))?;
        Ok(Self {
            path,
            file: BufReader::with_capacity(READ_AHEAD, file),
            events: events.iter().map(RawContent::of).collect(),
            extent: Extent {
                start: offset,
                offset,
                end: offset.saturating_add(size),
                len,
            },
            body: Vec::new(),
            compressed: Compressed::default(),
            rounds: Rounds::default(),
            damage: None,
            follows: false,
        })
    }

    /// Returns the next record, as [`Iterator::next`] does. A sample's callchains are valid until the next call.
    pub fn next_ref(&mut self) -> Option<Result<RecordRef<'_>>> {
        if !self.rounds.order.has_next()
            && let Err(error) = self.fill()
        {
            self.extent.offset = self.extent.end;
            self.compressed.chunk = Chunk::default();
            self.rounds.end();
            self.damage = Some(error);
        }
        match self.rounds.order.next_ref() {
            Some(record) => Some(Ok(record)),
            None => self.damage.take().map(Err),
        }
    }

    /// Reads on until a record is ready or the records end.
    fn fill(&mut self) -> Result<()> {
        while !self.rounds.order.has_next()
            && (self.extent.offset < self.extent.end || self.compressed.chunk.has_more())
        {
            let (header_at, header) = match self.compressed.chunk.has_more() {
                true => {
                    let header = self.compressed.chunk.next(&mut self.body);
                    let header =
                        header.map_err(|reason| self.wrong(self.compressed.chunk.at, reason))?;
                    (self.compressed.chunk.at, header)
                }
                false => (self.extent.offset, self.read_record()?),
            };
            match header.kind {
                kind::FINISHED_ROUND => {
                    self.compressed.in_round = 0;
                    self.rounds.end_round();
                }
                kind::COMPRESSED => self.decompress(header_at)?,
                kind::COMPRESSED2 => {
                    return Err(self.wrong(header_at, "records compressed by perf, not by varid"));
                }
                _ => match decode::record(
                    header,
                    &self.body,
                    &self.events,
                    self.rounds.order.chains(),
                ) {
                    Ok(None) => {}
                    Ok(Some((time, record))) => self.rounds.push(time, record),
                    Err(Malformed { at, reason }) => {
                        let at = header_at
                            .saturating_add(RECORD_HEADER_SIZE as u64)
                            .saturating_add(at as u64);
                        return Err(self.wrong(at, reason));
                    }
                },
            }
        }
        if !self.rounds.order.has_next() && !self.follows {
            self.rounds.end();
        }
        Ok(())
    }

    /// Opens the compressed record whose body has been read.
    fn decompress(&mut self, header_at: u64) -> Result<()> {
        if self.compressed.chunk.has_more() || self.compressed.chunk.at == header_at {
            return Err(self.wrong(header_at, "compressed records within compressed ones"));
        }
        let opened = self.compressed.chunk.open(header_at, &self.body);
        let opened = opened.and_then(|()| {
            self.compressed
                .expansion
                .add(&self.body, &self.compressed.chunk.records)
        });
        opened.map_err(|reason| self.wrong(header_at, reason))?;
        // Records wait in memory for the end of a round. They must be few, whatever a small file says.
        self.compressed.in_round = self
            .compressed
            .in_round
            .saturating_add(self.compressed.chunk.records.len());
        if self.compressed.in_round > MAX_ROUND {
            return Err(self.wrong(header_at, "more compressed records than a round has"));
        }
        Ok(())
    }

    /// Reads a record's body and returns its header.
    fn read_record(&mut self) -> Result<Header> {
        let mut bytes = [0; RECORD_HEADER_SIZE];
        let left = self
            .extent
            .end
            .min(self.extent.len)
            .saturating_sub(self.extent.offset);
        let is_cut = self.extent.len < self.extent.end;
        let within = |reason| match is_cut {
            true => "the file ends before its records do",
            false => reason,
        };
        if left < RECORD_HEADER_SIZE as u64 {
            return Err(self.wrong(
                self.extent.offset,
                within("the data ends within a record's header"),
            ));
        }
        self.read(&mut bytes)?;
        let header = Header::from_bytes(bytes);
        let size = header.size;
        if u64::from(size) > left {
            return Err(self.wrong(self.extent.offset, within("the data ends within a record")));
        }
        let Some(len) = usize::from(size).checked_sub(RECORD_HEADER_SIZE) else {
            return Err(self.wrong(self.extent.offset, "a record smaller than its header"));
        };
        let mut body = std::mem::take(&mut self.body);
        body.resize(len, 0);
        let read = self.read(&mut body);
        self.body = body;
        read?;
        self.extent.offset = self.extent.offset.saturating_add(u64::from(size));
        Ok(header)
    }

    fn read(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.file
            .read_exact(bytes)
            .map_err(Error::io("read", self.path.clone()))
    }

    fn wrong(&self, offset: u64, reason: &'static str) -> Error {
        Error::Data {
            path: self.path.clone(),
            offset,
            reason,
        }
    }
}

impl Iterator for Records {
    type Item = Result<SessionRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.next_ref()?.map(RecordRef::into_owned))
    }
}

/// An open perf.data and the place of its records.
#[derive(Debug)]
pub struct DataSection {
    pub file: BufReader<File>,
    /// The offset of the first record.
    pub data: u64,
    /// The size of the records in bytes.
    pub size: u64,
}

/// Opens a perf.data of this many events.
pub fn open_data(path: &Path, events: usize) -> Result<DataSection> {
    let mut file = open_regular(path)
        .map(BufReader::new)
        .map_err(Error::io("open", path))?;
    let len = file
        .get_ref()
        .metadata()
        .map_err(Error::io("read", path))?
        .len();
    let (data, size) = data_section(&mut file, path, len, events)?;
    Ok(DataSection { file, data, size })
}

/// Checks the head of perf.data against the expected number of events. Returns the offset and size of the records.
fn data_section(
    file: &mut BufReader<File>,
    path: &Path,
    len: u64,
    events: usize,
) -> Result<(u64, u64)> {
    let wrong = |offset, reason| Error::Data {
        path: path.to_owned(),
        offset,
        reason,
    };
    let mut read = |bytes: &mut [u8], at: u64| {
        file.seek(SeekFrom::Start(at))
            .and_then(|_| file.read_exact(bytes))
            .map_err(Error::io("read", path))
    };
    if len < HEADER_SIZE {
        return Err(wrong(len, "the file ends within perf.data's header"));
    }
    let mut words = [[0; 8]; 8];
    read(words.as_flattened_mut(), 0)?;
    let [magic, words @ ..] = words;
    if magic != MAGIC {
        return Err(wrong(0, "not a perf.data file (no PERFILE2)"));
    }
    let [_, file_attr, attrs, attrs_size, data, data_size, _] = words.map(u64::from_le_bytes);
    let events = events as u64;
    if events > MAX_EVENTS || file_attr.checked_mul(events) != Some(attrs_size) {
        return Err(wrong(32, "not the events that session.json tells of"));
    }
    if file_attr < ATTR_SIZE || attrs.checked_add(attrs_size).is_none_or(|end| end > len) {
        return Err(wrong(24, "the events' attributes lie outside the file"));
    }
    for event in 0..events {
        let at = attrs.saturating_add(event.saturating_mul(file_attr));
        let at = at.saturating_add(SAMPLE_TYPE_AT);
        let mut sample_type = [0; 8];
        read(&mut sample_type, at)?;
        if ![SAMPLE_TYPE, OLD_SAMPLE_TYPE].contains(&u64::from_le_bytes(sample_type)) {
            return Err(wrong(
                at,
                "not a recording of varid: it samples other fields",
            ));
        }
    }
    // In a cut file, the records that are there can be read.
    if data > len || data.checked_add(data_size).is_none() {
        return Err(wrong(40, "the records lie outside the file"));
    }
    Ok((data, data_size))
}
