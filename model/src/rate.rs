//! How often is an event sampled?

use serde::{Deserialize, Serialize};

/// How often an event is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rate {
    /// Samples per second that the kernel steers for.
    Frequency(u64),
    /// Event counts between two samples; 0: the event is not sampled, its count is read with
    /// every sample of its leader.
    Period(u64),
}

impl Rate {
    /// Of an event that is read with its leader's samples.
    pub const READ: Self = Self::Period(0);
}
