//! The sampling rate of an event.

use serde::{Deserialize, Serialize};

/// The sampling rate of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rate {
    /// The number of samples per second that the kernel aims at.
    Frequency(u64),
    /// The event count between two samples. 0: the event is not sampled, and its count is read with every sample of its leader.
    Period(u64),
}

impl Rate {
    /// The rate of an event that is read with its leader's samples.
    pub const READ: Self = Self::Period(0);
}
