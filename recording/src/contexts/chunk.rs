//! The framing of contexts.data: the file header, and chunks with kind, length and checksum.
//!
//! A chunk is written in one piece and never changed. Its checksum shows whether it is complete, so a partial chunk
//! after a kill or a full disk is detected. Earlier chunks are not affected.

/// The first bytes of the file.
pub const MAGIC: [u8; 8] = *b"VARIDCTX";

/// The version that is written. It is also the only one that is read.
pub const VERSION: u32 = 1;

/// The size of the file header in bytes: [`MAGIC`] and [`VERSION`].
pub const FILE_HEAD: usize = 12;

/// The size of a chunk header in bytes.
pub const CHUNK_HEAD: usize = 9;

/// The most bytes of a payload.
pub const MAX_PAYLOAD: usize = 1 << 20;

/// The kinds of chunks, with their numbers in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ChunkKind {
    /// The names and units of all counters. This is the first chunk.
    Counters = 1,
    /// The start of a process.
    Process = 2,
    /// Methods.
    Methods = 3,
    /// Call sites.
    Sites = 4,
    /// Nodes.
    Nodes = 5,
    /// Values of counters. They replace earlier ones of the same node, counter and place.
    Counts = 6,
    /// Thread switches.
    Switches = 7,
    /// A part of a trace.
    Trace = 8,
    /// The end of a process's counts.
    ProcessEnd = 9,
}

impl ChunkKind {
    const ALL: [Self; 9] = [
        Self::Counters,
        Self::Process,
        Self::Methods,
        Self::Sites,
        Self::Nodes,
        Self::Counts,
        Self::Switches,
        Self::Trace,
        Self::ProcessEnd,
    ];

    /// Returns the kind with this number. None if it is unknown; a later version may have added it.
    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}

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
pub fn put_chunk(out: &mut Vec<u8>, kind: ChunkKind, payload: &[u8]) {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let checksum = checksum(kind as u8, length, payload);
    out.push(kind as u8);
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
