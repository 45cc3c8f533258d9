//! The records of records.data.

use std::{fs::File, io::Cursor, path::Path};

use super::unpacked::Unpacked;
use crate::{
    chunks::Chunks,
    compact::{ChunkKind, HEAD, Unpacker},
    data_section::data_section,
    error::Result,
    regular::open_regular,
};

/// The records of the file, decoded a chunk at a time.
#[derive(Debug)]
pub struct CompactRecords {
    chunks: Chunks,
    unpacker: Unpacker,
    pub unpacked: Unpacked,
    /// The last chunk was read, or nothing more is to be read.
    ended: bool,
}

impl CompactRecords {
    /// Opens a records.data of this many events.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, is another one, or its head is not one that varid writes.
    pub fn open(path: &Path, events: usize) -> Result<Self> {
        let (chunks, _) = open_chunks(path, events)?;
        Ok(Self {
            chunks,
            unpacker: Unpacker::new(),
            unpacked: Unpacked::default(),
            ended: false,
        })
    }

    /// Decodes chunks until a record is in memory. Returns false if there is none left.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is cut or is damaged.
    pub fn read_ahead(&mut self) -> Result<bool> {
        while !self.unpacked.has_more() && !self.ended {
            let Some(chunk) = self.chunks.next_chunk()? else {
                return Err(self.chunks.cut("the file ends before its records do"));
            };
            let at = chunk.offset;
            match ChunkKind::of(chunk.kind) {
                Some(ChunkKind::Records) => {
                    let unpack = |out: &mut Vec<u8>| self.unpacker.unpack(chunk.payload, out);
                    let unpacked = self.unpacked.replace(at, unpack);
                    unpacked.map_err(|reason| self.chunks.wrong(at, reason))?;
                }
                Some(ChunkKind::End) => {
                    let ended = self.unpacker.end(chunk.payload);
                    ended.map_err(|reason| self.chunks.wrong(at, reason))?;
                    self.ended = true;
                }
                Some(ChunkKind::Head | ChunkKind::Feature) | None => {}
            }
        }
        Ok(self.unpacked.has_more())
    }

    /// Ends the records.
    pub fn stop(&mut self) {
        self.ended = true;
        self.unpacked = Unpacked::default();
    }
}

/// Opens a records.data of this many events, and returns the head of its perf.data.
pub fn open_chunks(path: &Path, events: usize) -> Result<(Chunks, Vec<u8>)> {
    let file: File = open_regular(path).map_err(crate::Error::io("open", path))?;
    let mut chunks = Chunks::open(path, file, HEAD)?;
    let head = match chunks.next_chunk()? {
        Some(chunk) if chunk.kind == ChunkKind::Head as u8 => chunk.payload.to_vec(),
        _ => return Err(chunks.wrong(0, "the file does not begin with the head of a perf.data")),
    };
    let len = head.len() as u64;
    let (data, _) = data_section(&mut Cursor::new(&head), path, len, events)?;
    match data == len {
        true => Ok((chunks, head)),
        false => Err(chunks.wrong(40, "the records do not begin where their head ends")),
    }
}
