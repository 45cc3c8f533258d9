//! Empties the rings while a session is busy with something else.
//!
//! While a session reads symbols and the mappings of other processes, the rings fill up. A thread drains them until the session waits for
//! records again. A timer wakes the thread, because the session is busy for less than the timer's interval most of the time.

use super::{Sampler, SamplerError};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::Builder;
use std::time::Duration;

/// The interval between two drains. A process that only maps files can fill a ring of 8 MB within a tenth of a second.
const INTERVAL: Duration = Duration::from_millis(10);

/// The draining thread. It ends with its sampler.
#[derive(Debug)]
pub struct Drainer(Arc<State>);

#[derive(Debug)]
struct State {
    /// Armed while the session is busy.
    timer: TimerFd,
    busy: AtomicBool,
}

impl Drainer {
    /// Starts the thread, which is idle until [`Drainer::session_is_busy`] is called.
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

    /// Makes the thread drain the rings.
    pub fn session_is_busy(&self) {
        self.0.busy.store(true, Ordering::Release);
        self.0.wake_at_intervals();
    }

    /// Makes the thread idle: the session drains the rings.
    pub fn session_waits(&self) {
        self.0.busy.store(false, Ordering::Release);
        // One extra wake-up does no harm.
        let _ = self.0.timer.unset();
    }
}

impl Drop for Drainer {
    fn drop(&mut self) {
        // The thread ends at its next wake-up, because the sampler is gone.
        self.0.wake_at_intervals();
    }
}

impl State {
    fn wake_at_intervals(&self) {
        let intervals = Expiration::Interval(TimeSpec::from_duration(INTERVAL));
        if let Err(error) = self.timer.set(intervals, TimerSetTimeFlags::empty()) {
            // Arming an own timer does not fail in practice. If it does, the rings may fill up, and the losses are counted.
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
