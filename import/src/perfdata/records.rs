//! Reads the records of a perf.data file, compressed or not.

use std::{
    io::{Read, Seek, SeekFrom},
    ops::Range,
};

use ruzstd::decoding::FrameDecoder;
use varid_model::perf::{
    Header, RECORD_HEADER as HEADER,
    file::{AUXTRACE, COMPRESSED, COMPRESSED2, HEADER_TRACING_DATA},
};

use super::damage::Damage;

/// Size of a zstd block's header in bytes.
const BLOCK_HEADER: usize = 3;
/// Bytes that are decompressed at once: more than the largest record.
const CHUNK: usize = 1 << 17;
/// The most bytes of decompressed records: a fixed number, and more for each compressed byte. perf's records compress to a tenth or a
/// twentieth.
const MAX_PLAIN: u64 = 64 << 20;
const MAX_RATIO: u64 = 256;
/// The largest window of a zstd stream in bytes. perf's windows have at most 8 MB.
const MAX_WINDOW: u64 = 32 << 20;

/// An unparsed record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawRecord {
    /// `PERF_RECORD_*`.
    pub kind: u32,
    /// `PERF_RECORD_MISC_*`.
    pub misc: u16,
    /// The bytes after its header.
    pub body: Vec<u8>,
    /// Its offset in the file. If it was compressed, it is the offset of the compressed record.
    pub offset: u64,
}

/// Reads the records of a range of a file, in the order of the file.
///
/// Holds one record. If records are compressed, also holds 128 KB and a zstd window.
pub struct RecordReader<R> {
    file: R,
    at: u64,
    end: u64,
    started: bool,
    compressed: Option<Compressed>,
    /// The problem that ends the records, which is returned after the records before it.
    damage: Option<Damage>,
}

/// The state of decompression.
struct Compressed {
    decoder: Box<FrameDecoder>,
    /// Compressed bytes.
    packed: Vec<u8>,
    /// How many of them have been decompressed.
    taken: usize,
    /// Decompressed bytes.
    plain: Vec<u8>,
    /// How many of them have been delivered as records.
    delivered: usize,
    /// Offset of the last compressed record in the file.
    offset: u64,
    /// There are no more compressed records.
    ended: bool,
    /// How many bytes may still be decompressed.
    room: u64,
}

impl<R: Read + Seek> RecordReader<R> {
    /// Returns true if a record so far was compressed. Such records are late: they follow the record that ends their round.
    pub const fn is_compressed(&self) -> bool {
        self.compressed.is_some()
    }

    /// Makes a reader for this range, which must be within the file.
    pub const fn new(file: R, range: Range<u64>) -> Self {
        Self {
            file,
            at: range.start,
            end: range.end,
            started: false,
            compressed: None,
            damage: None,
        }
    }

    /// Returns the next record, or None at the end.
    ///
    /// # Errors
    ///
    /// The data is invalid. Nothing after that can be read.
    #[allow(clippy::should_implement_trait)] // It may fail.
    pub fn next(&mut self) -> Result<Option<RawRecord>, Damage> {
        loop {
            if let Some(compressed) = &mut self.compressed
                && let Some(record) = compressed.next()?
            {
                return Ok(Some(record));
            }
            let stored = match self.damage {
                Some(_) => Ok(None),
                None => self.stored(),
            };
            let stored = stored.unwrap_or_else(|damage| {
                self.damage = Some(damage);
                None
            });
            let Some(record) = stored else {
                match &mut self.compressed {
                    // Data before the problem is still in the decoder's window.
                    Some(compressed) if !compressed.ended => compressed.end(),
                    _ => return self.damage.take().map_or(Ok(None), Err),
                }
                continue;
            };
            let packed = match record.kind {
                COMPRESSED => &record.body[..],
                COMPRESSED2 => {
                    let size = record.body.first_chunk::<8>();
                    let size =
                        size.and_then(|size| usize::try_from(u64::from_le_bytes(*size)).ok());
                    let content = record.body.get(8..).unwrap_or_default();
                    size.and_then(|size| content.get(..size)).ok_or(Damage {
                        offset: record.offset,
                        reason: "a compressed record that is larger than it is",
                    })?
                }
                _ => return Ok(Some(record)),
            };
            let compressed = self.compressed.get_or_insert_with(Compressed::new);
            compressed.add(packed, record.offset);
        }
    }

    /// Reads the next record without decompression.
    fn stored(&mut self) -> Result<Option<RawRecord>, Damage> {
        let offset = self.at;
        let damage = |reason| Damage { offset, reason };
        if !self.started {
            self.started = true;
            self.file
                .seek(SeekFrom::Start(offset))
                .map_err(|_| damage("it cannot be read"))?;
        }
        let left = self.end.saturating_sub(offset);
        if left == 0 {
            return Ok(None);
        }
        let mut header = [0; HEADER];
        self.file
            .read_exact(&mut header)
            .map_err(|_| damage("the file ends within a record"))?;
        let header = Header::from_bytes(header);
        let size = usize::from(header.size);
        if header.size as u64 > left {
            return Err(damage("the file ends within a record"));
        }
        let len = size
            .checked_sub(HEADER)
            .ok_or(damage("a record smaller than its header"))?;
        let mut body = vec![0; len];
        self.file
            .read_exact(&mut body)
            .map_err(|_| damage("the file ends within a record"))?;
        self.at = offset.saturating_add(size as u64);
        // In simpleperf's files, the content is part of the record.
        if header.kind == HEADER_TRACING_DATA
            && len <= size_of::<u64>()
            && let Some(size) = body.first_chunk()
        {
            body = self.tracing_data(u32::from_le_bytes(*size).into())?;
        }
        if header.kind == AUXTRACE {
            let size = body.first_chunk::<8>();
            let size = size.map_or(0, |size| u64::from_le_bytes(*size));
            self.at = self.at.saturating_add(size);
            self.started = false;
            if self.at > self.end {
                return Err(damage("the file ends within the data of an AUX area"));
            }
        }
        Ok(Some(RawRecord {
            kind: header.kind,
            misc: header.misc,
            body,
            offset,
        }))
    }
}

impl<R: Read> RecordReader<R> {
    /// Reads the tracing data that follows its record: `size` bytes, which include the padding to a word.
    fn tracing_data(&mut self, size: u64) -> Result<Vec<u8>, Damage> {
        let cut = Damage {
            offset: self.at,
            reason: "the file ends within the data of its tracepoints",
        };
        let Some(end) = self.at.checked_add(size).filter(|end| *end <= self.end) else {
            return Err(cut);
        };
        let mut content = Vec::new();
        let read = self.file.by_ref().take(size).read_to_end(&mut content);
        if read.ok().and_then(|read| u64::try_from(read).ok()) != Some(size) {
            return Err(cut);
        }
        self.at = end;
        Ok(content)
    }
}

impl Compressed {
    fn new() -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MAX_WINDOW);
        Self {
            decoder: Box::new(decoder),
            packed: Vec::new(),
            taken: 0,
            plain: Vec::new(),
            delivered: 0,
            offset: 0,
            ended: false,
            room: MAX_PLAIN,
        }
    }

    /// perf does not finish its stream, and the decoder keeps a window until the end. An empty last block ends the stream here.
    fn end(&mut self) {
        const LAST_BLOCK: [u8; 3] = [1, 0, 0];
        const CHECKSUM: [u8; 4] = [0; 4];
        self.ended = true;
        // An incomplete block cannot be decompressed.
        self.packed.truncate(self.taken);
        if !self.decoder.is_finished() {
            self.add(&[&LAST_BLOCK[..], &CHECKSUM].concat(), self.offset);
        }
    }

    /// Adds a part of the stream.
    fn add(&mut self, packed: &[u8], offset: u64) {
        self.packed.drain(..self.taken.min(self.packed.len()));
        self.taken = 0;
        self.packed.extend_from_slice(packed);
        let room = MAX_RATIO.saturating_mul(packed.len() as u64);
        self.room = self.room.saturating_add(room);
        self.offset = offset;
    }

    /// Returns the next complete record.
    fn next(&mut self) -> Result<Option<RawRecord>, Damage> {
        loop {
            let rest = self.plain.get(self.delivered..).unwrap_or_default();
            if let Some((header, rest)) = rest.split_first_chunk::<HEADER>() {
                let header = Header::from_bytes(*header);
                let len = usize::from(header.size).checked_sub(HEADER).ok_or(Damage {
                    offset: self.offset,
                    reason: "a record smaller than its header within compressed ones",
                })?;
                if let Some(body) = rest.get(..len) {
                    let body = body.to_vec();
                    self.delivered = self.delivered.saturating_add(header.size.into());
                    return Ok(Some(RawRecord {
                        kind: header.kind,
                        misc: header.misc,
                        body,
                        offset: self.offset,
                    }));
                }
            }
            if !self.decompress()? {
                return Ok(None);
            }
        }
    }

    /// Decompresses more bytes. Returns false if there are none.
    fn decompress(&mut self) -> Result<bool, Damage> {
        self.plain.drain(..self.delivered.min(self.plain.len()));
        self.delivered = 0;
        let source = self.packed.get(self.taken..).unwrap_or_default();
        // Another frame may follow a finished one.
        if self.decoder.is_finished() && self.decoder.can_collect() == 0 {
            // The bytes that end an unfinished stream are not another frame.
            if source.is_empty() || self.ended {
                return Ok(false);
            }
            let mut rest = source;
            let begun = self.decoder.reset(&mut rest);
            begun.map_err(|_| self.wrong())?;
            self.taken = self.packed.len().saturating_sub(rest.len());
        }
        // The decoder decompresses all blocks in its input, so it gets one at a time: that is 128 KB at most.
        let source = self.packed.get(self.taken..).unwrap_or_default();
        if source.len() < BLOCK_HEADER && self.decoder.can_collect() == 0 {
            return Ok(false);
        }
        let block = match source {
            [b0, b1, b2, rest @ ..] if self.decoder.can_collect() == 0 => {
                let header = u32::from_le_bytes([*b0, *b1, *b2, 0]);
                let is_last = header & 1 != 0;
                let len = match header >> 1 & 3 {
                    // A run of one byte.
                    1 => 1,
                    _ => usize::try_from(header >> 3).unwrap_or(usize::MAX),
                };
                let checksum = if is_last { 4 } else { 0 };
                let end = len.saturating_add(BLOCK_HEADER);
                match rest.len() < len {
                    true => return Ok(false),
                    false => source.get(..end.saturating_add(checksum).min(source.len())),
                }
            }
            _ => None,
        };
        let block = block.unwrap_or_default();
        let mut target = vec![0; CHUNK];
        let (read, written) = self
            .decoder
            .decode_from_to(block, &mut target)
            .map_err(|_| self.wrong())?;
        self.taken = self.taken.saturating_add(read);
        self.room = self.room.checked_sub(written as u64).ok_or(Damage {
            offset: self.offset,
            reason: "compressed records are far larger than any that perf compresses",
        })?;
        let plain = target.get(..written).unwrap_or_default();
        self.plain.extend_from_slice(plain);
        Ok(read > 0 || written > 0)
    }

    fn wrong(&self) -> Damage {
        Damage {
            offset: self.offset,
            reason: "a compressed record cannot be decompressed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    use std::io::Cursor;

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let size = u16::try_from(body.len() + HEADER).unwrap();
        let header = [&kind.to_le_bytes()[..], &[0, 0], &size.to_le_bytes()];
        [&header.concat(), body].concat()
    }

    /// Reads all records of a file, and the problem at the end, if there is one.
    fn read(file: Vec<u8>) -> (Vec<(u32, Vec<u8>)>, Option<Damage>) {
        let len = file.len() as u64;
        let mut reader = RecordReader::new(Cursor::new(file), 0..len);
        let mut records = Vec::new();
        loop {
            match reader.next() {
                Ok(Some(record)) => records.push((record.kind, record.body)),
                Ok(None) => return (records, None),
                Err(damage) => return (records, Some(damage)),
            }
        }
    }

    fn bodies() -> Vec<(u32, Vec<u8>)> {
        let body = |number: u8| vec![number; usize::from(number) * 200 + 8];
        (1..200).map(|number| (9, body(number))).collect()
    }

    #[test]
    fn compressed_records_are_those_that_were_compressed_wherever_the_stream_is_cut() {
        let plain: Vec<u8> = bodies()
            .iter()
            .flat_map(|(kind, body)| record(*kind, body))
            .collect();
        for level in [CompressionLevel::Uncompressed, CompressionLevel::Fastest] {
            let packed = compress_to_vec(&plain[..], level);
            for piece in [100, 5_000, 60_000] {
                let pieces = packed.chunks(piece).map(|piece| record(COMPRESSED, piece));
                let (records, damage) = read(pieces.collect::<Vec<_>>().concat());
                assert!(damage.is_none());
                assert_eq!(records, bodies());
            }
            // The second form has the number of bytes that are filled.
            let pieces = packed.chunks(60_000).map(|piece| {
                let size = piece.len() as u64;
                record(COMPRESSED2, &[&size.to_le_bytes(), piece, &[0; 5]].concat())
            });
            assert_eq!(read(pieces.collect::<Vec<_>>().concat()).0, bodies());
        }
    }

    #[test]
    fn a_stream_without_its_end_has_all_that_it_holds() {
        let plain: Vec<u8> = bodies()
            .iter()
            .flat_map(|(kind, body)| record(*kind, body))
            .collect();
        let packed = compress_to_vec(&plain[..], CompressionLevel::Fastest);
        let half = packed.get(..packed.len() / 2).unwrap();
        let (records, _) = read(
            half.chunks(60_000)
                .flat_map(|piece| record(COMPRESSED, piece))
                .collect(),
        );
        assert_eq!(records, bodies()[..records.len()]);
        assert!(records.len() > 20, "{}", records.len());
    }

    #[test]
    fn what_lies_before_damage_is_delivered_compressed_or_not() {
        let plain: Vec<u8> = bodies()
            .iter()
            .flat_map(|(kind, body)| record(*kind, body))
            .collect();
        let packed = compress_to_vec(&plain[..], CompressionLevel::Fastest);
        // perf does not finish its stream.
        let packed = record(COMPRESSED, &packed[..packed.len() - 8]);
        let (before, damage) = read(packed.clone());
        assert!(before.len() > 150 && damage.is_none());
        let foreign = b"a line of somebody's else";
        let cut = record(9, &[7; 80]);
        for damage in [&foreign[..], &cut[..40], &cut[..3]] {
            let (records, found) = read([&packed[..], damage].concat());
            assert_eq!(found.unwrap().offset, packed.len() as u64);
            assert!(records == before, "{}", records.len());
        }
    }

    #[test]
    fn what_tracepoints_mean_follows_its_record() {
        let head = record(HEADER_TRACING_DATA, &16u64.to_le_bytes());
        let file = [head, vec![3; 16], record(9, &[7; 8])].concat();
        let expected = [(HEADER_TRACING_DATA, vec![3; 16]), (9, vec![7; 8])];
        let (records, damage) = read(file.clone());
        assert!(damage.is_none());
        assert_eq!(records, expected);
        let (records, damage) = read(file[..24].to_vec());
        assert!(records.is_empty() && damage.unwrap().offset == 16);
    }

    #[test]
    fn what_is_no_stream_ends_the_records() {
        let magic = [0x28, 0xb5, 0x2f, 0xfd];
        for packed in [
            &[][..],
            &[0],
            &magic,
            &[1; 300],
            &[&magic[..], &[0xff; 200]].concat(),
        ] {
            let file = [record(9, &[7; 8]), record(COMPRESSED, packed)].concat();
            let (records, _) = read(file);
            assert_eq!(records, [(9, vec![7; 8])]);
        }
        let damage = read(record(COMPRESSED2, &[0xff; 16])).1.unwrap();
        assert_eq!(damage.offset, 0);
    }

    #[test]
    fn little_data_does_not_become_records_without_end() {
        // A frame with a window of 1 MB, and blocks that repeat a byte 128 K times: records of 0x808 bytes with type 0x8080808.
        let mut packed = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x50];
        let header = (1u32 << 17) << 3 | 1 << 1;
        let [b0, b1, b2, _] = header.to_le_bytes();
        packed.extend([b0, b1, b2, 8].repeat(2_000));
        let (records, damage) = read(record(COMPRESSED, &packed));
        let bytes = records.iter().map(|(_, body)| body.len() as u64 + 8);
        let bytes: u64 = bytes.sum();
        let limit = MAX_PLAIN + MAX_RATIO * packed.len() as u64;
        assert!(bytes > MAX_PLAIN - (1 << 20) && bytes <= limit, "{bytes}");
        assert!(damage.unwrap().reason.contains("far larger"));
    }

    #[test]
    fn the_data_of_an_aux_area_is_passed_over() {
        let aux = [
            &record(AUXTRACE, &[&5u64.to_le_bytes()[..], &[0; 40]].concat())[..],
            &[1; 5],
        ]
        .concat();
        let (records, damage) = read([aux, record(9, &[7; 8])].concat());
        assert!(damage.is_none());
        assert_eq!(records.last(), Some(&(9, vec![7; 8])));
    }
}
