//! What is counted, and how?

use varid_instrument::Counted;

/// What the rewritten code counts, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The depth of detail. The order of calls is not recorded.
    pub counted: Counted,
    /// How methods find their nodes.
    pub entries: Entries,
}

/// How a method finds its node in the tree, at its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entries {
    /// By a native method: cheaper where the code is interpreted.
    Called,
    /// By instructions, in one thread, and in all others by the native method: cheaper where the code is compiled.
    Inline,
}
