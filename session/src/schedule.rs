//! Decides when a session flushes and when it ends.

use std::time::{Duration, Instant};

/// The interval at which all data is written to the disk.
const FLUSH_INTERVAL: Duration = Duration::from_millis(500);

/// The times of a session.
#[derive(Debug)]
pub struct Schedule {
    started: Instant,
    /// When the events were disabled.
    stopped: Option<Instant>,
    flushed: Instant,
    /// True if the size limit of the recording is reached.
    size_reached: bool,
}

impl Schedule {
    /// Starts when the events have just been enabled.
    pub fn start() -> Self {
        let now = Instant::now();
        Self {
            started: now,
            stopped: None,
            flushed: now,
            size_reached: false,
        }
    }

    /// Records that the events were disabled.
    pub fn stop(&mut self) {
        self.stopped = Some(Instant::now());
    }

    /// Returns how long the events have been enabled.
    pub fn elapsed(&self) -> Duration {
        let until = self.stopped.unwrap_or_else(Instant::now);
        until.duration_since(self.started)
    }

    /// Returns true if the session ends by itself. `duration`: its maximum duration.
    pub fn is_over(&self, duration: Option<Duration>) -> bool {
        self.size_reached || duration.is_some_and(|duration| self.started.elapsed() >= duration)
    }

    /// Checks the size of the recording. Returns true if it has just reached its limit, which ends the session.
    pub fn reaches_size(&mut self, bytes: u64, limit: Option<u64>) -> bool {
        let reaches = !self.size_reached && limit.is_some_and(|limit| bytes >= limit);
        self.size_reached |= reaches;
        reaches
    }

    /// Returns true if a flush is due.
    pub fn flush_is_due(&self) -> bool {
        self.flushed.elapsed() >= FLUSH_INTERVAL
    }

    /// Records that everything was flushed.
    pub fn flushed(&mut self) {
        self.flushed = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_when_a_limit_is_reached() {
        let mut schedule = Schedule::start();
        assert!(!schedule.is_over(None) && !schedule.is_over(Some(Duration::from_secs(3600))));
        assert!(schedule.is_over(Some(Duration::ZERO)));
        assert!(!schedule.reaches_size(9, Some(10)) && !schedule.reaches_size(9, None));
        assert!(schedule.reaches_size(10, Some(10)), "it is said");
        assert!(!schedule.reaches_size(11, Some(10)), "once");
        assert!(schedule.is_over(None));
    }
}
