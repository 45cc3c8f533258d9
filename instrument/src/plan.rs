//! What is counted?

use crate::{MethodPattern, MethodReference};

/// What the rewritten code counts, the same for all classes of a VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The depth of detail.
    pub counted: Counted,
    /// What is done with methods that the VM's compilers replace.
    pub intrinsics: Intrinsics,
    /// The method whose first call begins recording in the whole VM, such as `main`. None: the agent calls
    /// [`BEGIN`](crate::runtime::BEGIN).
    pub start: Option<MethodReference>,
    /// The method in whose dynamic extent calls are recorded, on each thread: from its entry to its exit. None: all calls are.
    pub within: Option<MethodPattern>,
}

/// The depth of detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Calls of methods, by calling context with call sites.
    Calls,
    /// Also executions of basic blocks, and at which bci exceptions left them.
    Blocks,
    /// Also the order of calls and of some blocks in each thread: see [`runtime::order`](crate::runtime::order).
    Order,
}

impl Counted {
    /// Returns true if blocks are counted.
    #[must_use]
    pub const fn has_blocks(self) -> bool {
        matches!(self, Self::Blocks | Self::Order)
    }
}

/// What is done with methods that carry HotSpot's annotation `IntrinsicCandidate`: compiled callers execute machine code in place of a candidate's
/// bytecode, so code added to it is executed by the interpreter only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intrinsics {
    /// Each is a leaf: neither its own calls nor what it calls is recorded. The same counts come out interpreted and compiled.
    Leaves,
    /// They are counted as other methods are, without the annotation: so the compilers compile their bytecode. Those that the VM needs as they are,
    /// or for which its interpreter has machine code, too, are leaves.
    ///
    /// The VM has to run with `-XX:-OptimizeStringConcat` and `-XX:-EliminateAutoBox`: C2 also removes calls of some candidates by their names.
    Expanded,
}
