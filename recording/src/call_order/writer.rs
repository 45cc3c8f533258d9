//! Writes call-order.data.

use std::{fs::File, io::Write, path::PathBuf};

use flate2::{Compression, write::DeflateEncoder};
use varid_model::{Pid, Tid};

use super::{
    CallEvent,
    format::{ChunkKind, ContextsKey, HEAD, LastNode, MAX_THREADS, ThreadEnd, put_thread_record},
};
use crate::{
    chunks::{ChunkFile, put_number},
    error::{Error, Result},
};

/// The number of bytes of events at which a chunk is closed.
const CLOSE_AT: usize = 512 << 10;

/// Writes the order of calls of a session, one thread after the other.
/// [`SessionWriter::create_call_order`](crate::SessionWriter::create_call_order) makes it, when the contexts are complete.
///
/// Dropping the writer without [`finish`](Self::finish) leaves a file that a reader rejects as cut.
#[derive(Debug)]
pub struct CallOrderWriter {
    file: ChunkFile,
    /// The number of nodes of the contexts.
    nodes: u32,
    /// The number of threads so far.
    threads: u64,
    /// The number of events of the open thread in closed chunks. None: no thread is open.
    closed: Option<u64>,
    /// The events of the open chunk.
    events: Vec<u8>,
    /// Their number.
    count: u64,
    last: LastNode,
}

impl CallOrderWriter {
    /// Starts an empty file.
    pub(crate) fn create(path: PathBuf, file: File, contexts: ContextsKey) -> Result<Self> {
        let mut payload = Vec::new();
        contexts.put(&mut payload);
        let mut head = HEAD.to_bytes();
        ChunkKind::Contexts.put(&mut head, &payload);
        let mut writer = Self {
            file: ChunkFile::new(path, file, head),
            nodes: contexts.nodes,
            threads: 0,
            closed: None,
            events: Vec::new(),
            count: 0,
            last: LastNode::default(),
        };
        writer.file.write()?;
        Ok(writer)
    }

    /// Starts a thread. The one before must have ended. `tid` is None if the thread's id is not known.
    ///
    /// # Errors
    ///
    /// The thread before is open, there are too many, or the disk is full.
    pub fn start_thread(&mut self, pid: Pid, tid: Option<Tid>) -> Result<()> {
        self.file.make_room()?;
        if self.closed.is_some() {
            return Err(self.refused("a thread", "the one before has not ended"));
        }
        if self.threads >= MAX_THREADS {
            return Err(self.refused("a thread", "there are too many already"));
        }
        let mut payload = Vec::new();
        put_thread_record(&mut payload, pid, tid);
        ChunkKind::Thread.put(&mut self.file.waiting, &payload);
        self.threads = self.threads.saturating_add(1);
        self.closed = Some(0);
        Ok(())
    }

    /// Adds the next event of the open thread.
    ///
    /// # Errors
    ///
    /// No thread is open, the contexts do not have the node, or the disk is full.
    pub fn add(&mut self, event: CallEvent) -> Result<()> {
        if event.node().0 >= self.nodes {
            return Err(self.refused("an event", "its node was not added"));
        }
        if self.closed.is_none() {
            return Err(self.refused("an event", "no thread was started"));
        }
        self.last.encode(&mut self.events, event);
        self.count = self.count.saturating_add(1);
        if self.events.len() >= CLOSE_AT {
            self.close_chunk()?;
            self.file.make_room()?;
        }
        Ok(())
    }

    /// Ends the open thread. `incomplete` is the reason why events are missing at its end, or None.
    ///
    /// # Errors
    ///
    /// No thread is open, or the disk is full.
    pub fn end_thread(&mut self, incomplete: Option<&str>) -> Result<()> {
        self.close_chunk()?;
        let Some(events) = self.closed.take() else {
            return Err(self.refused("the end of a thread", "none was started"));
        };
        let end = ThreadEnd {
            events,
            incomplete: incomplete.map(str::to_owned),
        };
        let mut payload = Vec::new();
        end.put(&mut payload);
        ChunkKind::ThreadEnd.put(&mut self.file.waiting, &payload);
        self.file.make_room()
    }

    /// Completes the file.
    ///
    /// # Errors
    ///
    /// The last thread has not ended, or the disk is full.
    pub fn finish(mut self) -> Result<()> {
        if self.closed.is_some() {
            return Err(self.refused("the end", "the last thread has not ended"));
        }
        let mut payload = Vec::new();
        put_number(&mut payload, self.threads);
        ChunkKind::End.put(&mut self.file.waiting, &payload);
        self.file.write()
    }

    /// Compresses the events of the open chunk, and appends it.
    fn close_chunk(&mut self) -> Result<()> {
        let Some(closed) = self.closed.as_mut().filter(|_| self.count > 0) else {
            return Ok(());
        };
        *closed = closed.saturating_add(self.count);
        let mut payload = Vec::new();
        put_number(&mut payload, self.count);
        let mut encoder = DeflateEncoder::new(payload, Compression::default());
        let written = encoder.write_all(&self.events);
        let payload = written.and_then(|()| encoder.finish());
        // A vector takes all bytes.
        let payload = payload.map_err(Error::io("write", &*self.file.path))?;
        ChunkKind::Events.put(&mut self.file.waiting, &payload);
        self.events.clear();
        self.count = 0;
        self.last = LastNode::default();
        Ok(())
    }

    fn refused(&self, part: &'static str, reason: &'static str) -> Error {
        Error::Contexts {
            path: self.file.path.clone(),
            part,
            reason,
        }
    }
}
