//! Reads call-order.data. The file is not trusted.

use std::{
    fs::File,
    io::Read,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use flate2::read::DeflateDecoder;
use varid_model::{Pid, Tid};

use super::{
    CALL_ORDER_DATA, CallEvent,
    format::{
        ChunkKind, ContextsKey, HEAD, LastNode, MAX_EVENTS, MAX_THREADS, Parsed, ThreadEnd,
        thread_record,
    },
};
use crate::{
    chunks::{Chunk, Chunks, Payload},
    contexts::NodeId,
    error::{Error, Result},
    regular::open_if_there,
};

/// The order of calls of a session, for each thread.
///
/// ```
/// # fn main() -> varid_recording::Result<()> {
/// # use varid_model::{Address, CodeUnits, MonotonicNs, Pid, Rate, Tid};
/// # use varid_recording::*;
/// # let folder = tempfile::tempdir().expect("a folder");
/// # let event = EventDesc::new("calls", Rate::Frequency(997), 1, 0);
/// # let target = SessionTarget { kind: TargetKind::All, value: String::new() };
/// # let manifest = Manifest::new(event, SampleSource::Agent, target, MonotonicNs::ZERO);
/// # let session = SessionWriter::create(folder.path(), manifest)?;
/// # session.create_contexts(&[])?.finish()?;
/// let (run, draw) = (NodeId(0), NodeId(1));
/// let block = CallEvent::Block { node: run, start: CodeUnits::new(7) };
/// let mut writer = session.create_call_order(2)?;
/// writer.start_thread(Pid::new(42), Some(Tid::new(43)))?;
/// for event in [CallEvent::Enter(run), CallEvent::Enter(draw), block] {
///     writer.add(event)?;
/// }
/// writer.end_thread(None)?;
/// writer.finish()?;
///
/// let order = CallOrder::open(folder.path())?.expect("the order of calls");
/// let thread = &order.threads()[0];
/// assert_eq!((thread.pid, thread.tid, thread.events), (Pid::new(42), Some(Tid::new(43)), 3));
/// let last = order.events(thread).last().expect("an event")?;
/// assert_eq!(last, block);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct CallOrder {
    path: PathBuf,
    file: File,
    /// The number of nodes of the contexts.
    nodes: u32,
    threads: Vec<CallOrderThread>,
    /// The chunks of events, in the order of the file.
    chunks: Vec<Place>,
}

/// A thread in a [`CallOrder`]. Several can have the same id, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallOrderThread {
    /// The process.
    pub pid: Pid,
    /// The thread's id. None: it is not known.
    pub tid: Option<Tid>,
    /// The number of events.
    pub events: u64,
    /// Why events are missing at the end. None: they are complete.
    pub incomplete: Option<String>,
    /// The indices of its chunks in the list of all.
    first_chunk: usize,
    end_chunk: usize,
}

/// The payload of a chunk of events.
#[derive(Debug, Clone, Copy)]
struct Place {
    offset: u64,
    length: usize,
}

impl CallOrder {
    /// Opens the order of calls of a session. None: the session was recorded without.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is cut or damaged, or is not of the session's contexts. All checksums are verified.
    pub fn open(dir: &Path) -> Result<Option<Self>> {
        let path = dir.join(CALL_ORDER_DATA);
        let Some(file) = open_if_there(&path)? else {
            return Ok(None);
        };
        let clone = file.try_clone().map_err(Error::io("open", &*path))?;
        let mut chunks = Chunks::open(&path, clone, HEAD)?;
        let mut index = Index::default();
        while let Some(chunk) = chunks.next_chunk()? {
            if let Err((offset, reason)) = index.add(&chunk) {
                return Err(chunks.wrong(offset, reason));
            }
        }
        let Some(contexts) = index.contexts.filter(|_| index.is_complete) else {
            return Err(chunks.cut("the file is cut: its last chunk is missing"));
        };
        if ContextsKey::of(dir, contexts.nodes)? != contexts {
            return Err(chunks.wrong(0, "it is not of the contexts.data beside it"));
        }
        Ok(Some(Self {
            path,
            file,
            nodes: contexts.nodes,
            threads: index.threads,
            chunks: index.chunks,
        }))
    }

    /// Returns the threads, in the order of the contexts' roots.
    #[must_use]
    pub fn threads(&self) -> &[CallOrderThread] {
        &self.threads
    }

    /// Returns the events of a thread in their order. All nodes are those of the session's contexts. An error ends them.
    #[must_use]
    pub fn events(&self, thread: &CallOrderThread) -> CallEvents<'_> {
        let chunks = self.chunks.get(thread.first_chunk..thread.end_chunk);
        CallEvents {
            order: self,
            chunks: chunks.unwrap_or_default().iter(),
            place: Place {
                offset: 0,
                length: 0,
            },
            bytes: Vec::new(),
            taken: 0,
            left_in_chunk: 0,
            left: thread.events,
            last: LastNode::default(),
        }
    }
}

/// What the chunks before have said.
#[derive(Debug, Default)]
struct Index {
    contexts: Option<ContextsKey>,
    threads: Vec<CallOrderThread>,
    is_open: bool,
    chunks: Vec<Place>,
    is_complete: bool,
}

impl Index {
    /// Adds a chunk. An error has an offset in the file.
    fn add(&mut self, chunk: &Chunk<'_>) -> std::result::Result<(), (u64, &'static str)> {
        // A later version may have added kinds.
        let Some(kind) = ChunkKind::of_number(chunk.kind) else {
            return Ok(());
        };
        let mut payload = Payload::new(chunk.payload);
        let added = self.add_kind(kind, &mut payload, chunk);
        let offset = chunk.offset.saturating_add(payload.taken() as u64);
        added.map_err(|reason| (offset, reason))
    }

    fn add_kind(
        &mut self,
        kind: ChunkKind,
        payload: &mut Payload<'_>,
        chunk: &Chunk<'_>,
    ) -> Parsed<()> {
        if self.is_complete {
            return Err("a chunk behind the end");
        }
        if self.contexts.is_none() != (kind == ChunkKind::Contexts) {
            return Err(
                "the first chunk does not say of which contexts the events are, or another one does",
            );
        }
        match kind {
            ChunkKind::Contexts => self.contexts = Some(ContextsKey::read(payload)?),
            ChunkKind::Thread => {
                let (pid, tid) = thread_record(payload)?;
                if std::mem::replace(&mut self.is_open, true) {
                    return Err("a thread before the end of the one before");
                }
                if self.threads.len() as u64 >= MAX_THREADS {
                    return Err("more threads than varid reads");
                }
                self.threads.push(CallOrderThread {
                    pid,
                    tid,
                    events: 0,
                    incomplete: None,
                    first_chunk: self.chunks.len(),
                    end_chunk: self.chunks.len(),
                });
            }
            ChunkKind::Events => {
                let thread = self.threads.last_mut().filter(|_| self.is_open);
                let thread = thread.ok_or("events of no thread")?;
                thread.events = thread.events.saturating_add(payload.number()?);
                thread.end_chunk = thread.end_chunk.saturating_add(1);
                self.chunks.push(Place {
                    offset: chunk.offset,
                    length: chunk.payload.len(),
                });
            }
            ChunkKind::ThreadEnd => {
                let end = ThreadEnd::read(payload)?;
                let is_open = std::mem::replace(&mut self.is_open, false);
                let thread = self.threads.last_mut().filter(|_| is_open);
                let thread = thread.ok_or("the end of no thread")?;
                if thread.events != end.events {
                    return Err("a thread does not have as many events as its end says");
                }
                thread.incomplete = end.incomplete;
            }
            ChunkKind::End => {
                if self.is_open || payload.number()? != self.threads.len() as u64 {
                    return Err("the file does not have as many threads as its end says");
                }
                self.is_complete = true;
            }
        }
        Ok(())
    }
}

/// The events of a thread: see [`CallOrder::events`]. At most one chunk is in memory.
#[derive(Debug)]
pub struct CallEvents<'o> {
    order: &'o CallOrder,
    /// The chunks behind the current one.
    chunks: std::slice::Iter<'o, Place>,
    place: Place,
    /// The decompressed events of the current chunk.
    bytes: Vec<u8>,
    taken: usize,
    /// Events that are left in the current chunk.
    left_in_chunk: u64,
    /// Events that are left of the thread.
    left: u64,
    last: LastNode,
}

impl CallEvents<'_> {
    /// Reads the next chunk, if the current one has no more events.
    fn fill(&mut self) -> Result<()> {
        while self.left_in_chunk == 0 {
            let Some(place) = self.chunks.next() else {
                return Err(self.wrong("a thread with fewer events than its end says"));
            };
            self.place = *place;
            let mut payload = vec![0; place.length];
            let read = self.order.file.read_exact_at(&mut payload, place.offset);
            read.map_err(Error::io("read", &*self.order.path))?;
            let mut fields = Payload::new(&payload);
            let count = fields.number();
            self.left_in_chunk = count.map_err(|reason| self.wrong(reason))?;
            self.bytes.clear();
            let compressed = payload.get(fields.taken()..).unwrap_or_default();
            let most = MAX_EVENTS.saturating_add(1);
            let mut decoder = DeflateDecoder::new(compressed).take(most as u64);
            if decoder.read_to_end(&mut self.bytes).is_err() || self.bytes.len() >= most {
                return Err(self.wrong("a chunk whose events cannot be decompressed"));
            }
            self.taken = 0;
            self.last = LastNode::default();
        }
        Ok(())
    }

    fn read(&mut self) -> Result<CallEvent> {
        self.fill()?;
        let mut payload = Payload::new(self.bytes.get(self.taken..).unwrap_or_default());
        let event = self.last.decode(&mut payload);
        let event = event.and_then(|event| match event.node() {
            NodeId(node) if node < self.order.nodes => Ok(event),
            _ => Err("an event of a node that is not there"),
        });
        self.taken = self.taken.saturating_add(payload.taken());
        self.left_in_chunk = self.left_in_chunk.saturating_sub(1);
        if self.left_in_chunk == 0 && self.taken < self.bytes.len() {
            return Err(self.wrong("a chunk with other events than it says"));
        }
        event.map_err(|reason| self.wrong(reason))
    }

    fn wrong(&self, reason: &'static str) -> Error {
        Error::Data {
            path: self.order.path.clone(),
            offset: self.place.offset,
            reason,
        }
    }
}

impl Iterator for CallEvents<'_> {
    type Item = Result<CallEvent>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let event = self.read();
        if event.is_err() {
            self.left = 0;
        }
        Some(event)
    }
}
