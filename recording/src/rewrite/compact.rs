//! Reads and writes records.data as a whole.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use super::{Source, Target};
use crate::{
    chunks::{Chunks, put_chunk, put_number},
    compact::{ChunkKind, HEAD, MAX_RECORDS, Packer, Unpacker, feature, put_feature},
    error::{Error, Result},
    features::Section,
    format::kind,
    plain_records::{CUT, each_record, kind_of},
    records::{MAX_ROUND, open_chunks},
};

/// The most bytes of all features. Those of a recording with tracepoints take some hundred thousand.
const MAX_FEATURES: usize = 64 << 20;

/// A records.data that is read.
pub struct CompactSource {
    chunks: Chunks,
    head: Vec<u8>,
    features: Vec<Section>,
}

impl CompactSource {
    pub fn open(path: &Path, events: usize) -> Result<Self> {
        let (chunks, head) = open_chunks(path, events)?;
        Ok(Self {
            chunks,
            head,
            features: Vec::new(),
        })
    }
}

impl Source for CompactSource {
    fn head(&mut self) -> Result<Vec<u8>> {
        Ok(std::mem::take(&mut self.head))
    }

    fn records(&mut self, target: &mut dyn Target) -> Result<()> {
        let (mut unpacker, mut records) = (Unpacker::new(), Vec::new());
        let mut size = 0usize;
        loop {
            let Some(chunk) = self.chunks.next_chunk()? else {
                return Err(self.chunks.cut("the file ends before its records do"));
            };
            let at = chunk.offset;
            match ChunkKind::of(chunk.kind) {
                Some(ChunkKind::Records) => {
                    let unpacked = unpacker.unpack(chunk.payload, &mut records);
                    unpacked.map_err(|reason| self.chunks.wrong(at, reason))?;
                    let cut = || self.chunks.wrong(at, CUT);
                    each_record(&records, cut, |record| target.record(record))?;
                }
                Some(ChunkKind::Feature) => {
                    size = size.saturating_add(chunk.payload.len());
                    let part = feature(chunk.payload).map(|(bit, part)| (bit, part.to_vec()));
                    let part = part.and_then(|part| match size > MAX_FEATURES {
                        true => Err("more features than varid writes"),
                        false => Ok(part),
                    });
                    let (bit, part) = part.map_err(|reason| self.chunks.wrong(at, reason))?;
                    match self.features.last_mut() {
                        Some((last, content)) if *last == bit => content.extend(part),
                        _ => self.features.push((bit, part)),
                    }
                }
                Some(ChunkKind::End) => {
                    let ended = unpacker.end(chunk.payload);
                    return ended.map_err(|reason| self.chunks.wrong(at, reason));
                }
                Some(ChunkKind::Head) | None => {}
            }
        }
    }

    fn features(&mut self, _head: &[u8]) -> Result<Vec<Section>> {
        Ok(std::mem::take(&mut self.features))
    }
}

/// A records.data that is written.
pub struct CompactTarget {
    path: PathBuf,
    output: BufWriter<File>,
    packer: Packer,
    /// Records that are not written yet.
    batch: Vec<u8>,
    /// The bytes of all records.
    size: u64,
    /// The bytes of the records since the last end of a round.
    in_round: usize,
}

impl CompactTarget {
    pub fn new(path: PathBuf, file: File) -> Self {
        Self {
            path,
            output: BufWriter::new(file),
            packer: Packer::new(),
            batch: Vec::new(),
            size: 0,
            in_round: 0,
        }
    }

    fn flush(&mut self) -> Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let packed = self.packer.pack(&self.batch);
        let payload = packed.map_err(|reason| self.refused(reason))?;
        self.batch.clear();
        self.chunk(ChunkKind::Records, &payload)
    }

    fn chunk(&mut self, kind: ChunkKind, payload: &[u8]) -> Result<()> {
        let mut bytes = Vec::new();
        put_chunk(&mut bytes, kind as u8, payload);
        self.write(&bytes)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let wrote = self.output.write_all(bytes);
        wrote.map_err(Error::io("write", self.path.clone()))
    }

    fn refused(&self, reason: &'static str) -> Error {
        Error::Data {
            path: self.path.clone(),
            offset: self.size,
            reason,
        }
    }
}

impl Target for CompactTarget {
    fn head(&mut self, head: &[u8]) -> Result<()> {
        self.write(&HEAD.to_bytes())?;
        self.chunk(ChunkKind::Head, head)
    }

    fn record(&mut self, record: &[u8]) -> Result<()> {
        self.in_round = match kind_of(record) {
            kind::FINISHED_ROUND => 0,
            _ => self.in_round.saturating_add(record.len()),
        };
        // A reader counts by chunks.
        if self.in_round.saturating_add(MAX_RECORDS.saturating_mul(2)) > MAX_ROUND {
            return Err(self.refused("more records in a round than a compact recording may have"));
        }
        self.size = self.size.saturating_add(record.len() as u64);
        self.batch.extend_from_slice(record);
        match self.batch.len() >= MAX_RECORDS {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn finish(mut self: Box<Self>, features: Vec<Section>) -> Result<File> {
        self.flush()?;
        for (bit, content) in features {
            let mut bytes = Vec::new();
            put_feature(&mut bytes, bit, &content);
            self.write(&bytes)?;
        }
        let mut payload = Vec::new();
        put_number(&mut payload, self.size);
        self.chunk(ChunkKind::End, &payload)?;
        let file = self.output.into_inner();
        let file = file.map_err(std::io::IntoInnerError::into_error);
        file.map_err(Error::io("write", self.path))
    }
}
