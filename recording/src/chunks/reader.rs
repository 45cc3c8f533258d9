//! Reads chunks in the order of their file. The file is not trusted.

use std::{
    fs::File,
    io::{BufReader, Read},
    path::{Path, PathBuf},
};

use super::frame::{CHUNK_HEAD, ChunkHead, FILE_HEAD, FileHead, MAX_PAYLOAD};
use crate::error::{Error, Result};

/// The file, and the position of the next chunk.
#[derive(Debug)]
pub struct Chunks {
    path: PathBuf,
    file: BufReader<File>,
    /// The offset of the next byte.
    offset: u64,
    /// The size of the file when it was opened.
    len: u64,
    payload: Vec<u8>,
}

/// A complete chunk.
#[derive(Debug)]
pub struct Chunk<'a> {
    pub kind: u8,
    /// The file offset of the payload.
    pub offset: u64,
    pub payload: &'a [u8],
}

impl Chunks {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// The file has another header, or another version.
    pub fn open(path: &Path, file: File, head: FileHead) -> Result<Self> {
        let len = file.metadata().map_err(Error::io("read", path))?.len();
        let mut chunks = Self {
            path: path.to_owned(),
            file: BufReader::new(file),
            offset: 0,
            len,
            payload: Vec::new(),
        };
        chunks.check_head(head)?;
        Ok(chunks)
    }

    /// Reads the file header, which may be incomplete.
    fn check_head(&mut self, known: FileHead) -> Result<()> {
        let mut head = [0; FILE_HEAD];
        let there = usize::try_from(self.len)
            .unwrap_or(FILE_HEAD)
            .min(FILE_HEAD);
        self.read(head.get_mut(..there).unwrap_or_default())?;
        let magic = there.min(known.magic.len());
        if head.get(..magic) != known.magic.get(..magic) {
            return Err(self.wrong(0, known.mismatch));
        }
        if there < FILE_HEAD {
            return Ok(());
        }
        let [.., v0, v1, v2, v3] = head;
        match u32::from_le_bytes([v0, v1, v2, v3]) {
            found if found == known.version => {
                self.offset = FILE_HEAD as u64;
                Ok(())
            }
            found => Err(Error::Version {
                path: self.path.clone(),
                found,
                known: known.version,
            }),
        }
    }

    /// Returns the next chunk, or None at the end of the file.
    ///
    /// # Errors
    ///
    /// The rest of the file is not a complete chunk. Nothing can be read after that.
    pub fn next_chunk(&mut self) -> Result<Option<Chunk<'_>>> {
        let at = self.offset;
        let rest = self.len.saturating_sub(at);
        if at == 0 {
            return Err(self.cut("the file ends within its head"));
        }
        if rest == 0 {
            return Ok(None);
        }
        let Some(rest) = rest.checked_sub(CHUNK_HEAD as u64) else {
            return Err(self.wrong(at, "the file ends within the head of a chunk"));
        };
        let mut head = [0; CHUNK_HEAD];
        self.read(&mut head)?;
        let head = ChunkHead::from_bytes(head);
        let length = usize::try_from(head.length).unwrap_or(usize::MAX);
        if length > MAX_PAYLOAD {
            return Err(self.wrong(at, "a chunk of more than 1 MB, or a damaged one"));
        }
        if u64::from(head.length) > rest {
            return Err(self.wrong(at, "the file ends within a chunk, or the chunk is damaged"));
        }
        let mut payload = std::mem::take(&mut self.payload);
        payload.resize(length, 0);
        let read = self.read(&mut payload);
        self.payload = payload;
        read?;
        if !head.is_of(&self.payload) {
            return Err(self.wrong(at, "a damaged chunk: its checksum is another one"));
        }
        let offset = at.saturating_add(CHUNK_HEAD as u64);
        self.offset = offset.saturating_add(u64::from(head.length));
        Ok(Some(Chunk {
            kind: head.kind,
            offset,
            payload: &self.payload,
        }))
    }

    fn read(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.file
            .read_exact(bytes)
            .map_err(Error::io("read", &*self.path))
    }

    /// Makes the error for a truncated file.
    pub fn cut(&self, reason: &'static str) -> Error {
        self.wrong(self.len, reason)
    }

    /// Makes the error for an offset in the file.
    pub fn wrong(&self, offset: u64, reason: &'static str) -> Error {
        Error::Data {
            path: self.path.clone(),
            offset,
            reason,
        }
    }
}
