//! How much of a stack is recorded?

use serde::{Deserialize, Serialize};

/// How much of the stack was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stack {
    /// Managed frames, and native ones down to the first of them.
    #[default]
    Vertical,
    /// Every frame.
    Full,
    /// Only the leaf.
    None,
}

impl Stack {
    /// The name that manifests, configurations and the command line use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vertical => "vertical",
            Self::Full => "full",
            Self::None => "none",
        }
    }
}
