//! Compresses the records of a session that is no longer being recorded, or makes them plain again.
//!
//! The new perf.data replaces the old one by rename when it is whole, so that a kill leaves the old one.

use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write},
    os::unix::fs::{FileExt, MetadataExt, fchown},
    path::{Path, PathBuf},
};

use varid_model::perf::Header;

use crate::{
    PERF_DATA, SessionReader,
    compression::{self, Expansion, MAX_CHUNK, RecordCompressor},
    data_section::open_data,
    error::{Error, Result},
    features::{self, Section},
    format::{DATA_SIZE_AT, FEATURE_BYTES, FEATURES_AT, RECORD_HEADER_SIZE, kind},
    writer::folder::{Folder, PERF_DATA_NEW},
};

/// The most bytes of a feature that is copied. Command lines and build-ids take a few hundred.
const MAX_FEATURE: u64 = 16 << 20;

/// The sizes of perf.data, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rewritten {
    /// The size before.
    pub before: u64,
    /// The size now.
    pub after: u64,
}

/// Compresses the records of a session that is not being recorded, or makes them plain again.
///
/// # Errors
///
/// The session is being recorded, is damaged, or cannot be written. It then stays as it was.
pub fn rewrite(dir: &Path, compress: bool) -> Result<Rewritten> {
    let session = SessionReader::open(dir)?;
    let folder = Folder::take_existing(dir)?;
    let path = dir.join(PERF_DATA);
    let opened = open_data(&path, session.manifest().events.len())?;
    let old = opened.file.get_ref().metadata();
    let old = old.map_err(Error::io("read", path.clone()))?;
    folder.remove(PERF_DATA_NEW)?;
    let new = folder.create_new(PERF_DATA_NEW)?;
    let written = Rewriter {
        path,
        new_path: dir.join(PERF_DATA_NEW),
        input: opened.file,
        output: BufWriter::new(new),
        data: opened.data,
        end: opened.data.saturating_add(opened.size),
        len: old.len(),
        compressor: compress.then(RecordCompressor::new),
    }
    .run(&old);
    match written {
        Ok(after) => {
            folder.rename(PERF_DATA_NEW, PERF_DATA)?;
            let before = old.len();
            Ok(Rewritten { before, after })
        }
        Err(error) => {
            folder.remove(PERF_DATA_NEW)?;
            Err(error)
        }
    }
}

/// Writes a new perf.data from an old one.
struct Rewriter {
    path: PathBuf,
    new_path: PathBuf,
    input: BufReader<File>,
    output: BufWriter<File>,
    /// The offsets at which the records start and end.
    data: u64,
    end: u64,
    len: u64,
    /// Compresses the new records; `None` writes them plain.
    compressor: Option<RecordCompressor>,
}

impl Rewriter {
    fn run(mut self, old: &std::fs::Metadata) -> Result<u64> {
        if self.end > self.len {
            return Err(self.wrong(self.len, "the file ends before its records do"));
        }
        let head = self.read_at(0, self.data)?;
        let mut features = self.features(&head)?;
        self.write(&head)?;
        let size = self.records()?;
        if self.compressor.is_some() {
            features.push(features::compression());
        }
        let at = self.data.saturating_add(size);
        let (sections, bits) = features::laid_out(features, at);
        self.write(&sections)?;
        let wrote = Error::io("write", self.new_path.clone());
        let file = self
            .output
            .into_inner()
            .map_err(io::IntoInnerError::into_error);
        let finish = |file: File| {
            file.write_all_at(&size.to_le_bytes(), DATA_SIZE_AT)?;
            file.write_all_at(&bits, FEATURES_AT)?;
            let new = file.metadata()?;
            if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
                fchown(&file, Some(old.uid()), Some(old.gid()))?;
            }
            file.sync_all()?;
            Ok(new.len())
        };
        file.and_then(finish).map_err(wrote)
    }

    /// Writes the records and returns their size in bytes.
    fn records(&mut self) -> Result<u64> {
        let seek = self.input.seek(SeekFrom::Start(self.data));
        seek.map_err(Error::io("read", self.path.clone()))?;
        let (mut at, mut written) = (self.data, 0);
        // These are plain records that are not written yet.
        let mut batch = Vec::new();
        let (mut record, mut chunk) = (Vec::new(), Vec::new());
        let mut expansion = Expansion::default();
        while at < self.end {
            let left = self.end.saturating_sub(at);
            let header = self.read_record(at, left, &mut record)?;
            let body = record.get(RECORD_HEADER_SIZE..).unwrap_or_default();
            match header.kind {
                kind::COMPRESSED => {
                    let opened = compression::decompress(body, &mut chunk);
                    let opened = opened.and_then(|()| expansion.add(body, &chunk));
                    opened.map_err(|reason| self.wrong(at, reason))?;
                    batch.extend_from_slice(&chunk);
                }
                kind::FINISHED_ROUND => {
                    self.flush(&mut batch, &mut written)?;
                    self.write(&record)?;
                    written = written.saturating_add(record.len() as u64);
                }
                _ => batch.extend_from_slice(&record),
            }
            if batch.len() >= MAX_CHUNK {
                self.flush(&mut batch, &mut written)?;
            }
            at = at.saturating_add(u64::from(header.size));
        }
        self.flush(&mut batch, &mut written)?;
        Ok(written)
    }

    fn flush(&mut self, batch: &mut Vec<u8>, written: &mut u64) -> Result<()> {
        let mut bytes = Vec::new();
        let bytes = match &mut self.compressor {
            Some(compressor) => {
                compressor.compress(&mut bytes, batch);
                &bytes
            }
            None => &*batch,
        };
        self.write(bytes)?;
        *written = written.saturating_add(bytes.len() as u64);
        batch.clear();
        Ok(())
    }

    /// Reads a whole record, header included.
    fn read_record(&mut self, at: u64, left: u64, record: &mut Vec<u8>) -> Result<Header> {
        let mut bytes = [0; RECORD_HEADER_SIZE];
        if left < bytes.len() as u64 {
            return Err(self.wrong(at, "the data ends within a record's header"));
        }
        let read = self.input.read_exact(&mut bytes);
        read.map_err(Error::io("read", self.path.clone()))?;
        let header = Header::from_bytes(bytes);
        let size = usize::from(header.size);
        if size < RECORD_HEADER_SIZE || size as u64 > left {
            return Err(self.wrong(at, "a record of an impossible size"));
        }
        record.clear();
        record.extend(bytes);
        record.resize(size, 0);
        let body = record.get_mut(RECORD_HEADER_SIZE..).unwrap_or_default();
        let read = self.input.read_exact(body);
        read.map_err(Error::io("read", self.path.clone()))?;
        Ok(header)
    }

    /// Returns the features that stay: all but the one of compression.
    fn features(&mut self, head: &[u8]) -> Result<Vec<Section>> {
        let at = usize::try_from(FEATURES_AT).unwrap_or(usize::MAX);
        let bits = head.get(at..at.saturating_add(FEATURE_BYTES));
        let bits = bits.unwrap_or_default();
        let is_set = |bit: u32| {
            let byte = usize::try_from(bit / 8)
                .ok()
                .and_then(|byte| bits.get(byte));
            byte.is_some_and(|byte| byte & 1u8.checked_shl(bit % 8).unwrap_or(0) != 0)
        };
        let set = (0..(FEATURE_BYTES as u32).saturating_mul(8)).filter(|bit| is_set(*bit));
        let (compressed, _) = features::compression();
        let mut sections = Vec::new();
        for (bit, place) in set.zip((self.end..).step_by(16)) {
            let entry = self.read_at(place, 16)?;
            let word = |at: usize| {
                let word = entry.get(at..).and_then(<[u8]>::first_chunk);
                word.map_or(0, |word| u64::from_le_bytes(*word))
            };
            let (offset, size) = (word(0), word(8));
            if bit > 63 || size > MAX_FEATURE {
                return Err(self.wrong(place, "a feature that varid does not write"));
            }
            if bit != compressed {
                sections.push((bit, self.read_at(offset, size)?));
            }
        }
        Ok(sections)
    }

    fn read_at(&self, at: u64, size: u64) -> Result<Vec<u8>> {
        if at.checked_add(size).is_none_or(|end| end > self.len) {
            return Err(self.wrong(at, "it lies outside the file"));
        }
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
        let read = self.input.get_ref().read_exact_at(&mut bytes, at);
        read.map_err(Error::io("read", self.path.clone()))?;
        Ok(bytes)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let wrote = self.output.write_all(bytes);
        wrote.map_err(Error::io("write", self.new_path.clone()))
    }

    fn wrong(&self, offset: u64, reason: &'static str) -> Error {
        Error::Data {
            path: self.path.clone(),
            offset,
            reason,
        }
    }
}
