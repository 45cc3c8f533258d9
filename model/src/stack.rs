//! How much of a stack is recorded.

use serde::{Deserialize, Serialize};

/// How much of a stack is recorded, as requested.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stack {
    /// Managed frames, and native frames down to the first managed one.
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
