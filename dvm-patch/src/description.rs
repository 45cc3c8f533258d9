//! What does a VM publish about itself?

use crate::abi::{self, CodeRange, Layout, Thread, Trace};
use varid_model::{MonotonicNs, Pid};

/// The contents of a tunnel, copied and checked for consistency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// `abi::VM_*`, or a number that this version does not know.
    pub vm: u32,
    /// How its frames are linked.
    pub layout: Layout,
    /// Ranges of its own code by purpose; sorted, disjoint.
    pub ranges: Vec<CodeRange>,
    /// The bytecode that it executes; sorted, disjoint.
    pub codes: Vec<PublishedBytecode>,
    /// The threads that it lists, if it lists any.
    pub threads: Vec<Thread>,
    /// The traces that it has compiled, by their starts, which differ.
    pub traces: Vec<Trace>,
    /// The place of its control page; None: it cannot count calls.
    pub control: Option<abi::VmFile>,
    /// The place of its counts; None: it has not counted any call.
    pub calls: Option<abi::VmFile>,
    /// What it does at a call, `abi::TACTIC_*`.
    pub tactic: u32,
    /// The process that wrote it, by its id in its own pid namespace.
    pub pid: Pid,
    /// When it was made.
    pub time: MonotonicNs,
    /// The tunnel is that of a parent process, from before a fork. Changes of the child's mappings since then are not in it.
    pub inherited: bool,
}

/// What kind of bytecode a VM executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BytecodeKind {
    /// A dex file.
    Dex,
    /// An image of the VM's own format, which varid must know to name what is in it.
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
    /// The VM's name for it; not to be trusted as a path.
    pub location: String,
}
