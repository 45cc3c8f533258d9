//! The chunks of a recording, and their records.

use std::io::{self, Read, Seek, SeekFrom};

use super::{
    clock::Clock,
    constants::Constants,
    cursor::{Cursor, Integers},
    event::{Context, Sampled},
    metadata::{ClassId, Metadata},
};

const MAGIC: [u8; 4] = *b"FLR\0";
/// Size of a chunk's header.
const HEADER: usize = 68;
/// The types of records that describe others.
const METADATA: ClassId = 0;
const CONSTANTS: ClassId = 1;
/// The most bytes of a record that are read: those of a JDK have at most some MB.
const MAX_RECORD: u64 = 64 << 20;
/// In the header's features: integers are compressed.
const COMPRESSED: i32 = 1;

/// Returns true if a file with these first bytes is a recording.
pub(crate) fn is_recording(start: &[u8]) -> bool {
    start.starts_with(&MAGIC)
}

/// A problem of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Damage {
    /// Offset in the file.
    pub(crate) offset: u64,
    pub(crate) reason: &'static str,
}

/// Why reading stops: the file cannot be read, or it is damaged.
#[derive(Debug)]
pub(crate) enum Stop {
    Io(io::Error),
    Damage(Damage),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A chunk.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// Offset of its header in the file, and of what follows the chunk.
    start: u64,
    end: u64,
    integers: Integers,
    clock: Clock,
    pub(crate) metadata: Metadata,
    pub(crate) constants: Constants,
    pub(crate) events: Sampled,
    /// The first problem. What could be read is there.
    pub(crate) damage: Option<Damage>,
}

/// Reads the chunks of a file.
pub(crate) struct Chunks<R> {
    file: R,
    len: u64,
    /// Offset of the next chunk.
    next: u64,
    record: Vec<u8>,
}

/// A record of a chunk.
struct Record<'a> {
    kind: ClassId,
    /// What follows its type.
    body: Cursor<'a>,
    /// Its offset in the file.
    offset: u64,
}

/// The position of a record.
struct RecordHead {
    kind: ClassId,
    /// Size of what follows its type.
    body: u64,
    /// Offset behind it.
    end: u64,
}

impl<R: Read + Seek> Chunks<R> {
    pub(crate) const fn new(file: R, len: u64) -> Self {
        Self {
            file,
            len,
            next: 0,
            record: Vec::new(),
        }
    }

    /// Returns the next chunk. None at the end of the file. After an error the chunk is skipped; without a valid header nothing follows it.
    pub(crate) fn next(&mut self) -> Result<Option<Chunk>, Stop> {
        let start = self.next;
        if start >= self.len {
            return Ok(None);
        }
        self.next = self.len;
        let (mut chunk, metadata) = self.header(start)?;
        self.next = chunk.end;
        chunk.metadata = self.metadata(&chunk, metadata)?;
        let mut constants = Constants::default();
        let mut malformed = None;
        let are_constants = |kind| kind == CONSTANTS;
        let walked = self.records(&chunk, are_constants, |record| {
            if !constants.add(record.body, &chunk.metadata) {
                malformed.get_or_insert(Damage {
                    offset: record.offset,
                    reason: "constants are malformed",
                });
            }
        })?;
        chunk.constants = constants;
        chunk.damage = chunk.damage.or(walked).or(malformed);
        let mut events = Sampled::default();
        let are_events = |kind| kind != METADATA && kind != CONSTANTS;
        let context = Context {
            metadata: &chunk.metadata,
            constants: &chunk.constants,
            clock: chunk.clock,
        };
        self.records(&chunk, are_events, |record| {
            events.add(record.kind, record.body, context);
        })?;
        events.sort();
        chunk.events = events;
        Ok(Some(chunk))
    }

    /// Reads the header at an offset. Returns the chunk without contents, and the offset of its metadata.
    fn header(&mut self, start: u64) -> Result<(Chunk, u64), Stop> {
        let damage = |reason| {
            let offset = start;
            Err(Stop::Damage(Damage { offset, reason }))
        };
        self.file.seek(SeekFrom::Start(start))?;
        let mut bytes = [0; HEADER];
        if self.len.saturating_sub(start) < HEADER as u64 {
            return damage("the file ends within the header of a chunk");
        }
        self.file.read_exact(&mut bytes)?;
        let mut cursor = Cursor::new(&bytes, Integers::Fixed);
        let magic = cursor.bytes(MAGIC.len());
        let mut numbers = || {
            let version = cursor.short()?;
            cursor.short()?;
            let mut longs = [0; 7];
            for long in &mut longs {
                *long = cursor.long()?;
            }
            Some((version, longs, cursor.int()?))
        };
        let (Some(bytes), Some((version, longs, features))) = (magic, numbers()) else {
            return damage("the file ends within the header of a chunk");
        };
        if bytes != MAGIC {
            return damage("no chunk begins where the one before ends");
        }
        if !(1..=2).contains(&version) {
            return damage(
                "it has another version of the format: versions 1 and 2 are read, of JDK 8u262 and from JDK 9 on",
            );
        }
        let [
            size,
            _,
            metadata,
            start_ns,
            _,
            start_ticks,
            ticks_per_second,
        ] = longs;
        if ticks_per_second <= 0 {
            return damage("the clock of a chunk has no frequency");
        }
        let offset = |by: i64| start.checked_add(u64::try_from(by).ok()?);
        let end = offset(size).filter(|end| *end <= self.len && size >= HEADER as i64);
        let damage = end.is_none().then_some(Damage {
            offset: start,
            reason: "a chunk is not finished: its recorder was killed, or the file is cut",
        });
        let chunk = Chunk {
            start,
            end: end.unwrap_or(self.len),
            integers: match features & COMPRESSED {
                0 => Integers::Fixed,
                _ => Integers::Compressed,
            },
            clock: Clock {
                start_ns,
                start_ticks,
                ticks_per_second,
            },
            metadata: Metadata::default(),
            constants: Constants::default(),
            events: Sampled::default(),
            damage,
        };
        Ok((chunk, offset(metadata).unwrap_or(u64::MAX)))
    }

    /// Reads the metadata of a chunk, at this offset.
    fn metadata(&mut self, chunk: &Chunk, offset: u64) -> Result<Metadata, Stop> {
        let damage = |reason| Stop::Damage(Damage { offset, reason });
        let first = chunk.start.saturating_add(HEADER as u64);
        if !(first..chunk.end).contains(&offset) {
            let offset = chunk.start;
            let reason = "a chunk does not have its metadata: nothing else in it can be read";
            return Err(Stop::Damage(Damage { offset, reason }));
        }
        self.file.seek(SeekFrom::Start(offset))?;
        let head = self.head(chunk, offset)?;
        let head = head.filter(|head| head.kind == METADATA);
        let head = head.ok_or_else(|| damage("no metadata are where the chunk has them"))?;
        let body = self.body(chunk, &head)?;
        Metadata::read(body).ok_or_else(|| damage("the metadata are malformed"))
    }

    /// Calls a function with the records of a chunk that are of these types. Returns what is wrong with the chunk if it cannot be read to its
    /// end.
    fn records(
        &mut self,
        chunk: &Chunk,
        is_read: impl Fn(ClassId) -> bool,
        mut visit: impl FnMut(Record<'_>),
    ) -> io::Result<Option<Damage>> {
        let mut at = chunk.start.saturating_add(HEADER as u64);
        self.file.seek(SeekFrom::Start(at))?;
        while at < chunk.end {
            let Some(head) = self.head(chunk, at)? else {
                return Ok(Some(Damage {
                    offset: at,
                    reason: "a record is larger than what is left of its chunk, or has no size",
                }));
            };
            match is_read(head.kind) {
                true => {
                    let body = self.body(chunk, &head)?;
                    visit(Record {
                        kind: head.kind,
                        body,
                        offset: at,
                    });
                }
                false => self.skip(head.body)?,
            }
            at = head.end;
        }
        Ok(None)
    }

    /// Reads the size and the type of the record at `at`, where the file is. None if it does not fit into the chunk.
    fn head(&mut self, chunk: &Chunk, at: u64) -> io::Result<Option<RecordHead>> {
        let left = chunk.end.saturating_sub(at);
        let Some((size, of_size)) = self.integer(chunk, 4, left)? else {
            return Ok(None);
        };
        let left = left.saturating_sub(of_size);
        let Some((kind, of_kind)) = self.integer(chunk, 8, left)? else {
            return Ok(None);
        };
        let end = u64::try_from(size)
            .ok()
            .and_then(|size| at.checked_add(size));
        let body = at.saturating_add(of_size).saturating_add(of_kind);
        Ok(end
            .filter(|end| (body..=chunk.end).contains(end))
            .map(|end| RecordHead {
                kind,
                body: end.saturating_sub(body),
                end,
            }))
    }

    /// Reads an integer of at most `left` bytes, and how many it has.
    fn integer(&mut self, chunk: &Chunk, size: u64, left: u64) -> io::Result<Option<(i64, u64)>> {
        let most = match chunk.integers {
            Integers::Compressed => 9,
            Integers::Fixed => size,
        };
        let mut bytes = [0; 9];
        let mut read = 0u64;
        for byte in &mut bytes {
            if read == most.min(left) {
                break;
            }
            self.file.read_exact(std::slice::from_mut(byte))?;
            read = read.saturating_add(1);
            if chunk.integers == Integers::Compressed && *byte & 0x80 == 0 {
                break;
            }
        }
        let bytes = usize::try_from(read)
            .ok()
            .and_then(|read| bytes.get(..read));
        let mut cursor = Cursor::new(bytes.unwrap_or_default(), chunk.integers);
        let value = match size {
            4 => cursor.int().map(i64::from),
            _ => cursor.long(),
        };
        Ok(value.map(|value| (value, read)))
    }

    fn body(&mut self, chunk: &Chunk, head: &RecordHead) -> io::Result<Cursor<'_>> {
        self.record.clear();
        let read = head.body.min(MAX_RECORD);
        let mut body = Read::by_ref(&mut self.file).take(read);
        body.read_to_end(&mut self.record)?;
        self.skip(head.body.saturating_sub(read))?;
        Ok(Cursor::new(&self.record, chunk.integers))
    }

    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        let by = i64::try_from(bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
        self.file.seek_relative(by)
    }
}
