//! Reads the records of a session in order of time.

mod compact;
mod compressed;
mod file_records;
mod plain;
mod time_order;
mod unpacked;

use std::path::PathBuf;

use varid_model::perf::Header;

use crate::{
    data_section::open_data,
    decode::RawContent,
    error::{Error, Result},
    event::SessionEvents,
    format::kind,
    record::{RecordRef, SessionRecord},
};

pub use compact::open_chunks;
pub use unpacked::MAX_ROUND;

use compact::CompactRecords;
use compressed::CompressedRecords;
use file_records::FileRecords;
use plain::PlainRecords;
use time_order::TimeOrder;

/// The records of a session in order of time. An error ends them, after the records before it.
///
/// Holds back records that an earlier one may still precede: those of two flushes. As an iterator it allocates memory for each record.
/// [`next_ref`](Self::next_ref) allocates no memory for samples.
#[derive(Debug)]
pub struct Records {
    path: PathBuf,
    /// The content of the raw data of each event's samples.
    events: Vec<RawContent>,
    file: FileRecords,
    /// Those of the last compressed record.
    compressed: CompressedRecords,
    order: TimeOrder,
    /// The error that ended the records early.
    damage: Option<Error>,
    /// More records may come, and records that they may precede are held back.
    follows: bool,
}

/// Why a record cannot be read, and where that is.
#[derive(Debug, Clone, Copy)]
struct Damage {
    /// The offset in the file: for a compressed record, where that starts.
    at: u64,
    reason: &'static str,
}

/// A record of perf.data: where it is, as [`Damage`] says it, its header, and what follows that.
type RawRecord<'r> = (u64, Header, &'r [u8]);

/// Where the bytes of a record are.
#[derive(Debug, Clone, Copy)]
enum Source {
    /// In the file.
    File,
    /// In a compressed record.
    Compressed,
}

impl Records {
    /// Opens a perf.data with these events.
    pub(crate) fn open(path: PathBuf, events: &SessionEvents) -> Result<Self> {
        let section = open_data(&path, events.len())?;
        let plain = PlainRecords::new(section).map_err(Error::io("read", path.clone()))?;
        Ok(Self::of(path, FileRecords::PerfData(plain), events))
    }

    /// Opens a records.data with these events.
    pub(crate) fn open_compact(path: PathBuf, events: &SessionEvents) -> Result<Self> {
        let compact = CompactRecords::open(&path, events.len())?;
        Ok(Self::of(
            path,
            FileRecords::Compact(Box::new(compact)),
            events,
        ))
    }

    fn of(path: PathBuf, file: FileRecords, events: &SessionEvents) -> Self {
        Self {
            path,
            events: events.iter().map(RawContent::of).collect(),
            file,
            compressed: CompressedRecords::default(),
            order: TimeOrder::default(),
            damage: None,
            follows: false,
        }
    }

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
        let grown = self.file.grow();
        grown.map_err(Error::io("read", self.path.clone()))
    }

    /// Says that the session is no longer written. After a last [`grow`](Self::grow) the iterator ends with the last record.
    pub const fn end(&mut self) {
        self.follows = false;
    }

    /// Returns the next record, as [`Iterator::next`] does. A sample's callchains are valid until the next call.
    pub fn next_ref(&mut self) -> Option<Result<RecordRef<'_>>> {
        if !self.order.has_next()
            && let Err(error) = self.fill()
        {
            self.file.stop();
            self.compressed = CompressedRecords::default();
            self.order.release_all();
            self.damage = Some(error);
        }
        match self.order.next_ref() {
            Some(record) => Some(Ok(record)),
            None => self.damage.take().map(Err),
        }
    }

    /// Reads on until a record is ready or the records end.
    fn fill(&mut self) -> Result<()> {
        while !self.order.has_next() {
            let source = match self.compressed.unpacked.has_more() {
                true => Source::Compressed,
                false if self.file.read_ahead(&self.path)? => Source::File,
                false => break,
            };
            let taken = self.take(source);
            taken.map_err(|Damage { at, reason }| self.wrong(at, reason))?;
        }
        if !self.order.has_next() && !self.follows {
            self.order.release_all();
        }
        Ok(())
    }

    /// Takes the next record of a source.
    fn take(&mut self, source: Source) -> std::result::Result<(), Damage> {
        let (at, header, body) = match source {
            Source::File => self.file.first(),
            Source::Compressed => self.compressed.unpacked.first(),
        }?;
        let here = |reason| Damage { at, reason };
        match (header.kind, source) {
            (kind::FINISHED_ROUND, _) => {
                self.compressed.unpacked.end_round();
                self.file.end_round();
                self.order.end_round();
            }
            (kind::COMPRESSED, Source::File) => {
                let (_, _, body) = self.file.first()?;
                self.compressed.open(at, body).map_err(here)?;
            }
            (kind::COMPRESSED, Source::Compressed) => {
                return Err(here("compressed records within compressed ones"));
            }
            (kind::COMPRESSED2, _) => {
                return Err(here("records compressed by perf, not by varid"));
            }
            _ => self.order.add(at, header, body, &self.events)?,
        }
        match source {
            Source::File => self.file.skip(header),
            Source::Compressed => self.compressed.unpacked.skip(header),
        }
        Ok(())
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
