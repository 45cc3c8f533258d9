//! The file of events of the call order: those of chunks that were full, or whose threads have ended.
//!
//! [`varid_instrument::runtime::order`] has the chunks. A record of the file is a [`Head`], and then the events, compressed by deflate.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::Path,
    sync::{Mutex, PoisonError},
};

use flate2::{Compression, write::DeflateEncoder};

use crate::tree_file::{Chunk, TreeFile};

/// The head of a record. All fields are little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The address of the thread's root (u64).
    pub root: u64,
    /// The number of the filling of the chunk (u64). A chunk of the tree with this number is not read.
    pub filling: u64,
    /// The number of events (u32).
    pub events: u32,
    /// The length of the compressed events in bytes (u32).
    pub length: u32,
}

impl Head {
    /// The length of a head in bytes.
    pub const LENGTH: usize = 24;

    /// Returns the head's bytes.
    #[must_use]
    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::LENGTH);
        for word in [self.root, self.filling] {
            bytes.extend(word.to_le_bytes());
        }
        for number in [self.events, self.length] {
            bytes.extend(number.to_le_bytes());
        }
        bytes
    }

    /// Reads a head.
    #[must_use]
    pub fn from_bytes(bytes: [u8; Self::LENGTH]) -> Self {
        let field = |at: usize, length: usize| {
            let field = bytes.iter().skip(at).take(length).rev();
            field.fold(0_u64, |value, byte| value << 8 | u64::from(*byte))
        };
        let small = |at| u32::try_from(field(at, 4)).unwrap_or(0);
        Self {
            root: field(0, 8),
            filling: field(8, 8),
            events: small(16),
            length: small(20),
        }
    }
}

/// Keeps the events of chunks.
#[derive(Debug)]
pub(crate) struct Order {
    state: Mutex<State>,
    /// The chunk of threads whose events are lost.
    sink: Chunk,
}

struct State {
    file: File,
    encoder: DeflateEncoder<Vec<u8>>,
    /// Chunks of threads that have ended. They have no events.
    free: Vec<Chunk>,
    /// The number of the last filling.
    filling: u64,
}

impl std::fmt::Debug for State {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("State").finish_non_exhaustive()
    }
}

impl Order {
    /// Makes the file.
    pub(crate) fn create(path: &Path, tree: &TreeFile) -> io::Result<Self> {
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(path)?;
        let sink = tree.add_chunk().ok_or(io::ErrorKind::StorageFull)?;
        let state = Mutex::new(State {
            file,
            // Made here, on a stack with room: a thread that calls for a chunk may have little.
            encoder: DeflateEncoder::new(Vec::new(), Compression::fast()),
            free: Vec::new(),
            filling: 0,
        });
        Ok(Self { state, sink })
    }

    /// Returns the chunk of threads whose events are lost.
    pub(crate) const fn sink(&self) -> Chunk {
        self.sink
    }

    /// Keeps the events of a chunk, if there is one, and returns one that has none, for this thread.
    pub(crate) fn renew(&self, tree: &TreeFile, root: u64, full: Option<Chunk>) -> Chunk {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let full = full.filter(|chunk| *chunk != self.sink);
        // Once events are lost, none is kept: those that are must be the first ones of each thread.
        let chunk = match (tree.has_lost_events(), full) {
            (true, _) => None,
            (false, Some(full)) => state.keep(tree, full).then_some(full),
            (false, None) => state.free.pop().or_else(|| tree.add_chunk()),
        };
        let Some(chunk) = chunk else {
            tree.lose_events();
            return self.sink;
        };
        state.filling = state.filling.saturating_add(1);
        tree.fill_chunk(chunk, root, state.filling);
        chunk
    }

    /// Keeps the events of the chunk of a thread that has ended.
    pub(crate) fn end(&self, tree: &TreeFile, chunk: Chunk) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if chunk == self.sink || tree.has_lost_events() {
            return;
        }
        match state.keep(tree, chunk) {
            true => {
                tree.fill_chunk(chunk, 0, 0);
                state.free.push(chunk);
            }
            false => tree.lose_events(),
        }
    }
}

impl State {
    /// Appends the events of a chunk to the file, and removes them from the chunk. Returns false if the file cannot be written: they stay.
    fn keep(&mut self, tree: &TreeFile, chunk: Chunk) -> bool {
        let (root, filling) = tree.filling_of(chunk);
        let events = tree.events_of(chunk);
        if events.is_empty() {
            return true;
        }
        let bytes: Vec<u8> = events.iter().flat_map(|it| it.to_le_bytes()).collect();
        let compressed = self.encoder.write_all(&bytes);
        let compressed = compressed.and_then(|()| self.encoder.reset(Vec::new()));
        let Ok(compressed) = compressed else {
            return false;
        };
        let mut record = Head {
            root,
            filling,
            events: u32::try_from(events.len()).unwrap_or(0),
            length: u32::try_from(compressed.len()).unwrap_or(0),
        }
        .to_bytes();
        record.extend(compressed);
        let is_kept = self.file.write_all(&record).is_ok();
        if is_kept {
            tree.clear_chunk(chunk);
        }
        is_kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::Place;

    #[test]
    fn events_are_lost_when_there_is_no_room_for_a_chunk() {
        let path = std::env::temp_dir().join(format!("varid-order-{}", std::process::id()));
        // The chunk for lost events, and two others.
        let tree =
            TreeFile::create(&path.with_extension("tree"), 3 << 14, &Place::Anywhere).unwrap();
        let order = Order::create(&path, &tree).unwrap();
        let [one, other] = [7, 8].map(|root| order.renew(&tree, root, None));
        assert_eq!(
            [one, other].map(|chunk| tree.filling_of(chunk)),
            [(7, 1), (8, 2)]
        );
        // A thread that ends makes room for another one.
        order.end(&tree, other);
        assert_eq!(order.renew(&tree, 9, None), other);
        assert!(!tree.has_lost_events());
        assert_eq!(order.renew(&tree, 10, None), order.sink());
        assert!(tree.has_lost_events());
        // What a thread has from then on is lost, too.
        assert_eq!(order.renew(&tree, 7, Some(one)), order.sink());
        assert_eq!(order.renew(&tree, 7, Some(order.sink())), order.sink());
        assert_eq!(tree.filling_of(one), (7, 1));
        for file in [path.with_extension("tree"), path] {
            std::fs::remove_file(file).unwrap();
        }
    }

    #[test]
    fn a_head_is_read_as_it_was_written() {
        let head = Head {
            root: u64::MAX - 7,
            filling: 1 << 40,
            events: 9,
            length: u32::MAX,
        };
        let bytes = head.to_bytes();
        assert_eq!(Head::from_bytes(*bytes.first_chunk().unwrap()), head);
        assert_eq!(bytes.len(), Head::LENGTH);
    }
}
