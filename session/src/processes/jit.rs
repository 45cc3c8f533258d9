//! Reads and writes the names of code that processes generate.

use super::{Processes, Tracked};
use crate::recorder::{Recorder, RecorderError};
use std::time::{Duration, Instant};
use varid_model::MonotonicNs;
use varid_process::{ReadBudget, clock};

/// The maximum number of bytes and the maximum time to read names per turn, for all processes.
const BYTES: u64 = 1 << 22;
const TIME: Duration = Duration::from_millis(100);
/// The limits for ended processes.
const LAST: NameLimits = NameLimits {
    bytes: 1 << 26,
    time: Duration::from_secs(1),
    is_last: true,
};

/// Limits for reading names of some processes.
#[derive(Debug, Clone, Copy)]
struct NameLimits {
    /// The maximum number of bytes from each process.
    bytes: u64,
    /// The maximum time for all of them.
    time: Duration,
    /// True if there may be no later turn.
    is_last: bool,
}

impl Processes {
    /// Reads the names of code that processes have published until `now`; at the `last` turn all of them.
    pub fn read_jit_names(&mut self, now: MonotonicNs, last: bool) {
        let (ending, others): (Vec<_>, Vec<_>) = self
            .tracked
            .values_mut()
            .filter(|tracked| tracked.managed.process.jit.needs_names())
            .partition(|tracked| last || !tracked.is_active());
        let share = BYTES.checked_div(others.len() as u64).unwrap_or(BYTES);
        let limits = NameLimits {
            bytes: share,
            time: TIME,
            is_last: false,
        };
        read_names(ending, now, LAST);
        read_names(others, now, limits);
    }

    /// Writes new names. At the `last` turn, and for processes that have ended, writes all of them.
    pub fn write_jit_names(
        &mut self,
        last: bool,
        recorder: &mut Recorder,
    ) -> Result<(), RecorderError> {
        let mut written = Ok(());
        for tracked in self.tracked.values_mut() {
            let last = last || !tracked.is_active();
            // An error with one process must not affect the names of others.
            written = written.and(recorder.write_jit_names(&mut tracked.managed, last));
        }
        written
    }
}

/// Reads names of some processes. Time that one process does not need is shared by the following ones.
fn read_names(processes: Vec<&mut Tracked>, now: MonotonicNs, limits: NameLimits) {
    let deadline = clock::after(limits.time);
    let mut left = u32::try_from(processes.len()).unwrap_or(u32::MAX);
    for tracked in processes {
        let time = deadline.saturating_duration_since(Instant::now());
        let until = Some(clock::after(time.checked_div(left).unwrap_or_default()));
        let budget = ReadBudget {
            bytes: limits.bytes,
            until,
            is_last: limits.is_last,
        };
        tracked.managed.process.refresh_jit(now, &budget);
        left = left.saturating_sub(1);
    }
}
