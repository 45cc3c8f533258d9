//! Ids of processes and threads.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A process id, in the initial pid namespace unless a function says otherwise.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Pid(u32);

/// A thread id, in the initial pid namespace unless a function says otherwise.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Tid(u32);

impl Pid {
    /// The kernel itself, as in the records of its mappings.
    pub const KERNEL: Self = Self(u32::MAX);

    /// The process with this id.
    #[must_use]
    pub const fn new(id: u32) -> Self {
        Self(id)
    }

    /// Its id.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Its first thread, which has the same id.
    #[must_use]
    pub const fn main_thread(self) -> Tid {
        Tid(self.0)
    }
}

impl Tid {
    /// The thread with this id.
    #[must_use]
    pub const fn new(id: u32) -> Self {
        Self(id)
    }

    /// Its id.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Returns true if it is the first thread of the process.
    #[must_use]
    pub const fn is_main_thread_of(self, pid: Pid) -> bool {
        self.0 == pid.0
    }
}

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_s_first_thread_has_its_id() {
        let pid = Pid::new(7);
        assert!(pid.main_thread().is_main_thread_of(pid));
        assert!(!Tid::new(8).is_main_thread_of(pid));
        assert_eq!(
            (pid.to_string(), Tid::new(8).to_string()),
            ("7".into(), "8".into())
        );
    }
}
