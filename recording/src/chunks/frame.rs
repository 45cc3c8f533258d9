//! The framing: a file header, and chunks with kind, length and checksum.
//!
//! A chunk is written in one piece and never changed. Its checksum shows whether it is complete, so a partial chunk
//! after a kill or a full disk is detected. Earlier chunks are not affected.

/// The header of a file of chunks: the first bytes, and the version (u32, little-endian).
#[derive(Debug, Clone, Copy)]
pub struct FileHead {
    pub magic: [u8; 8],
    /// The version that is written. It is also the only one that is read.
    pub version: u32,
    /// What an error says of a file without these first bytes.
    pub mismatch: &'static str,
}

/// The size of a file header in bytes.
pub const FILE_HEAD: usize = 12;

impl FileHead {
    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = self.magic.to_vec();
        bytes.extend(self.version.to_le_bytes());
        bytes
    }
}

/// The size of a chunk header in bytes.
pub const CHUNK_HEAD: usize = 9;

/// The most bytes of a payload.
pub const MAX_PAYLOAD: usize = 1 << 20;

/// The header of a chunk, little-endian: kind (u8), length of the payload (u32), checksum (u32).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkHead {
    pub kind: u8,
    pub length: u32,
    /// The CRC-32 (ISO-HDLC, as in zlib) of kind, length and payload.
    pub checksum: u32,
}

impl ChunkHead {
    pub fn from_bytes(bytes: [u8; CHUNK_HEAD]) -> Self {
        let [kind, length @ .., c0, c1, c2, c3] = bytes;
        Self {
            kind,
            length: u32::from_le_bytes(length),
            checksum: u32::from_le_bytes([c0, c1, c2, c3]),
        }
    }

    /// Returns true if the checksum matches the payload.
    pub fn is_of(&self, payload: &[u8]) -> bool {
        self.checksum == checksum(self.kind, self.length, payload)
    }
}

/// Appends a chunk. `payload` has at most [`MAX_PAYLOAD`] bytes.
pub fn put_chunk(out: &mut Vec<u8>, kind: u8, payload: &[u8]) {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let checksum = checksum(kind, length, payload);
    out.push(kind);
    out.extend(length.to_le_bytes());
    out.extend(checksum.to_le_bytes());
    out.extend_from_slice(payload);
}

fn checksum(kind: u8, length: u32, payload: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&[kind]);
    sum.update(&length.to_le_bytes());
    sum.update(payload);
    sum.finalize()
}
