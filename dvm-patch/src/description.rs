//! What a VM says about itself, once it has been checked.

use crate::abi::{self, CodeRange, Layout, Thread, Trace};
use varid_model::{MonotonicNs, Pid};

/// What a VM says about itself, checked for consistency and copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// `abi::VM_*`, or a number that this version does not know.
    pub vm: u32,
    /// How its frames are linked.
    pub layout: Layout,
    /// What its code does; sorted, disjoint.
    pub ranges: Vec<CodeRange>,
    /// What it executes; sorted, disjoint.
    pub codes: Vec<PublishedBytecode>,
    /// Threads that it lists; not every VM lists any.
    pub threads: Vec<Thread>,
    /// Traces that it has compiled; sorted, each of another start.
    pub traces: Vec<Trace>,
    /// Where it reads what is wanted of it; None: it counts no calls.
    pub control: Option<abi::VmFile>,
    /// Where it counts calls; None: it never has.
    pub calls: Option<abi::VmFile>,
    /// What it does at a call, `abi::TACTIC_*`.
    pub tactic: u32,
    /// Its owner, in the owner's own pid namespace.
    pub pid: Pid,
    /// When it was made.
    pub time: MonotonicNs,
    /// Another process than the one asked about owns it: a parent, from before the fork.
    /// What is mapped since then may be missing here, or here and not in the child.
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
