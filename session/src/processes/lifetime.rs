//! The start and the end of a tracked process.

use crate::tasks;
use std::time::{Duration, Instant};
use varid_model::{MonotonicNs, Pid, Tid};

/// How long the last records of an ended process may still arrive. A process also counts as ended if it has been gone for this long
/// without an exit record.
const GRACE: Duration = Duration::from_secs(2);

/// The start and the end of a tracked process, as far as known.
#[derive(Debug)]
pub struct Lifetime {
    /// Time of its fork or exec, or None if it was already running when it was found.
    started: Option<Instant>,
    /// Time at which the session found it, or of its last exec.
    found: Instant,
    main_thread_ended: bool,
    /// Time at which it was first missing without an exit record.
    missing_since: Option<Instant>,
    ended: Option<Instant>,
    /// The time from which on it is not in the target.
    left: Option<MonotonicNs>,
}

impl Lifetime {
    /// Makes the lifetime of a process that has just started, or was running before.
    pub fn new(is_new: bool) -> Self {
        Self {
            started: is_new.then(Instant::now),
            found: Instant::now(),
            main_thread_ended: false,
            missing_since: None,
            ended: None,
            left: None,
        }
    }

    /// Handles an exec.
    pub fn restart(&mut self) {
        self.found = Instant::now();
        self.started = Some(self.found);
    }

    /// Returns true if it started less than this time ago.
    pub fn is_younger_than(&self, age: Duration) -> bool {
        self.started.is_some_and(|started| started.elapsed() < age)
    }

    /// Returns true if the session found it less than this time ago.
    pub fn is_known_for_less_than(&self, time: Duration) -> bool {
        self.found.elapsed() < time
    }

    /// Returns true if it is running, as far as known, and in the target.
    pub fn is_active(&self) -> bool {
        !self.has_ended() && !self.has_left()
    }

    /// Returns true if it is known to have ended.
    pub fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Returns true if it is no longer in the target.
    pub fn has_left(&self) -> bool {
        self.left.is_some()
    }

    /// The time at which it left the target.
    pub fn left(&self) -> Option<MonotonicNs> {
        self.left
    }

    /// Returns true if it had left the target at a time.
    pub fn has_left_by(&self, time: MonotonicNs) -> bool {
        self.left.is_some_and(|left| left <= time)
    }

    /// Removes it from the target from a time on.
    pub fn leave(&mut self, time: MonotonicNs) {
        self.left = Some(time);
    }

    /// Handles the end of one of its threads. Returns true if the process has ended now.
    pub fn thread_ended(&mut self, pid: Pid, tid: Tid) -> bool {
        self.main_thread_ended |= tid.is_main_thread_of(pid);
        let ends = !self.has_ended() && self.main_thread_ended && !tasks::is_alive(pid);
        if ends {
            self.ended = Some(Instant::now());
        }
        ends
    }

    /// Returns true if no more records of it can arrive. `now`: the present time.
    pub fn is_over(&self, now: MonotonicNs) -> bool {
        self.ended.is_some_and(|ended| ended.elapsed() >= GRACE)
            || self.left.is_some_and(|left| now.since(left) >= GRACE)
    }

    /// Checks whether a process without an exit record still exists. Returns true if it has been missing for so long that it
    /// counts as ended.
    pub fn has_vanished(&mut self, pid: Pid) -> bool {
        if self.has_ended() {
            return false;
        }
        if tasks::is_alive(pid) {
            self.missing_since = None;
            return false;
        }
        let since = self.missing_since.get_or_insert_with(Instant::now);
        since.elapsed() > GRACE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_left_is_kept_until_its_last_records_are_read() {
        let mut lifetime = Lifetime::new(true);
        assert!(lifetime.is_active() && !lifetime.is_over(MonotonicNs::new(u64::MAX)));
        lifetime.leave(MonotonicNs::new(100));
        let at = |time: u64| MonotonicNs::new(time);
        assert!(!lifetime.has_left_by(at(99)) && lifetime.has_left_by(at(100)));
        assert!(!lifetime.is_active() && !lifetime.is_over(at(200)));
        assert!(lifetime.is_over(at(100 + GRACE.as_nanos() as u64)));
    }

    #[test]
    fn a_process_ends_with_its_main_thread_only_when_no_thread_is_left() {
        let own = Pid::new(std::process::id());
        let mut lifetime = Lifetime::new(false);
        assert!(!lifetime.thread_ended(own, own.main_thread()));
        assert!(!lifetime.has_vanished(own) && lifetime.is_active());
        let gone = Pid::new(u32::MAX >> 2);
        let mut lifetime = Lifetime::new(false);
        assert!(!lifetime.thread_ended(gone, Tid::new(1)));
        assert!(lifetime.thread_ended(gone, gone.main_thread()));
        assert!(!lifetime.thread_ended(gone, gone.main_thread()));
        assert!(lifetime.has_ended());
    }
}
