//! When did a tracked process come and go?

use crate::tasks;
use std::time::{Duration, Instant};
use varid_model::{MonotonicNs, Pid, Tid};

/// For so long the last records of a process that has ended may come. So long, too, a process has to be gone without a
/// record of its end before it counts as ended.
const GRACE: Duration = Duration::from_secs(2);

/// When a tracked process came and went, as far as is known.
#[derive(Debug)]
pub struct Lifetime {
    /// When it was forked or executed another program; None: it ran already when it was found.
    started: Option<Instant>,
    /// When the session found it, or it executed another program.
    found: Instant,
    main_thread_ended: bool,
    /// When it was first not found, though no record said that it has ended.
    missing_since: Option<Instant>,
    ended: Option<Instant>,
    /// From this time on it is not in the target.
    left: Option<MonotonicNs>,
}

impl Lifetime {
    /// A process that has just started, or has run before.
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

    /// It executes another program.
    pub fn restart(&mut self) {
        self.found = Instant::now();
        self.started = Some(self.found);
    }

    /// Whether it started less than this time ago.
    pub fn is_younger_than(&self, age: Duration) -> bool {
        self.started.is_some_and(|started| started.elapsed() < age)
    }

    /// Whether the session found it less than this time ago.
    pub fn is_known_for_less_than(&self, time: Duration) -> bool {
        self.found.elapsed() < time
    }

    /// Whether it runs, as far as is known, and is in the target.
    pub fn is_active(&self) -> bool {
        !self.has_ended() && !self.has_left()
    }

    /// Whether it is known to have ended.
    pub fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Whether it is no longer in the target.
    pub fn has_left(&self) -> bool {
        self.left.is_some()
    }

    /// When it left the target.
    pub fn left(&self) -> Option<MonotonicNs> {
        self.left
    }

    /// Whether it was not in the target at a time any more.
    pub fn has_left_by(&self, time: MonotonicNs) -> bool {
        self.left.is_some_and(|left| left <= time)
    }

    /// It is not in the target from a time on.
    pub fn leave(&mut self, time: MonotonicNs) {
        self.left = Some(time);
    }

    /// A thread of it has ended; true: so has, now, the process.
    pub fn thread_ended(&mut self, pid: Pid, tid: Tid) -> bool {
        self.main_thread_ended |= tid.is_main_thread_of(pid);
        let ends = !self.has_ended() && self.main_thread_ended && !tasks::is_alive(pid);
        if ends {
            self.ended = Some(Instant::now());
        }
        ends
    }

    /// Whether no record of it can come any more. `now`: the time now.
    pub fn is_over(&self, now: MonotonicNs) -> bool {
        self.ended.is_some_and(|ended| ended.elapsed() >= GRACE)
            || self.left.is_some_and(|left| now.since(left) >= GRACE)
    }

    /// Looks whether a process of which no record said that it has ended is there; true: it has been missing for so
    /// long that it has ended.
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
