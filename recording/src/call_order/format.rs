//! The encoding of call-order.data: its chunks, and the events in them.

use std::{fs::File, io::Read, path::Path};

use varid_model::{CodeUnits, Pid, Tid};

use super::CallEvent;
use crate::{
    chunks::{FileHead, Payload, put_chunk, put_number, put_text, put_thread},
    contexts::{CONTEXTS_DATA, NodeId},
    error::{Error, Result},
    regular::open_regular,
};

/// The file header.
pub const HEAD: FileHead = FileHead {
    magic: *b"VARIDORD",
    version: 1,
    mismatch: "not a call-order.data (no VARIDORD)",
};

/// The most bytes of a chunk's events before compression.
pub const MAX_EVENTS: usize = 1 << 20;

/// The maximum number of threads.
pub const MAX_THREADS: u64 = 1 << 22;

/// The kinds of chunks, with their numbers in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ChunkKind {
    /// Which contexts the events are of. This is the first chunk.
    Contexts = 1,
    /// A thread starts.
    Thread = 2,
    /// Events of the thread.
    Events = 3,
    /// The thread ends.
    ThreadEnd = 4,
    /// The number of threads. This is the last chunk.
    End = 5,
}

impl ChunkKind {
    const ALL: [Self; 5] = [
        Self::Contexts,
        Self::Thread,
        Self::Events,
        Self::ThreadEnd,
        Self::End,
    ];

    /// Returns the kind with this number. None if it is unknown; a later version may have added it.
    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }

    pub fn put(self, out: &mut Vec<u8>, payload: &[u8]) {
        put_chunk(out, self as u8, payload);
    }
}

/// What identifies the contexts that the events are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextsKey {
    /// The length of contexts.data in bytes.
    length: u64,
    /// Its CRC-32.
    checksum: u32,
    /// The number of its nodes.
    pub nodes: u32,
}

impl ContextsKey {
    /// Makes the key of a session's contexts, which have this number of nodes.
    pub fn of(dir: &Path, nodes: u32) -> Result<Self> {
        let path = dir.join(CONTEXTS_DATA);
        let file = open_regular(&path).map_err(Error::io("open", &*path))?;
        let (length, checksum) = sum(file).map_err(Error::io("read", path))?;
        Ok(Self {
            length,
            checksum,
            nodes,
        })
    }

    pub fn put(self, out: &mut Vec<u8>) {
        put_number(out, self.length);
        put_number(out, u64::from(self.checksum));
        put_number(out, u64::from(self.nodes));
    }

    pub fn read(payload: &mut Payload<'_>) -> Parsed<Self> {
        Ok(Self {
            length: payload.number()?,
            checksum: payload.small()?,
            nodes: payload.small()?,
        })
    }
}

/// Returns the length and the CRC-32 of a file.
fn sum(mut file: File) -> std::io::Result<(u64, u32)> {
    let mut sum = crc32fast::Hasher::new();
    let mut buffer = vec![0; 64 << 10];
    let mut length = 0_u64;
    loop {
        let count = file.read(&mut buffer)?;
        let bytes = buffer.get(..count).unwrap_or_default();
        if bytes.is_empty() {
            return Ok((length, sum.finalize()));
        }
        sum.update(bytes);
        length = length.saturating_add(count as u64);
    }
}

pub type Parsed<T> = std::result::Result<T, &'static str>;

/// Appends a thread: its process, and its id in the system.
pub fn put_thread_record(out: &mut Vec<u8>, pid: Pid, tid: Option<Tid>) {
    put_number(out, u64::from(pid.get()));
    put_thread(out, tid);
}

pub fn thread_record(payload: &mut Payload<'_>) -> Parsed<(Pid, Option<Tid>)> {
    Ok((Pid::new(payload.small()?), payload.thread()?))
}

/// The end of a thread's events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadEnd {
    /// The number of its events.
    pub events: u64,
    /// Why events are missing. None: they are complete.
    pub incomplete: Option<String>,
}

impl ThreadEnd {
    /// Appends the number of events, then 0, or 1 and the reason why events are missing.
    pub fn put(&self, out: &mut Vec<u8>) {
        put_number(out, self.events);
        out.push(u8::from(self.incomplete.is_some()));
        if let Some(reason) = &self.incomplete {
            put_text(out, reason);
        }
    }

    pub fn read(payload: &mut Payload<'_>) -> Parsed<Self> {
        Ok(Self {
            events: payload.number()?,
            incomplete: match payload.byte()? {
                0 => None,
                1 => Some(payload.text()?.to_owned()),
                _ => return Err("an end of a thread of an unknown kind"),
            },
        })
    }
}

/// The node of the last event of a chunk. The next event is encoded as a difference to it.
///
/// An event is a number: twice the difference between the nodes in zigzag encoding, plus 1 for a block, whose start follows. Chunks that
/// enter the same contexts in the same order have the same bytes, which compress well.
#[derive(Debug, Default)]
pub struct LastNode(u32);

impl LastNode {
    pub fn encode(&mut self, out: &mut Vec<u8>, event: CallEvent) {
        let (node, block) = match event {
            CallEvent::Enter(node) => (node, None),
            CallEvent::Block { node, start } => (node, Some(start)),
        };
        let difference = i64::from(node.0).wrapping_sub(i64::from(self.0));
        let zigzag = ((difference << 1) ^ (difference >> 63)).cast_unsigned();
        put_number(out, zigzag << 1 | u64::from(block.is_some()));
        if let Some(start) = block {
            put_number(out, u64::from(start.get()));
        }
        self.0 = node.0;
    }

    pub fn decode(&mut self, payload: &mut Payload<'_>) -> Parsed<CallEvent> {
        let number = payload.number()?;
        let (is_block, zigzag) = (number & 1 == 1, number >> 1);
        let difference = (zigzag >> 1) ^ (zigzag & 1).wrapping_neg();
        let node = u64::from(self.0).wrapping_add(difference);
        self.0 = u32::try_from(node).map_err(|_| "an event of a node that is not there")?;
        let node = NodeId(self.0);
        Ok(match is_block {
            false => CallEvent::Enter(node),
            true => CallEvent::Block {
                node,
                start: CodeUnits::new(payload.small()?),
            },
        })
    }
}
