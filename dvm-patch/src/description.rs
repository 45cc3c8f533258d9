//! The data that a VM publishes about itself.

use crate::abi::{self, CodeRange, Layout, Thread, Trace};
use varid_model::{MonotonicNs, Pid};

/// The contents of a tunnel, copied and checked for consistency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// `abi::VM_*`, or a number that this version of varid does not know.
    pub vm: u32,
    /// How its frames are linked.
    pub layout: Layout,
    /// Ranges of its own code with their purposes; sorted, disjoint.
    pub ranges: Vec<CodeRange>,
    /// The bytecode that it executes; sorted, disjoint.
    pub codes: Vec<PublishedBytecode>,
    /// The threads that it lists. May be empty.
    pub threads: Vec<Thread>,
    /// The traces that it has compiled, by their starts, which are unique.
    pub traces: Vec<Trace>,
    /// Its control page, or None if it cannot count calls.
    pub control: Option<abi::VmFile>,
    /// Its counts, or None if it has not counted any call.
    pub calls: Option<abi::VmFile>,
    /// What it does at a call, `abi::TACTIC_*`.
    pub tactic: u32,
    /// The process that wrote it, as an id in its own pid namespace.
    pub pid: Pid,
    /// When it was made.
    pub time: MonotonicNs,
    /// True if the tunnel is that of a parent process, from before a fork. Later changes of the child's mappings are not in it.
    pub inherited: bool,
}

/// The kind of bytecode that a VM executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BytecodeKind {
    /// A dex file.
    Dex,
    /// An image of the VM's own format. varid must support the format to name its methods.
    Image,
}

/// Bytecode that the VM executes: a dex file or another image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedBytecode {
    /// First address, in the process.
    pub start: u64,
    /// Bytes.
    pub size: u64,
    /// When it was published.
    pub time: MonotonicNs,
    /// What it is.
    pub kind: BytecodeKind,
    /// `abi::CODE_*` flags.
    pub flags: u32,
    /// The VM's name for it. It must not be trusted as a path.
    pub location: String,
}
