//! Reads and writes perf.data as a whole: its head, its records in their order, its features.

use std::{
    fs::File,
    io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write},
    os::unix::fs::FileExt,
    path::PathBuf,
};

use varid_model::perf::Header;

use super::{Source, Target};
use crate::{
    SessionReader,
    compression::{self, Expansion, MAX_CHUNK, RecordCompressor},
    data_section::{DataSection, open_data},
    error::{Error, Result},
    features::{self, Section},
    format::{DATA_SIZE_AT, FEATURE_BYTES, FEATURES_AT, RECORD_HEADER_SIZE, kind},
    plain_records::{CUT, each_record, kind_of},
};

/// The most bytes of a feature that is copied. Command lines and build-ids take a few hundred.
const MAX_FEATURE: u64 = 16 << 20;

/// A perf.data that is read. Its records may be compressed.
pub struct PerfDataSource {
    path: PathBuf,
    input: BufReader<File>,
    /// The offsets at which the records start and end.
    data: u64,
    end: u64,
    len: u64,
}

impl PerfDataSource {
    pub fn open(path: PathBuf, session: &SessionReader) -> Result<Self> {
        let opened = open_data(&path, session.manifest().events.len())?;
        let DataSection { file, data, size } = opened;
        let read = file.get_ref().metadata();
        let len = read.map_err(Error::io("read", path.clone()))?.len();
        let source = Self {
            path,
            input: file,
            data,
            end: data.saturating_add(size),
            len,
        };
        match source.end > len {
            true => Err(source.wrong(len, "the file ends before its records do")),
            false => Ok(source),
        }
    }

    /// Reads a whole record, header included.
    fn read_record(&mut self, at: u64, left: u64, record: &mut Vec<u8>) -> Result<()> {
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
        read.map_err(Error::io("read", self.path.clone()))
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

    fn wrong(&self, offset: u64, reason: &'static str) -> Error {
        Error::Data {
            path: self.path.clone(),
            offset,
            reason,
        }
    }
}

impl Source for PerfDataSource {
    fn head(&mut self) -> Result<Vec<u8>> {
        self.read_at(0, self.data)
    }

    fn records(&mut self, target: &mut dyn Target) -> Result<()> {
        let seek = self.input.seek(SeekFrom::Start(self.data));
        seek.map_err(Error::io("read", self.path.clone()))?;
        let mut at = self.data;
        let (mut record, mut chunk) = (Vec::new(), Vec::new());
        let mut expansion = Expansion::default();
        while at < self.end {
            let left = self.end.saturating_sub(at);
            self.read_record(at, left, &mut record)?;
            if kind_of(&record) == kind::COMPRESSED {
                let body = record.get(RECORD_HEADER_SIZE..).unwrap_or_default();
                let opened = compression::decompress(body, &mut chunk);
                let opened = opened.and_then(|()| expansion.add(body, &chunk));
                opened.map_err(|reason| self.wrong(at, reason))?;
                each_record(
                    &chunk,
                    || self.wrong(at, CUT),
                    |record| target.record(record),
                )?;
            } else {
                target.record(&record)?;
            }
            at = at.saturating_add(record.len() as u64);
        }
        Ok(())
    }

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
}

/// A perf.data that is written.
pub struct PerfDataTarget {
    path: PathBuf,
    output: BufWriter<File>,
    /// Plain records that are not written yet.
    batch: Vec<u8>,
    /// The bytes of all records that are written.
    size: u64,
    /// The bytes before the records.
    head: u64,
    /// Compresses the records; `None` writes them plain.
    compressor: Option<RecordCompressor>,
}

impl PerfDataTarget {
    pub fn new(path: PathBuf, file: File, compressor: Option<RecordCompressor>) -> Self {
        Self {
            path,
            output: BufWriter::new(file),
            batch: Vec::new(),
            size: 0,
            head: 0,
            compressor,
        }
    }

    fn flush(&mut self) -> Result<()> {
        let mut batch = std::mem::take(&mut self.batch);
        match &mut self.compressor {
            Some(compressor) => {
                let mut bytes = Vec::new();
                compressor.compress(&mut bytes, &batch);
                self.write_records(&bytes)?;
            }
            None => self.write_records(&batch)?,
        }
        batch.clear();
        self.batch = batch;
        Ok(())
    }

    fn write_records(&mut self, bytes: &[u8]) -> Result<()> {
        self.size = self.size.saturating_add(bytes.len() as u64);
        self.write(bytes)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let wrote = self.output.write_all(bytes);
        wrote.map_err(Error::io("write", self.path.clone()))
    }
}

impl Target for PerfDataTarget {
    fn head(&mut self, head: &[u8]) -> Result<()> {
        self.head = head.len() as u64;
        self.write(head)
    }

    fn record(&mut self, record: &[u8]) -> Result<()> {
        if kind_of(record) == kind::FINISHED_ROUND {
            self.flush()?;
            return self.write_records(record);
        }
        self.batch.extend_from_slice(record);
        match self.batch.len() >= MAX_CHUNK {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn finish(mut self: Box<Self>, mut features: Vec<Section>) -> Result<File> {
        self.flush()?;
        if self.compressor.is_some() {
            features.push(features::compression());
        }
        let at = self.head.saturating_add(self.size);
        let (sections, bits) = features::laid_out(features, at);
        self.write(&sections)?;
        let path = self.path;
        let file = self
            .output
            .into_inner()
            .map_err(std::io::IntoInnerError::into_error);
        let finish = |file: File| {
            file.write_all_at(&self.size.to_le_bytes(), DATA_SIZE_AT)?;
            file.write_all_at(&bits, FEATURES_AT)?;
            Ok(file)
        };
        file.and_then(finish).map_err(Error::io("write", path))
    }
}
