//! When does a session flush, and when does it end?

use std::time::{Duration, Instant};

/// How often everything is brought to the disk.
const FLUSH_INTERVAL: Duration = Duration::from_millis(500);

/// A session's times.
#[derive(Debug)]
pub struct Schedule {
    started: Instant,
    /// When the events were disabled.
    stopped: Option<Instant>,
    flushed: Instant,
    /// A limit of the recording's size has been reached.
    size_reached: bool,
}

impl Schedule {
    /// A session whose events have just been enabled.
    pub fn start() -> Self {
        let now = Instant::now();
        Self {
            started: now,
            stopped: None,
            flushed: now,
            size_reached: false,
        }
    }

    /// The events are disabled.
    pub fn stop(&mut self) {
        self.stopped = Some(Instant::now());
    }

    /// How long the events have been enabled.
    pub fn elapsed(&self) -> Duration {
        let until = self.stopped.unwrap_or_else(Instant::now);
        until.duration_since(self.started)
    }

    /// Whether the session ends by itself. `duration`: how long it may take.
    pub fn is_over(&self, duration: Option<Duration>) -> bool {
        self.size_reached || duration.is_some_and(|duration| self.started.elapsed() >= duration)
    }

    /// The recording has so many bytes; true: it has just reached its limit, which ends the session.
    pub fn reaches_size(&mut self, bytes: u64, limit: Option<u64>) -> bool {
        let reaches = !self.size_reached && limit.is_some_and(|limit| bytes >= limit);
        self.size_reached |= reaches;
        reaches
    }

    /// Whether it is time to flush.
    pub fn flush_is_due(&self) -> bool {
        self.flushed.elapsed() >= FLUSH_INTERVAL
    }

    /// Everything has been flushed.
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
