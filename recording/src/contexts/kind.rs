//! The file header of contexts.data, and the kinds of its chunks.

use crate::chunks::{FileHead, put_chunk};

/// The file header.
pub const HEAD: FileHead = FileHead {
    magic: *b"VARIDCTX",
    version: 1,
    mismatch: "not a contexts.data (no VARIDCTX)",
};

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

    /// Appends a chunk of this kind. `payload` has at most 1 MB.
    pub fn put(self, out: &mut Vec<u8>, payload: &[u8]) {
        put_chunk(out, self as u8, payload);
    }
}
