//! The parts of a session's contexts: counters, processes, methods, sites, nodes, counts, thread switches, traces.

use varid_model::{Address, CodeUnits, MonotonicNs, Pid, Tid};

use super::ids::{CounterId, MethodId, NodeId, SiteId};

/// A kind of number that is known of contexts. All processes of a session have the same counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextCounter {
    /// Its name, such as `calls`.
    pub name: String,
    /// What it counts: `calls`, `bytecodes`, `blocks`, `cycles`.
    pub unit: String,
}

/// A process that has contexts. Each process is listed once, even if it left the session and came back, or executed another program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextProcess {
    /// The process.
    pub pid: Pid,
    /// The name of its VM and its build; the latest one, if the process executed another program. Empty if it is not known.
    pub vm: String,
    /// Why counts or contexts of it are missing. None: they are complete.
    pub incomplete: Option<String>,
}

/// A method that contexts are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextMethod {
    /// The process.
    pub pid: Pid,
    /// The method's first instruction, or its slot in the remap range, as in a sample.
    pub address: Address,
    /// The length of its bytecode. None: it has none, or the length is not known.
    pub code: Option<CodeUnits>,
}

/// An instruction that calls a method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextSite {
    /// The method that calls.
    pub method: MethodId,
    /// The offset of the instruction in the method's bytecode.
    pub pc: CodeUnits,
    /// The instruction's opcode, as the VM's bytecode defines it.
    pub opcode: u8,
    /// The method that the instruction names. What it calls may override that. None: it is not known.
    pub target: Option<SiteTarget>,
}

/// The method that a call site names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SiteTarget {
    /// By its name and signature, as the VM writes them.
    Name(String),
    /// A method that has contexts.
    Method(MethodId),
}

/// A calling context: a method, called from a site of another context. Contexts of a process form trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextNode {
    /// The process.
    pub pid: Pid,
    /// The thread. None: the tree is of all threads of the process.
    pub tid: Option<Tid>,
    /// The context that calls, of the same process. None: it is not known, or the VM calls.
    pub parent: Option<NodeId>,
    /// The method's first instruction, or its slot in the remap range, as in a sample.
    pub address: Address,
    /// The site in the parent. None: it is not known, or not bytecode.
    pub site: Option<SiteId>,
    /// A time at which the address meant that method.
    pub time: MonotonicNs,
}

/// A number that was counted in a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextCount {
    /// What was counted.
    pub counter: CounterId,
    /// Where in the method: an offset in its bytecode, in [`CodeUnits`]. None: the method as a whole.
    pub place: Option<u32>,
    /// The number, in the counter's unit.
    pub value: u64,
}

/// A moment at which another thread goes on in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadSwitch {
    /// When.
    pub time: MonotonicNs,
    /// The thread before.
    pub from: Tid,
    /// The thread from then on.
    pub to: Tid,
}

/// How the bytes of a trace are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceCompression {
    /// Not at all.
    Plain,
    /// Each part is one zstd frame (RFC 8878).
    Zstd,
}

/// A part of a trace of calls. [`SessionReader::read_trace`](crate::SessionReader::read_trace) reads its bytes, which mean what the VM's
/// agent and the trace's readers agree on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextTrace {
    /// The process.
    pub pid: Pid,
    /// The thread. None: the trace is of all threads of the process.
    pub tid: Option<Tid>,
    /// How the bytes are compressed.
    pub compression: TraceCompression,
    /// The file offset of the bytes.
    pub(crate) offset: u64,
    /// The number of bytes.
    pub(crate) len: u32,
}

impl ContextTrace {
    /// Returns the number of bytes in the file.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Returns true if the part has no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}
