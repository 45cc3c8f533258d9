//! Reads contexts.data, up to its end or the first cut or damaged chunk. The file is not trusted.

use std::{
    collections::HashMap,
    io::{Read, Seek, SeekFrom},
    path::Path,
};

use varid_model::{MonotonicNs, Pid};

use super::{
    CONTEXTS_DATA, Contexts,
    cells::Cells,
    ids::{MethodId, NodeId, SiteId},
    kind::{ChunkKind, HEAD},
    limits,
    marks::{self, LastSwitch},
    nodes::{LastCount, LastNode, NodeRecord},
    parts::{ContextMethod, ContextNode, ContextProcess, ContextTrace, SiteTarget},
    tables::{LastMethod, LastSite, ProcessIndex},
};
use crate::{
    chunks::{Chunk, Chunks, Payload},
    error::{Error, Result},
    regular::{open_if_there, open_regular},
};

/// The reason for a process without an end record.
const NO_END: &str = "the file has no end of it: the recording goes on, or was cut short";

/// Reads the contexts of a session. None if there is no such file.
pub fn read(dir: &Path) -> Result<Option<Contexts>> {
    let path = dir.join(CONTEXTS_DATA);
    let Some(file) = open_if_there(&path)? else {
        return Ok(None);
    };
    let mut chunks = Chunks::open(&path, file, HEAD)?;
    let mut builder = Builder::default();
    let damage = loop {
        match chunks.next_chunk() {
            Ok(None) if builder.has_counters => break None,
            Ok(None) => break Some(chunks.cut("the file ends before the list of counters")),
            Ok(Some(chunk)) => {
                if let Err((offset, reason)) = builder.add(&chunk) {
                    break Some(chunks.wrong(offset, reason));
                }
            }
            Err(damage) => break Some(damage),
        }
    };
    Ok(Some(builder.finish(damage)))
}

/// Reads the bytes of a part of a trace.
pub fn read_trace(dir: &Path, trace: &ContextTrace) -> Result<Vec<u8>> {
    let path = dir.join(CONTEXTS_DATA);
    let read = || {
        let mut file = open_regular(&path)?;
        file.seek(SeekFrom::Start(trace.offset))?;
        let mut bytes = Vec::new();
        file.take(u64::from(trace.len)).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(Error::io("read", path.clone()))
}

/// The contexts read so far.
#[derive(Debug, Default)]
struct Builder {
    contexts: Contexts,
    cells: Cells,
    has_counters: bool,
    /// The index of each process.
    processes: HashMap<Pid, usize>,
    /// For each process, whether its end is still missing.
    is_open: Vec<bool>,
}

type Parsed<T = ()> = std::result::Result<T, &'static str>;

impl Builder {
    /// Adds the records of a chunk. Records before an error are kept. The error has an offset in the file.
    fn add(&mut self, chunk: &Chunk<'_>) -> std::result::Result<(), (u64, &'static str)> {
        // A later version may have added kinds.
        let Some(kind) = ChunkKind::of_number(chunk.kind) else {
            return Ok(());
        };
        let mut payload = Payload::new(chunk.payload);
        let added = match kind {
            ChunkKind::Counters => self.counters(&mut payload),
            _ if !self.has_counters => Err("a chunk before the list of counters"),
            ChunkKind::Process => self.process(&mut payload),
            ChunkKind::Methods => self.methods(&mut payload),
            ChunkKind::Sites => self.sites(&mut payload),
            ChunkKind::Nodes => self.nodes(&mut payload),
            ChunkKind::Counts => self.counts(&mut payload),
            ChunkKind::Switches => self.switches(&mut payload),
            ChunkKind::Trace => self.trace(&mut payload, chunk),
            ChunkKind::ProcessEnd => self.process_end(&mut payload),
        };
        let offset = chunk.offset.saturating_add(payload.taken() as u64);
        added.map_err(|reason| (offset, reason))
    }

    fn counters(&mut self, payload: &mut Payload<'_>) -> Parsed {
        if std::mem::replace(&mut self.has_counters, true) {
            return Err("a second list of counters");
        }
        while !payload.is_empty() {
            let counter = marks::counter(payload)?;
            add(&mut self.contexts.counters, counter, limits::COUNTERS)?;
        }
        Ok(())
    }

    fn process(&mut self, payload: &mut Payload<'_>) -> Parsed {
        let (pid, vm) = marks::process(payload)?;
        if let Some(place) = self.processes.get(&pid) {
            let process = self.contexts.processes.get_mut(*place);
            let process = process.zip(self.is_open.get_mut(*place));
            let (process, is_open) = process.ok_or(NO_PROCESS)?;
            vm.clone_into(&mut process.vm);
            *is_open = true;
            return Ok(());
        }
        let process = ContextProcess {
            pid,
            vm: vm.to_owned(),
            incomplete: None,
        };
        let place = self.contexts.processes.len();
        add(&mut self.contexts.processes, process, limits::PROCESSES)?;
        self.is_open.push(true);
        self.processes.insert(pid, place);
        Ok(())
    }

    fn process_end(&mut self, payload: &mut Payload<'_>) -> Parsed {
        let (index, incomplete) = marks::process_end(payload)?;
        let process = self.contexts.processes.get_mut(index.index());
        let process = process.zip(self.is_open.get_mut(index.index()));
        let (process, is_open) = process.ok_or(NO_PROCESS)?;
        *is_open = false;
        if process.incomplete.is_none() {
            process.incomplete = incomplete.map(str::to_owned);
        }
        Ok(())
    }

    fn pid(&self, index: ProcessIndex) -> Parsed<Pid> {
        let process = self.contexts.processes.get(index.index());
        Ok(process.ok_or(NO_PROCESS)?.pid)
    }

    fn method(&self, id: MethodId) -> Parsed<ContextMethod> {
        let method = self.contexts.methods.get(id.index()).copied();
        method.ok_or("a method that is not there")
    }

    fn methods(&mut self, payload: &mut Payload<'_>) -> Parsed {
        let mut last = LastMethod::default();
        while !payload.is_empty() {
            let record = last.decode(payload)?;
            let method = ContextMethod {
                pid: self.pid(record.process)?,
                address: record.address,
                code: record.code,
            };
            add(&mut self.contexts.methods, method, limits::METHODS)?;
        }
        Ok(())
    }

    fn sites(&mut self, payload: &mut Payload<'_>) -> Parsed {
        let mut last = LastSite::default();
        while !payload.is_empty() {
            let site = last.decode(payload)?;
            self.method(site.method)?;
            if let Some(SiteTarget::Method(method)) = site.target {
                self.method(method)?;
            }
            add(&mut self.contexts.sites, site, limits::SITES)?;
        }
        Ok(())
    }

    fn nodes(&mut self, payload: &mut Payload<'_>) -> Parsed {
        let mut last = LastNode::default();
        while !payload.is_empty() {
            let record = last.decode(payload, NodeId::at(self.contexts.nodes.len()))?;
            let node = self.node(&record)?;
            add(&mut self.contexts.nodes, node, limits::NODES)?;
            self.contexts.node_methods.push(record.method);
        }
        Ok(())
    }

    /// Checks a node against the earlier records.
    fn node(&self, record: &NodeRecord) -> Parsed<ContextNode> {
        let known = &self.contexts;
        let method = self.method(record.method)?;
        if let Some(parent) = record.parent {
            let parent = known.nodes.get(parent.index());
            if parent.is_none_or(|parent| parent.pid != method.pid) {
                return Err("a node whose parent is of another process");
            }
        }
        let has_site = |site: SiteId| known.sites.get(site.index()).is_some();
        if !record.site.is_none_or(has_site) {
            return Err("a node of a call site that is not there");
        }
        let latest = known
            .nodes
            .last()
            .map_or(MonotonicNs::ZERO, |last| last.time);
        if record.time < latest {
            return Err("a node before the time of the last one");
        }
        Ok(ContextNode {
            pid: method.pid,
            tid: record.tid,
            parent: record.parent,
            address: method.address,
            site: record.site,
            time: record.time,
        })
    }

    fn counts(&mut self, payload: &mut Payload<'_>) -> Parsed {
        let mut last = LastCount::default();
        while !payload.is_empty() {
            let (node, count) = last.decode(payload)?;
            if node.index() >= self.contexts.nodes.len() {
                return Err("a count of a node that is not there");
            }
            if count.counter.index() >= self.contexts.counters.len() {
                return Err("a count of a counter that is not there");
            }
            self.cells.set(node, count)?;
        }
        Ok(())
    }

    fn switches(&mut self, payload: &mut Payload<'_>) -> Parsed {
        let mut last = LastSwitch::default();
        while !payload.is_empty() {
            let switch = last.decode(payload)?;
            add(&mut self.contexts.switches, switch, limits::SWITCHES)?;
        }
        Ok(())
    }

    fn trace(&mut self, payload: &mut Payload<'_>, chunk: &Chunk<'_>) -> Parsed {
        let record = marks::trace(payload)?;
        let taken = payload.taken();
        let len = chunk.payload.len().saturating_sub(taken);
        let trace = ContextTrace {
            pid: self.pid(record.process)?,
            tid: record.tid,
            compression: record.compression,
            offset: chunk.offset.saturating_add(taken as u64),
            len: u32::try_from(len).unwrap_or(u32::MAX),
        };
        add(&mut self.contexts.traces, trace, limits::TRACES)
    }

    fn finish(self, damage: Option<Error>) -> Contexts {
        let mut contexts = self.contexts;
        for (process, is_open) in contexts.processes.iter_mut().zip(self.is_open) {
            if is_open && process.incomplete.is_none() {
                process.incomplete = Some(NO_END.to_owned());
            }
        }
        contexts.counts = self.cells.finish(contexts.nodes.len());
        contexts.damage = damage.map(|error| error.to_string());
        contexts
    }
}

const NO_PROCESS: &str = "a process that is not there";

fn add<T>(list: &mut Vec<T>, part: T, most: usize) -> Parsed {
    if list.len() >= most {
        return Err("more of this than varid reads");
    }
    list.push(part);
    Ok(())
}
