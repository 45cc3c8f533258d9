//! Is a conditional branch taken?

/// Whether a conditional branch is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Taken,
    Not,
}

impl Outcome {
    pub(crate) const BOTH: [Self; 2] = [Self::Taken, Self::Not];

    /// Returns what a key has behind the opcode.
    pub(crate) const fn suffix(self) -> &'static str {
        match self {
            Self::Taken => "_taken",
            Self::Not => "_not",
        }
    }
}
