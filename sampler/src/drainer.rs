//! Empties the rings while a session is busy with something else.
//!
//! A session reads symbols and what other processes have mapped, and the rings fill up meanwhile. A thread empties them until the session
//! waits for records again. A timer wakes it: most turns of a session are over before that.

use super::{Sampler, SamplerError};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::Builder;
use std::time::Duration;

/// How often the rings are emptied. A process that does nothing but map files fills a ring of 8 MB within a tenth of a second.
const INTERVAL: Duration = Duration::from_millis(10);

/// The thread, which ends with its sampler.
#[derive(Debug)]
pub struct Drainer(Arc<State>);

#[derive(Debug)]
struct State {
    /// Runs while the session is busy.
    timer: TimerFd,
    busy: AtomicBool,
}

impl Drainer {
    /// Starts it. It does nothing before [`Drainer::session_is_busy`].
    pub fn of(sampler: &Arc<Mutex<Sampler>>) -> Result<Self, SamplerError> {
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC)
            .map_err(|error| SamplerError::Drainer(error.into()))?;
        let state = Arc::new(State {
            timer,
            busy: AtomicBool::new(false),
        });
        let (theirs, sampler) = (Arc::clone(&state), Arc::downgrade(sampler));
        Builder::new()
            .name("varid-drainer".to_owned())
            .spawn(move || run(&sampler, &theirs))
            .map_err(SamplerError::Drainer)?;
        Ok(Self(state))
    }

    /// From now on the thread empties the rings.
    pub fn session_is_busy(&self) {
        self.0.busy.store(true, Ordering::Release);
        self.0.wake_at_intervals();
    }

    /// From now on the session waits for records itself.
    pub fn session_waits(&self) {
        self.0.busy.store(false, Ordering::Release);
        // One time too many does no harm.
        let _ = self.0.timer.unset();
    }
}

impl Drop for Drainer {
    fn drop(&mut self) {
        // It finds its sampler gone when it looks next.
        self.0.wake_at_intervals();
    }
}

impl State {
    fn wake_at_intervals(&self) {
        let intervals = Expiration::Interval(TimeSpec::from_duration(INTERVAL));
        if let Err(error) = self.timer.set(intervals, TimerSetTimeFlags::empty()) {
            // A timer of ours takes any time: without it rings may fill up, which is counted.
            tracing::warn!(%error, "the rings are not looked after");
        }
    }
}

fn run(sampler: &Weak<Mutex<Sampler>>, state: &State) {
    while state.timer.wait().is_ok() {
        let Some(sampler) = sampler.upgrade() else {
            return;
        };
        if state.busy.load(Ordering::Acquire) {
            let mut sampler = sampler.lock().unwrap_or_else(PoisonError::into_inner);
            sampler.collect_while_busy();
        }
    }
}
