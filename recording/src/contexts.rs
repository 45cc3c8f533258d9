//! The session's `contexts.data`: trees of calling contexts with exact counters.
//!
//! | question | file |
//! |---|---|
//! | what are the data of a context | `parts`, `ids` |
//! | how is each part encoded | `tables`, `nodes`, `marks` |
//! | which chunks does the file have | `kind` |
//! | how is it written | `writer`, `known`, `open_chunks` |
//! | how is it read, and what are the limits | `reader`, `cells`, `limits` |
//! | what is the format of older sessions | `calls_tsv` |

mod calls_tsv;
mod cells;
mod ids;
mod kind;
mod known;
mod limits;
mod marks;
mod nodes;
mod open_chunks;
mod parts;
mod reader;
mod tables;
mod writer;

pub use ids::{CounterId, MethodId, NodeId, SiteId};
pub use parts::{
    ContextCount, ContextCounter, ContextMethod, ContextNode, ContextProcess, ContextSite,
    ContextTrace, SiteTarget, ThreadSwitch, TraceCompression,
};
pub(crate) use reader::read_trace;
pub use writer::{ContextWriter, MAX_TRACE_PART};

use std::path::Path;

use crate::error::Result;
use cells::NodeCounts;

/// The name of the contexts inside a session folder.
pub const CONTEXTS_DATA: &str = "contexts.data";

/// The calling contexts of a session. [`SessionReader::contexts`](crate::SessionReader::contexts) reads them.
///
/// ```
/// # fn main() -> varid_recording::Result<()> {
/// # use varid_model::{Address, MonotonicNs, Pid, Rate};
/// # use varid_recording::*;
/// # let folder = tempfile::tempdir().expect("a folder");
/// # let event = EventDesc::new("cpu-clock", Rate::Frequency(997), 1, 0);
/// # let target = SessionTarget { kind: TargetKind::All, value: String::new() };
/// # let manifest = Manifest::new(event, SampleSource::Bpf, target, MonotonicNs::ZERO);
/// # let session = SessionWriter::create(folder.path(), manifest)?;
/// let calls = ContextCounter { name: "calls".into(), unit: "calls".into() };
/// let mut writer = session.create_contexts(&[calls])?;
/// let pid = Pid::new(42);
/// writer.add_process(pid, "ART 14")?;
/// let mut node = ContextNode {
///     pid,
///     tid: None,
///     parent: None,
///     address: Address::new(0x7f00_1000),
///     site: None,
///     time: MonotonicNs::new(1_000),
/// };
/// let run = writer.add_node(&node)?;
/// (node.parent, node.address) = (Some(run), Address::new(0x7f00_2000));
/// let draw = writer.add_node(&node)?;
/// let counted = |value| ContextCount { counter: CounterId(0), place: None, value };
/// writer.set_count(run, &counted(1))?;
/// writer.set_count(draw, &counted(99))?;
/// // A later value replaces an earlier one.
/// writer.set_count(draw, &counted(100))?;
/// writer.end_process(pid, None)?;
/// writer.finish()?;
///
/// let contexts = SessionReader::open(folder.path())?.contexts()?.expect("contexts");
/// let calls = contexts.counter("calls").expect("the counter");
/// assert_eq!(contexts.value(draw, calls), 100);
/// assert_eq!(contexts.node(draw).expect("the node").parent, Some(run));
/// assert_eq!(contexts.processes()[0].incomplete, None);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Contexts {
    counters: Vec<ContextCounter>,
    processes: Vec<ContextProcess>,
    methods: Vec<ContextMethod>,
    sites: Vec<ContextSite>,
    nodes: Vec<ContextNode>,
    /// The method of each node.
    node_methods: Vec<MethodId>,
    counts: NodeCounts,
    switches: Vec<ThreadSwitch>,
    traces: Vec<ContextTrace>,
    damage: Option<String>,
}

/// Reads the contexts of a session in either form. None if nothing was counted.
pub(crate) fn read(dir: &Path) -> Result<Option<Contexts>> {
    match reader::read(dir)? {
        Some(contexts) => Ok(Some(contexts)),
        None => calls_tsv::read(dir),
    }
}

impl Contexts {
    /// Returns the counters.
    #[must_use]
    pub fn counters(&self) -> &[ContextCounter] {
        &self.counters
    }

    /// Returns the counter of this name.
    #[must_use]
    pub fn counter(&self, name: &str) -> Option<CounterId> {
        let place = self.counters.iter().position(|known| known.name == name);
        place.map(CounterId::at)
    }

    /// Returns the processes that have contexts, each once.
    #[must_use]
    pub fn processes(&self) -> &[ContextProcess] {
        &self.processes
    }

    /// Returns the methods. Several may have the same address, which then changed its meaning between their nodes.
    #[must_use]
    pub fn methods(&self) -> &[ContextMethod] {
        &self.methods
    }

    /// Returns a method. None if these contexts do not have it.
    #[must_use]
    pub fn method(&self, method: MethodId) -> Option<&ContextMethod> {
        self.methods.get(method.index())
    }

    /// Returns the call sites.
    #[must_use]
    pub fn sites(&self) -> &[ContextSite] {
        &self.sites
    }

    /// Returns a call site. None if these contexts do not have it.
    #[must_use]
    pub fn site(&self, site: SiteId) -> Option<&ContextSite> {
        self.sites.get(site.index())
    }

    /// Returns the nodes by time, parents before their children.
    #[must_use]
    pub fn nodes(&self) -> &[ContextNode] {
        &self.nodes
    }

    /// Returns the numbers of all nodes, in their order.
    pub fn node_ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (0..self.nodes.len()).map(NodeId::at)
    }

    /// Returns a node. None if these contexts do not have it.
    #[must_use]
    pub fn node(&self, node: NodeId) -> Option<&ContextNode> {
        self.nodes.get(node.index())
    }

    /// Returns the method of a node. It has the node's process and address.
    #[must_use]
    pub fn method_of(&self, node: NodeId) -> Option<MethodId> {
        self.node_methods.get(node.index()).copied()
    }

    /// Returns the counts of a node by counter and place. Counts of 0 are omitted.
    #[must_use]
    pub fn counts(&self, node: NodeId) -> &[ContextCount] {
        self.counts.of(node)
    }

    /// Returns the sum of a counter over all places of a node.
    #[must_use]
    pub fn value(&self, node: NodeId, counter: CounterId) -> u64 {
        let counts = self.counts(node).iter();
        let values = counts.filter(|count| count.counter == counter);
        values.fold(0, |sum, count| sum.saturating_add(count.value))
    }

    /// Returns the thread switches in the order of the file.
    #[must_use]
    pub fn switches(&self) -> &[ThreadSwitch] {
        &self.switches
    }

    /// Returns the parts of traces in the order of the file.
    #[must_use]
    pub fn traces(&self) -> &[ContextTrace] {
        &self.traces
    }

    /// Returns the position at which the file is cut or damaged. Everything before it has been read. None if the file
    /// is complete.
    #[must_use]
    pub fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }
}

#[cfg(test)]
mod tests;
