//! Collects records into chunks, one open chunk for each kind of record.
//!
//! All of them are closed together, in an order in which each names only what comes before it.

use super::{
    chunk::{ChunkKind, put_chunk},
    marks::LastSwitch,
    nodes::{LastCount, LastNode},
    tables::{LastMethod, LastSite},
};

/// The bytes of a payload at which its chunk is closed.
const CLOSE_AT: usize = 64 << 10;

/// A chunk that grows. `L` is its last record, to which the next one is a difference.
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
            put_chunk(out, kind, &self.payload);
            self.payload.clear();
            self.last = L::default();
        }
    }
}

/// The chunks of all kinds of records that come in numbers.
#[derive(Debug, Default)]
pub struct OpenChunks {
    pub methods: OpenChunk<LastMethod>,
    pub sites: OpenChunk<LastSite>,
    pub nodes: OpenChunk<LastNode>,
    pub counts: OpenChunk<LastCount>,
    pub switches: OpenChunk<LastSwitch>,
}

impl OpenChunks {
    /// Returns true if one of them is to be closed.
    pub fn is_full(&self) -> bool {
        self.methods.is_full()
            || self.sites.is_full()
            || self.nodes.is_full()
            || self.counts.is_full()
            || self.switches.is_full()
    }

    /// Appends all of them.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        self.methods.close(ChunkKind::Methods, out);
        self.sites.close(ChunkKind::Sites, out);
        self.nodes.close(ChunkKind::Nodes, out);
        self.counts.close(ChunkKind::Counts, out);
        self.switches.close(ChunkKind::Switches, out);
    }
}
