//! Writes contexts.data.

use std::{fs::File, path::PathBuf};

use varid_model::{Pid, Tid};

use super::{
    ids::{MethodId, NodeId, SiteId},
    kind::{ChunkKind, HEAD},
    known::{Added, Known},
    marks::{self, TraceRecord},
    open_chunks::OpenChunks,
    parts::{
        ContextCount, ContextCounter, ContextMethod, ContextNode, ContextSite, ThreadSwitch,
        TraceCompression,
    },
};
use crate::{
    chunks::ChunkFile,
    error::{Error, Result},
};

/// The maximum size of a part of a trace in bytes.
pub const MAX_TRACE_PART: usize = 512 << 10;

/// Writes a session's contexts. [`SessionWriter::create_contexts`](crate::SessionWriter::create_contexts) makes it.
///
/// Each part refers only to parts that were added before it. Parts wait in memory until [`flush`](Self::flush), or
/// until there are 256 KB of them. Texts are cut to 4,096 bytes.
///
/// Adding a part fails with [`Error::Contexts`] if it refers to a missing part, belongs to a process that has ended, or
/// exceeds a limit. It fails with [`Error::Append`] if 16 MB wait and the disk cannot be written. In both cases nothing
/// is added.
///
/// Dropping the writer without [`finish`](Self::finish) loses all parts since the last flush, as a kill does.
#[derive(Debug)]
pub struct ContextWriter {
    pub(super) file: ChunkFile,
    known: Known,
    open: OpenChunks,
}

impl ContextWriter {
    /// Starts an empty file.
    pub(crate) fn create(path: PathBuf, file: File, counters: &[ContextCounter]) -> Result<Self> {
        let known = Known::new(counters.len()).map_err(|reason| Error::Contexts {
            path: path.clone(),
            part: "counters",
            reason,
        })?;
        let mut list = Vec::new();
        for counter in counters {
            marks::put_counter(&mut list, counter);
        }
        let mut head = HEAD.to_bytes();
        ChunkKind::Counters.put(&mut head, &list);
        let mut writer = Self {
            file: ChunkFile::new(path, file, head),
            known,
            open: OpenChunks::default(),
        };
        writer.flush()?;
        Ok(writer)
    }

    /// Adds a process with the name of its VM. If the process has ended, it continues with this VM and stays incomplete
    /// if it was.
    ///
    /// # Errors
    ///
    /// The process cannot be added: see [`ContextWriter`].
    pub fn add_process(&mut self, pid: Pid, vm: &str) -> Result<()> {
        self.file.make_room()?;
        let added = self.known.add_process(pid);
        self.checked("a process", added)?;
        let mut payload = Vec::new();
        marks::put_process(&mut payload, pid, vm);
        self.add_chunk(ChunkKind::Process, &payload);
        Ok(())
    }

    /// Ends a process. No more parts of it can be added. `incomplete` is the reason why contexts or counts are missing,
    /// or None if they are complete.
    ///
    /// # Errors
    ///
    /// The end cannot be added: see [`ContextWriter`].
    pub fn end_process(&mut self, pid: Pid, incomplete: Option<&str>) -> Result<()> {
        self.file.make_room()?;
        let ended = self.known.end_process(pid);
        let process = self.checked("the end of a process", ended)?;
        let mut payload = Vec::new();
        marks::put_process_end(&mut payload, process, incomplete);
        self.add_chunk(ChunkKind::ProcessEnd, &payload);
        Ok(())
    }

    /// Adds a method. Nodes with its address that are added from now on belong to it.
    ///
    /// # Errors
    ///
    /// The method cannot be added: see [`ContextWriter`].
    pub fn add_method(&mut self, method: &ContextMethod) -> Result<MethodId> {
        self.file.make_room()?;
        let added = self.known.add_method(method);
        let (id, record) = self.checked("a method", added)?;
        let open = &mut self.open.methods;
        open.last.encode(&mut open.payload, &record);
        self.close_if_full();
        Ok(id)
    }

    /// Adds a call site.
    ///
    /// # Errors
    ///
    /// The site cannot be added: see [`ContextWriter`].
    pub fn add_site(&mut self, site: &ContextSite) -> Result<SiteId> {
        self.file.make_room()?;
        let added = self.known.add_site(site);
        let id = self.checked("a call site", added)?;
        let open = &mut self.open.sites;
        open.last.encode(&mut open.payload, site);
        self.close_if_full();
        Ok(id)
    }

    /// Adds a node. If no method was added at its address, one is added without the length of its code. A time before
    /// that of the last node is replaced by the latter.
    ///
    /// # Errors
    ///
    /// The node cannot be added: see [`ContextWriter`].
    pub fn add_node(&mut self, node: &ContextNode) -> Result<NodeId> {
        self.file.make_room()?;
        let added = self.known.add_node(node);
        let added = self.checked("a node", added)?;
        if let Some(method) = added.new_method {
            let open = &mut self.open.methods;
            open.last.encode(&mut open.payload, &method);
        }
        let open = &mut self.open.nodes;
        open.last.encode(&mut open.payload, added.id, &added.record);
        self.close_if_full();
        Ok(added.id)
    }

    /// Sets the value of a counter in a node, at its place. It replaces an earlier value, so only changed values need
    /// to be set. A counter that is never set is 0.
    ///
    /// # Errors
    ///
    /// The value cannot be set: see [`ContextWriter`].
    pub fn set_count(&mut self, node: NodeId, count: &ContextCount) -> Result<()> {
        self.file.make_room()?;
        self.checked("a count", self.known.check_count(node, count))?;
        let open = &mut self.open.counts;
        open.last.encode(&mut open.payload, node, count);
        self.close_if_full();
        Ok(())
    }

    /// Adds a thread switch.
    ///
    /// # Errors
    ///
    /// The switch cannot be added: see [`ContextWriter`].
    pub fn add_switch(&mut self, switch: &ThreadSwitch) -> Result<()> {
        self.file.make_room()?;
        let added = self.known.add_switch();
        self.checked("a thread switch", added)?;
        let open = &mut self.open.switches;
        open.last.encode(&mut open.payload, switch);
        self.close_if_full();
        Ok(())
    }

    /// Adds a part of a trace of calls of a thread, or of all threads of a process. `bytes` has at most
    /// [`MAX_TRACE_PART`] bytes.
    ///
    /// # Errors
    ///
    /// The part is too large, or cannot be added: see [`ContextWriter`].
    pub fn add_trace(
        &mut self,
        pid: Pid,
        tid: Option<Tid>,
        compression: TraceCompression,
        bytes: &[u8],
    ) -> Result<()> {
        self.file.make_room()?;
        let added = match bytes.len() > MAX_TRACE_PART {
            true => Err("it has more than 512 KB"),
            false => self.known.add_trace(pid),
        };
        let record = TraceRecord {
            process: self.checked("a part of a trace", added)?,
            tid,
            compression,
        };
        let mut payload = Vec::new();
        marks::put_trace(&mut payload, &record);
        payload.extend_from_slice(bytes);
        self.add_chunk(ChunkKind::Trace, &payload);
        Ok(())
    }

    /// Appends all added parts to the file. After that a kill cannot lose them.
    ///
    /// # Errors
    ///
    /// [`Error::Append`], usually because the disk is full. The file stays as it was after the last successful flush,
    /// and later parts wait for the next one.
    pub fn flush(&mut self) -> Result<()> {
        self.open.close(&mut self.file.waiting);
        self.file.write()
    }

    /// Flushes for the last time. Processes that were not ended stay incomplete.
    ///
    /// # Errors
    ///
    /// The errors of [`flush`](Self::flush). What was not flushed is lost.
    pub fn finish(mut self) -> Result<()> {
        self.flush()
    }

    /// Appends a chunk of one record, after the open chunks.
    fn add_chunk(&mut self, kind: ChunkKind, payload: &[u8]) {
        self.open.close(&mut self.file.waiting);
        kind.put(&mut self.file.waiting, payload);
    }

    fn close_if_full(&mut self) {
        if self.open.is_full() {
            self.open.close(&mut self.file.waiting);
        }
    }

    fn checked<T>(&self, part: &'static str, added: Added<T>) -> Result<T> {
        added.map_err(|reason| Error::Contexts {
            path: self.file.path.clone(),
            part,
            reason,
        })
    }
}
