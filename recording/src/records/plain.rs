//! The records of perf.data as they are in the file.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::FileExt,
};

use varid_model::perf::Header;

use super::{Damage, RawRecord};
use crate::{
    data_section::DataSection,
    format::{DATA_SIZE_AT, RECORD_HEADER_SIZE},
};

/// The records of the file, read a block at a time.
#[derive(Debug)]
pub struct PlainRecords {
    file: File,
    /// The offset of the first record.
    start: u64,
    /// The offset of the next record.
    next: u64,
    /// The offset at which the records end, or would end if the file were not cut.
    end: u64,
    /// The size of the file in bytes.
    len: u64,
    /// What was read last of the file.
    block: Vec<u8>,
    /// The bytes of the block before the next record.
    taken: usize,
}

/// The bytes that are read at once.
const BLOCK: usize = 256 << 10;
/// The largest record has a byte less.
const MAX_RECORD: usize = 1 << 16;

impl PlainRecords {
    /// Begins with the first record.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn new(section: DataSection) -> io::Result<Self> {
        let DataSection { file, data, size } = section;
        let mut file = file.into_inner();
        file.seek(SeekFrom::Start(data))?;
        Ok(Self {
            start: data,
            next: data,
            end: data.saturating_add(size),
            len: file.metadata()?.len(),
            file,
            block: Vec::with_capacity(BLOCK),
            taken: 0,
        })
    }

    /// Looks up how far the records reach now.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn grow(&mut self) -> io::Result<()> {
        let mut size = [0; 8];
        let len = self.file.metadata()?.len();
        self.file.read_exact_at(&mut size, DATA_SIZE_AT)?;
        self.len = len;
        let end = self.start.saturating_add(u64::from_le_bytes(size));
        self.end = self.end.max(end);
        Ok(())
    }

    /// Ends the records.
    pub const fn stop(&mut self) {
        self.next = self.end;
    }

    /// Returns true if the records do not end here.
    pub const fn has_more(&self) -> bool {
        self.next < self.end
    }

    /// Has the next record in memory, as far as the file has it.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn read_ahead(&mut self) -> io::Result<()> {
        let left = usize::try_from(self.left()).unwrap_or(usize::MAX);
        let needed = left.min(MAX_RECORD);
        let rest = self.rest().len();
        if rest >= needed {
            return Ok(());
        }
        self.block.drain(..self.taken);
        self.taken = 0;
        let more = left.min(BLOCK).saturating_sub(rest) as u64;
        (&self.file).take(more).read_to_end(&mut self.block)?;
        match self.block.len() < needed {
            true => Err(io::ErrorKind::UnexpectedEof.into()),
            false => Ok(()),
        }
    }

    /// Returns the next record, after [`read_ahead`](Self::read_ahead).
    pub fn first(&self) -> Result<RawRecord<'_>, Damage> {
        let wrong = |reason| Damage {
            at: self.next,
            reason,
        };
        let cut = |reason| match self.len < self.end {
            true => wrong("the file ends before its records do"),
            false => wrong(reason),
        };
        let rest = self.rest();
        let header = rest.first_chunk();
        let header = header.ok_or_else(|| cut("the data ends within a record's header"))?;
        let header = Header::from_bytes(*header);
        let size = usize::from(header.size);
        if size < RECORD_HEADER_SIZE {
            return Err(wrong("a record smaller than its header"));
        }
        let body = rest.get(RECORD_HEADER_SIZE..size);
        let body = body.ok_or_else(|| cut("the data ends within a record"))?;
        Ok((self.next, header, body))
    }

    /// Takes the next record.
    pub fn skip(&mut self, header: Header) {
        self.taken = self.taken.saturating_add(usize::from(header.size));
        self.next = self.next.saturating_add(u64::from(header.size));
    }

    fn rest(&self) -> &[u8] {
        self.block.get(self.taken..).unwrap_or_default()
    }

    /// The bytes from the next record to the end of the records, or of the file.
    const fn left(&self) -> u64 {
        let end = if self.len < self.end {
            self.len
        } else {
            self.end
        };
        end.saturating_sub(self.next)
    }
}
