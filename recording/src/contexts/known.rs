//! Checks new parts of contexts.data against those that have been added.
//!
//! A reader rejects a part that refers to a missing one. The writer rejects it first, as an error of the caller.

use std::collections::HashMap;

use varid_model::{Address, MonotonicNs, Pid};

use super::{
    ids::{MethodId, NodeId, SiteId},
    limits,
    nodes::NodeRecord,
    parts::{ContextCount, ContextMethod, ContextNode, ContextSite, SiteTarget},
    tables::{MethodRecord, ProcessIndex},
};

/// An added part, or the reason why it cannot be added.
pub type Added<T = ()> = Result<T, &'static str>;

/// The parts that have been added.
#[derive(Debug, Default)]
pub struct Known {
    counters: usize,
    processes: HashMap<Pid, Process>,
    /// The latest method at each address of a process.
    methods: HashMap<(Pid, Address), MethodId>,
    method_count: usize,
    sites: usize,
    /// The process of each node.
    nodes: Vec<Pid>,
    /// The time of the last node.
    latest: MonotonicNs,
    switches: usize,
    traces: usize,
}

/// A node that was added.
#[derive(Debug)]
pub struct AddedNode {
    pub id: NodeId,
    pub record: NodeRecord,
    /// The method that must be written before the node.
    pub new_method: Option<MethodRecord>,
}

#[derive(Debug, Clone, Copy)]
struct Process {
    index: ProcessIndex,
    has_ended: bool,
}

impl Known {
    pub fn new(counters: usize) -> Added<Self> {
        match counters > limits::COUNTERS {
            true => Err(TOO_MANY),
            false => Ok(Self {
                counters,
                ..Self::default()
            }),
        }
    }

    /// Adds a process, or continues an earlier one.
    pub fn add_process(&mut self, pid: Pid) -> Added {
        let count = self.processes.len();
        if let Some(process) = self.processes.get_mut(&pid) {
            process.has_ended = false;
            return Ok(());
        }
        room(count, limits::PROCESSES)?;
        let process = Process {
            index: ProcessIndex::at(count),
            has_ended: false,
        };
        self.processes.insert(pid, process);
        Ok(())
    }

    pub fn end_process(&mut self, pid: Pid) -> Added<ProcessIndex> {
        let index = self.process(pid)?;
        if let Some(process) = self.processes.get_mut(&pid) {
            process.has_ended = true;
        }
        Ok(index)
    }

    /// Returns the index of an added process that has not ended.
    pub fn process(&self, pid: Pid) -> Added<ProcessIndex> {
        let process = self
            .processes
            .get(&pid)
            .ok_or("its process was not added")?;
        match process.has_ended {
            true => Err("its process has ended"),
            false => Ok(process.index),
        }
    }

    pub fn add_method(&mut self, method: &ContextMethod) -> Added<(MethodId, MethodRecord)> {
        let record = MethodRecord {
            process: self.process(method.pid)?,
            address: method.address,
            code: method.code,
        };
        room(self.method_count, limits::METHODS)?;
        let id = MethodId::at(self.method_count);
        self.method_count = self.method_count.saturating_add(1);
        self.methods.insert((method.pid, method.address), id);
        Ok((id, record))
    }

    pub fn add_site(&mut self, site: &ContextSite) -> Added<SiteId> {
        let target = match site.target {
            Some(SiteTarget::Method(method)) => Some(method),
            Some(SiteTarget::Name(_)) | None => None,
        };
        let is_known = |method: MethodId| method.index() < self.method_count;
        if ![Some(site.method), target]
            .into_iter()
            .flatten()
            .all(is_known)
        {
            return Err("its method was not added");
        }
        room(self.sites, limits::SITES)?;
        let id = SiteId::at(self.sites);
        self.sites = self.sites.saturating_add(1);
        Ok(id)
    }

    /// Adds a node, and its method if none was added at its address.
    pub fn add_node(&mut self, node: &ContextNode) -> Added<AddedNode> {
        self.process(node.pid)?;
        if let Some(parent) = node.parent
            && self.nodes.get(parent.index()) != Some(&node.pid)
        {
            return Err("its parent was not added, or is of another process");
        }
        if node.site.is_some_and(|site| site.index() >= self.sites) {
            return Err("its call site was not added");
        }
        room(self.nodes.len(), limits::NODES)?;
        let id = NodeId::at(self.nodes.len());
        let known = self.methods.get(&(node.pid, node.address));
        let (method, new_method) = match known {
            Some(method) => (*method, None),
            None => {
                let (method, record) = self.add_method(&ContextMethod {
                    pid: node.pid,
                    address: node.address,
                    code: None,
                })?;
                (method, Some(record))
            }
        };
        self.nodes.push(node.pid);
        self.latest = self.latest.max(node.time);
        let record = NodeRecord {
            method,
            tid: node.tid,
            parent: node.parent,
            site: node.site,
            time: self.latest,
        };
        Ok(AddedNode {
            id,
            record,
            new_method,
        })
    }

    pub fn check_count(&self, node: NodeId, count: &ContextCount) -> Added {
        let pid = self
            .nodes
            .get(node.index())
            .ok_or("its node was not added")?;
        self.process(*pid)?;
        match count.counter.index() < self.counters {
            true => Ok(()),
            false => Err("the file has no such counter"),
        }
    }

    pub fn add_switch(&mut self) -> Added {
        room(self.switches, limits::SWITCHES)?;
        self.switches = self.switches.saturating_add(1);
        Ok(())
    }

    pub fn add_trace(&mut self, pid: Pid) -> Added<ProcessIndex> {
        let process = self.process(pid)?;
        room(self.traces, limits::TRACES)?;
        self.traces = self.traces.saturating_add(1);
        Ok(process)
    }
}

const TOO_MANY: &str = "there are too many already";

/// Checks that one more part is within the limit `most`.
fn room(count: usize, most: usize) -> Added {
    match count < most {
        true => Ok(()),
        false => Err(TOO_MANY),
    }
}
