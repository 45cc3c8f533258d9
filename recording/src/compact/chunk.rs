//! The chunks of records.data, and the records of one.

use super::records::RecordModel;
use crate::{
    chunks::{FileHead, Payload, put_chunk, put_number},
    plain_records::whole_records,
};

/// The file header.
pub const HEAD: FileHead = FileHead {
    magic: *b"VARIDREC",
    version: 1,
    mismatch: "not a records.data (no VARIDREC)",
};

/// The kinds of chunks, with their numbers in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ChunkKind {
    /// The bytes of perf.data before its records. This is the first chunk.
    Head = 1,
    /// Records.
    Records = 2,
    /// A feature of perf.data, or the next part of one.
    Feature = 3,
    /// The size of all records. This is the last chunk.
    End = 4,
}

impl ChunkKind {
    const ALL: [Self; 4] = [Self::Head, Self::Records, Self::Feature, Self::End];

    /// Returns the kind with this number. None: one of a later version.
    pub fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// The most bytes of the records of a chunk before the last one of them.
pub const MAX_RECORDS: usize = 256 << 10;

/// The most bytes of a feature in a chunk.
const MAX_FEATURE_PART: usize = 512 << 10;

/// Appends the chunks of a feature.
pub fn put_feature(out: &mut Vec<u8>, bit: u32, content: &[u8]) {
    // A feature without content has a chunk, too.
    let empty = content.is_empty().then_some(content);
    for part in content.chunks(MAX_FEATURE_PART).chain(empty) {
        let mut payload = Vec::new();
        put_number(&mut payload, u64::from(bit));
        payload.extend_from_slice(part);
        put_chunk(out, ChunkKind::Feature as u8, &payload);
    }
}

/// Returns the bit of a feature and a part of its content.
pub fn feature(payload: &[u8]) -> Result<(u32, &[u8]), &'static str> {
    let mut fields = Payload::new(payload);
    let bit = fields.small()?;
    let part = payload.get(fields.taken()..).unwrap_or_default();
    Ok((bit, part))
}

/// Codes records. They are decoded once more and compared: they are the only ones.
#[derive(Debug)]
pub struct Packer {
    model: RecordModel,
    check: Unpacker,
    read_back: Vec<u8>,
}

impl Packer {
    pub fn new() -> Self {
        Self {
            model: RecordModel::new(),
            check: Unpacker::new(),
            read_back: Vec::new(),
        }
    }

    /// Returns the payload of a chunk of whole records.
    ///
    /// # Errors
    ///
    /// They cannot be coded so that a reader accepts them.
    pub fn pack(&mut self, records: &[u8]) -> Result<Vec<u8>, &'static str> {
        let mut payload = Vec::new();
        put_number(&mut payload, whole_records(records).count() as u64);
        payload.extend(self.model.encode(whole_records(records))?);
        self.check.unpack(&payload, &mut self.read_back)?;
        match self.read_back == records {
            true => Ok(payload),
            false => Err("records that do not have the compact form"),
        }
    }
}

/// Decodes the chunks of records, in their order.
#[derive(Debug)]
pub struct Unpacker {
    model: RecordModel,
    packed: u64,
    unpacked: u64,
}

impl Unpacker {
    /// The bytes of records that are accepted at any ratio.
    const FREE: u64 = 64 << 20;
    /// The most bytes of records for each byte of a chunk beyond these. Samples have 30 to 100, those of deep stacks 500.
    const MOST: u64 = 1024;

    pub fn new() -> Self {
        Self {
            model: RecordModel::new(),
            packed: 0,
            unpacked: 0,
        }
    }

    /// Decodes the records of a chunk. `out` is emptied first.
    ///
    /// # Errors
    ///
    /// The payload is not one that varid writes. Later chunks cannot be decoded.
    pub fn unpack(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
        out.clear();
        let mut fields = Payload::new(payload);
        let records = fields.number()?;
        let coded = payload.get(fields.taken()..).unwrap_or_default();
        self.model.decode(coded, records, MAX_RECORDS, out)?;
        self.packed = self.packed.saturating_add(payload.len() as u64);
        self.unpacked = self.unpacked.saturating_add(out.len() as u64);
        let most = self.packed.saturating_mul(Self::MOST);
        match self.unpacked > most.saturating_add(Self::FREE) {
            true => Err("more records in fewer compact bytes than varid writes"),
            false => Ok(()),
        }
    }

    /// Checks the payload of the last chunk.
    ///
    /// # Errors
    ///
    /// Records are missing.
    pub fn end(&self, payload: &[u8]) -> Result<(), &'static str> {
        match Payload::new(payload).number()? == self.unpacked {
            true => Ok(()),
            false => Err("chunks of records are missing"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_file_does_not_become_a_large_one() {
        // Zeros are records, as any bytes are.
        let mut payload = Vec::new();
        put_number(&mut payload, u64::MAX);
        payload.resize(1_000, 0);
        let (mut unpacker, mut out) = (Unpacker::new(), Vec::new());
        assert!(unpacker.unpack(&payload, &mut out).is_err());
        assert!(out.len() <= MAX_RECORDS + (1 << 16));
    }

    #[test]
    fn a_feature_of_any_size_comes_back_in_parts() {
        for size in [0, 1, MAX_FEATURE_PART, MAX_FEATURE_PART + 1] {
            let content: Vec<u8> = (0..size).map(|at| at as u8).collect();
            let mut out = Vec::new();
            put_feature(&mut out, 7, &content);
            let (mut rest, mut back) = (out.as_slice(), Vec::new());
            while !rest.is_empty() {
                let length = u32::from_le_bytes(rest[1..5].try_into().unwrap()) as usize;
                let (bit, part) = feature(&rest[9..9 + length]).unwrap();
                assert_eq!(bit, 7);
                back.extend_from_slice(part);
                rest = &rest[9 + length..];
            }
            assert!(back == content);
        }
    }
}
