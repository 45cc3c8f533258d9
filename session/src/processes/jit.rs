//! Reads and writes the names of code that processes generate.

use super::{Processes, Tracked};
use crate::recorder::{Recorder, RecorderError};
use std::time::{Duration, Instant};
use varid_model::MonotonicNs;
use varid_process::{ReadBudget, clock};

/// The maximum number of bytes and the maximum time to read names per turn, for all processes.
const BYTES: u64 = 1 << 22;
const TIME: Duration = Duration::from_millis(100);
/// Maximum number of bytes per ended process, and maximum time for all of them: there is no later turn for them.
const LAST_BYTES: u64 = 1 << 26;
const LAST_TIME: Duration = Duration::from_secs(1);

impl Processes {
    /// Reads the names of code that processes have published until `now`; at the `last` turn all of them.
    pub fn read_jit_names(&mut self, now: MonotonicNs, last: bool) {
        let (ending, others): (Vec<_>, Vec<_>) = self
            .tracked
            .values_mut()
            .filter(|tracked| tracked.managed.process.jit.needs_names())
            .partition(|tracked| last || !tracked.is_active());
        let share = BYTES.checked_div(others.len() as u64).unwrap_or(BYTES);
        read_names(ending, now, (LAST_BYTES, LAST_TIME), true);
        read_names(others, now, (share, TIME), false);
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

/// Reads names of some processes: a maximum number of bytes from each, and a maximum time for all. Time that one process does not
/// need is shared by the following ones. `is_last`: there may be no later turn.
fn read_names(
    processes: Vec<&mut Tracked>,
    now: MonotonicNs,
    (bytes, time): (u64, Duration),
    is_last: bool,
) {
    let deadline = clock::after(time);
    let mut left = u32::try_from(processes.len()).unwrap_or(u32::MAX);
    for tracked in processes {
        let time = deadline.saturating_duration_since(Instant::now());
        let until = Some(clock::after(time.checked_div(left).unwrap_or_default()));
        let budget = ReadBudget {
            bytes,
            until,
            is_last,
        };
        tracked.managed.process.refresh_jit(now, &budget);
        left = left.saturating_sub(1);
    }
}
