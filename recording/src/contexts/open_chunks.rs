//! Collects records into chunks, one open chunk for each kind of record.
//!
//! All chunks are closed together, in an order in which each refers only to earlier ones.

use super::{
    kind::ChunkKind,
    marks::LastSwitch,
    nodes::{LastCount, LastNode},
    tables::{LastMethod, LastSite},
};

/// The payload size in bytes at which a chunk is closed.
const CLOSE_AT: usize = 64 << 10;

/// An open chunk. `L` is its last record, and the next one is encoded as a difference to it.
#[derive(Debug, Default)]
pub struct OpenChunk<L> {
    pub payload: Vec<u8>,
    pub last: L,
}

impl<L: Default> OpenChunk<L> {
    fn is_full(&self) -> bool {
        self.payload.len() >= CLOSE_AT
    }

    fn close(&mut self, kind: ChunkKind, out: &mut Vec<u8>) {
        if !self.payload.is_empty() {
            kind.put(out, &self.payload);
            self.payload.clear();
            self.last = L::default();
        }
    }
}

/// The open chunks of all kinds with many records each.
#[derive(Debug, Default)]
pub struct OpenChunks {
    pub methods: OpenChunk<LastMethod>,
    pub sites: OpenChunk<LastSite>,
    pub nodes: OpenChunk<LastNode>,
    pub counts: OpenChunk<LastCount>,
    pub switches: OpenChunk<LastSwitch>,
}

impl OpenChunks {
    /// Returns true if a chunk must be closed.
    pub fn is_full(&self) -> bool {
        self.methods.is_full()
            || self.sites.is_full()
            || self.nodes.is_full()
            || self.counts.is_full()
            || self.switches.is_full()
    }

    /// Closes and appends all chunks.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        self.methods.close(ChunkKind::Methods, out);
        self.sites.close(ChunkKind::Sites, out);
        self.nodes.close(ChunkKind::Nodes, out);
        self.counts.close(ChunkKind::Counts, out);
        self.switches.close(ChunkKind::Switches, out);
    }
}
