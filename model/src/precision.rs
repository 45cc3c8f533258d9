//! How precisely the bytecode instruction of a managed frame is known.

/// How precisely the bytecode instruction of a frame is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Precision {
    /// It is exactly that instruction.
    #[default]
    Exact,
    /// It is a nearby instruction of the same method: compilers only record the bytecode instructions of calls, not those of the code
    /// between them.
    Approximate,
}

impl Precision {
    /// Returns true if it is not exact.
    #[must_use]
    pub const fn is_approximate(self) -> bool {
        matches!(self, Self::Approximate)
    }
}
