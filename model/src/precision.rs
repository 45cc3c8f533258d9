//! How well is the instruction known that a managed frame executes?

/// How well the bytecode instruction is known that a frame executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Precision {
    /// It is that instruction.
    #[default]
    Exact,
    /// It is one of the same method that a compiler noted down nearby: compiled code says of its calls which instructions they are, and
    /// not of what lies between them.
    Approximate,
}

impl Precision {
    /// Whether it is not known for certain.
    #[must_use]
    pub const fn is_approximate(self) -> bool {
        matches!(self, Self::Approximate)
    }
}
