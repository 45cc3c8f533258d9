//! The parts of a session's contexts: counters, processes, methods, sites, nodes, counts, thread switches, traces.

use varid_model::{Address, CodeUnits, MonotonicNs, Pid, Tid};

use super::ids::{CounterId, MethodId, NodeId, SiteId};

/// A counter of contexts. All processes of a session have the same counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextCounter {
    /// Its name, such as `calls`.
    pub name: String,
    /// Its unit: `calls`, `bytecodes`, `blocks`, `cycles`.
    pub unit: String,
}

/// A process that has contexts. Each process is listed once, even if it left the session and came back, or executed another program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextProcess {
    /// The process.
    pub pid: Pid,
    /// The name and build of its VM. If the process executed another program, it is the latest VM. Empty if unknown.
    pub vm: String,
    /// The reason why counts or contexts are missing. None if they are complete.
    pub incomplete: Option<String>,
}

/// A method that has contexts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextMethod {
    /// The process.
    pub pid: Pid,
    /// The method's first instruction, or its slot in the remap range, as in a sample.
    pub address: Address,
    /// The length of its bytecode. None if it has no bytecode, or the length is unknown.
    pub code: Option<CodeUnits>,
}

/// An instruction that calls a method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextSite {
    /// The calling method.
    pub method: MethodId,
    /// The offset of the instruction in the method's bytecode.
    pub pc: CodeUnits,
    /// The instruction's opcode, as the VM's bytecode defines it.
    pub opcode: u8,
    /// The method that the instruction names. The called method may override it. None if unknown.
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
    /// The thread. None if the tree includes all threads of the process.
    pub tid: Option<Tid>,
    /// The calling context, in the same process. None if it is unknown, or the VM is the caller.
    pub parent: Option<NodeId>,
    /// The method's first instruction, or its slot in the remap range, as in a sample.
    pub address: Address,
    /// The site in the parent. None if it is unknown, or not bytecode.
    pub site: Option<SiteId>,
    /// A time at which the address belonged to that method.
    pub time: MonotonicNs,
}

/// The value of a counter in a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextCount {
    /// The counter.
    pub counter: CounterId,
    /// The place in the method: an offset in its bytecode, in [`CodeUnits`]. None for the method as a whole.
    pub place: Option<u32>,
    /// The value, in the counter's unit.
    pub value: u64,
}

/// The time at which a trace switches to another thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadSwitch {
    /// The time.
    pub time: MonotonicNs,
    /// The previous thread.
    pub from: Tid,
    /// The next thread.
    pub to: Tid,
}

/// The compression of a trace's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceCompression {
    /// No compression.
    Plain,
    /// Each part is one zstd frame (RFC 8878).
    Zstd,
}

/// A part of a trace of calls. [`SessionReader::read_trace`](crate::SessionReader::read_trace) reads its bytes. Their
/// format is defined by the VM's agent and the trace's readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextTrace {
    /// The process.
    pub pid: Pid,
    /// The thread. None if the trace includes all threads of the process.
    pub tid: Option<Tid>,
    /// The compression of the bytes.
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
