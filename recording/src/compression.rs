//! Compresses records and decompresses them.
//!
//! A `PERF_RECORD_COMPRESSED` holds whole records as one zstd frame of its own, so that a recording which is cut can be read up to its last
//! whole record. perf's readers accept one frame per record as well as one frame for the whole session. The records that end a round stay
//! uncompressed.

use std::{
    fmt,
    io::Read,
    panic::{AssertUnwindSafe, catch_unwind},
};

use ruzstd::decoding::StreamingDecoder;
use varid_model::perf::Header;
use zstd_rs::{CompressionConfig, Compressor};

use crate::format::{RECORD_HEADER_SIZE, kind};

/// The most bytes that a compressed record may decompress to.
pub const MAX_CHUNK: usize = 256 << 10;

/// The bytes that perf allocates for each compressed record. What is left of the record before has room in them, too.
const PERF_BUFFER: u32 = 512 << 10;

/// The largest window of a frame that is read, in bytes.
const MAX_WINDOW: u64 = 8 << 20;

/// The compression level of frames. It is the first level of zstd that searches chains of earlier matches, from which repeated callchains
/// gain most.
const LEVEL: i32 = 5;

/// Compresses records. Its tables are reused for each frame.
pub struct RecordCompressor {
    /// `None` leaves records plain.
    encoder: Option<Compressor>,
    /// The current frame, and what it decompresses to.
    frame: Vec<u8>,
    read_back: Vec<u8>,
}

impl fmt::Debug for RecordCompressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordCompressor").finish_non_exhaustive()
    }
}

impl RecordCompressor {
    pub fn new() -> Self {
        let config = CompressionConfig {
            level: LEVEL,
            content_size: false,
            ..CompressionConfig::DEFAULT
        };
        Self {
            encoder: Compressor::new(config).ok(),
            frame: Vec::new(),
            read_back: Vec::new(),
        }
    }

    /// Appends whole records, and compresses them where that makes them smaller.
    pub fn compress(&mut self, out: &mut Vec<u8>, records: &[u8]) {
        let mut rest = records;
        while !rest.is_empty() {
            let (chunk, behind) = split(rest, MAX_CHUNK);
            self.add(out, chunk);
            rest = behind;
        }
    }

    /// Appends the records of one chunk.
    fn add(&mut self, out: &mut Vec<u8>, chunk: &[u8]) {
        let size = match self.encode(chunk) {
            true => self.frame.len().saturating_add(RECORD_HEADER_SIZE),
            false => usize::MAX,
        };
        if size >= chunk.len() {
            out.extend_from_slice(chunk);
        } else if let Ok(size) = u16::try_from(size) {
            let header = u64::from(kind::COMPRESSED) | u64::from(size) << 48;
            out.extend(header.to_le_bytes());
            out.extend_from_slice(&self.frame);
        } else {
            // No record is as large as two of these parts.
            let (first, second) = split(chunk, chunk.len() / 2);
            for part in [first, second] {
                if !part.is_empty() {
                    self.add(out, part);
                }
            }
        }
    }

    /// Makes the frame of a chunk and decompresses it again. Returns false if another decoder does not get the same records back: these
    /// stay plain and are not lost.
    fn encode(&mut self, chunk: &[u8]) -> bool {
        let Some(encoder) = &mut self.encoder else {
            return false;
        };
        self.frame.clear();
        let frame = &mut self.frame;
        // A defect of the encoder costs no records: after a panic its output is not used, nor is the encoder again.
        let compressed = catch_unwind(AssertUnwindSafe(|| encoder.compress(chunk, None, frame)));
        let Ok(compressed) = compressed else {
            self.encoder = None;
            return false;
        };
        compressed.is_ok()
            && decompress(&self.frame, &mut self.read_back).is_ok()
            && self.read_back == chunk
    }
}

/// Splits records into whole ones of at most `most` bytes, but at least one, and the rest.
fn split(records: &[u8], most: usize) -> (&[u8], &[u8]) {
    let mut len = 0usize;
    while let Some(header) = records.get(len..).and_then(<[u8]>::first_chunk) {
        let size = usize::from(Header::from_bytes(*header).size);
        let end = len.saturating_add(size);
        if size == 0 || (len > 0 && end > most) {
            break;
        }
        len = end;
    }
    let len = if len == 0 { records.len() } else { len };
    records.split_at_checked(len).unwrap_or((records, &[]))
}

/// Decompresses the records of a compressed one. `body` is the body of that record. `out` is emptied first. Uses no more memory than
/// [`MAX_CHUNK`] and a frame's window, whatever the frame says.
///
/// # Errors
///
/// Says what is wrong with the record.
pub fn decompress(body: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
    out.clear();
    let decoder = StreamingDecoder::new_with_max_window_size(body, MAX_WINDOW);
    let decoder = decoder.map_err(|_| "a compressed record without a zstd frame")?;
    let most = MAX_CHUNK.saturating_add(1);
    decoder
        .take(most as u64)
        .read_to_end(out)
        .map_err(|_| "a compressed record whose zstd frame is damaged")?;
    if out.len() >= most {
        return Err("a compressed record of more records than varid writes into one");
    }
    Ok(())
}

/// Counts what the compressed records of a file decompress to. A small file must not keep a reader busy for long, and must not fill a disk.
#[derive(Debug, Default)]
pub struct Expansion {
    compressed: u64,
    plain: u64,
}

impl Expansion {
    /// The bytes of records that are accepted at any ratio.
    const FREE: u64 = 64 << 20;
    /// The most bytes of records for each compressed byte beyond these. Samples have 3 to 10.
    const MOST: u64 = 256;

    /// Counts a compressed record's body and the bytes that it decompressed to.
    ///
    /// # Errors
    ///
    /// The records counted so far are more than varid writes into so few compressed bytes.
    pub fn add(&mut self, body: &[u8], records: &[u8]) -> Result<(), &'static str> {
        self.compressed = self.compressed.saturating_add(body.len() as u64);
        self.plain = self.plain.saturating_add(records.len() as u64);
        let most = self.compressed.saturating_mul(Self::MOST);
        match self.plain > most.saturating_add(Self::FREE) {
            true => Err("more records in fewer compressed bytes than varid writes"),
            false => Ok(()),
        }
    }
}

/// Returns the body of perf's feature that says how records are compressed (`HEADER_COMPRESSED`).
pub fn feature() -> Vec<u8> {
    const VERSION: u32 = 1;
    const ZSTD: u32 = 1;
    // perf only shows this number.
    const RATIO: u32 = 15;
    let words = [VERSION, ZSTD, LEVEL.unsigned_abs(), RATIO, PERF_BUFFER];
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};

    fn compress(out: &mut Vec<u8>, records: &[u8]) {
        RecordCompressor::new().compress(out, records);
    }

    fn frame(bytes: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        let mut encoder = Compressor::new(CompressionConfig::DEFAULT).unwrap();
        encoder.compress(bytes, None, &mut frame).unwrap();
        frame
    }

    fn record(size: u16, fill: impl Fn(u16) -> u8) -> Vec<u8> {
        let header = u64::from(kind::SAMPLE) | u64::from(size) << 48;
        let body = (8..size).map(fill);
        header.to_le_bytes().into_iter().chain(body).collect()
    }

    /// All records, and the sizes of the compressed ones.
    fn back(mut bytes: &[u8]) -> (Vec<u8>, Vec<usize>) {
        let (mut all, mut out, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(header) = bytes.first_chunk() {
            let header = Header::from_bytes(*header);
            let (record, rest) = bytes.split_at(usize::from(header.size));
            match header.kind {
                kind::COMPRESSED => {
                    decompress(&record[8..], &mut out).unwrap();
                    sizes.push(record.len());
                    all.extend_from_slice(&out);
                }
                _ => all.extend_from_slice(record),
            }
            bytes = rest;
        }
        (all, sizes)
    }

    #[test]
    fn records_that_are_alike_take_a_fraction_and_come_back() {
        let records = record(160, |at| (at / 8) as u8).repeat(10_000);
        let mut out = Vec::new();
        compress(&mut out, &records);
        assert!(out.len() < records.len() / 10, "{}", out.len());
        let (all, sizes) = back(&out);
        assert!(all == records);
        assert_eq!(sizes.len(), records.len().div_ceil(MAX_CHUNK));
    }

    #[test]
    fn what_cannot_be_compressed_stays_or_is_split_until_its_record_can_hold_it() {
        let mut state = 1u64;
        let mut records = Vec::new();
        for _ in 0..100 {
            let noise: Vec<u8> = (0..6000)
                .map(|_| {
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
                    // Seven bits of eight: it becomes smaller, but not small.
                    (state >> 57) as u8
                })
                .collect();
            records.extend(record(6000, |at| noise[usize::from(at)]));
        }
        let mut out = Vec::new();
        compress(&mut out, &records);
        let (all, _) = back(&out);
        assert!(all == records && out.len() <= records.len());
    }

    #[test]
    fn what_cannot_be_encoded_stays_plain() {
        let mut compressor = RecordCompressor::new();
        compressor.encoder = None;
        let records = record(160, |at| (at / 8) as u8).repeat(10_000);
        let mut out = Vec::new();
        compressor.compress(&mut out, &records);
        assert!(out == records);
    }

    #[test]
    fn a_frame_that_becomes_too_much_ends_early() {
        let bomb = frame(&vec![0; 64 << 20]);
        assert!(bomb.len() < 64 << 10);
        let mut out = Vec::new();
        assert!(
            decompress(&bomb, &mut out)
                .unwrap_err()
                .contains("more records")
        );
        assert!(out.capacity() <= 2 * MAX_CHUNK + 64);
        let exact = frame(&vec![0; MAX_CHUNK]);
        decompress(&exact, &mut out).unwrap();
        assert_eq!(out.len(), MAX_CHUNK);
        assert!(decompress(&exact[..exact.len() / 2], &mut out).is_err());
        assert!(decompress(b"", &mut out).is_err());
    }

    proptest! {
        #[test]
        fn any_records_come_back(sizes in vec((8..3000u16, any::<u8>()), 0..200)) {
            let records: Vec<u8> = sizes
                .into_iter()
                .flat_map(|(size, seed)| record(size, |at| (at as u8 / 16).wrapping_mul(seed)))
                .collect();
            let mut out = Vec::new();
            compress(&mut out, &records);
            prop_assert!(out.len() <= records.len());
            prop_assert!(back(&out).0 == records);
        }
    }
}
