//! Empties the rings while a session is busy with something else.
//!
//! A session reads symbols, and waits for what other processes have mapped; meanwhile the rings fill up. A thread
//! looks after them until the session waits for records again.

use super::{Sampler, SamplerError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{Builder, Thread, park, sleep};
use std::time::Duration;

/// How long the rings are left alone: a process that does nothing but map files fills one of 8 MB within a tenth of a second.
const INTERVAL: Duration = Duration::from_millis(10);

/// The thread, which ends with its sampler.
#[derive(Debug)]
pub struct Drainer {
    thread: Thread,
    busy: Arc<AtomicBool>,
}

impl Drainer {
    /// Starts it. It does nothing before [`Drainer::session_is_busy`].
    pub fn of(sampler: &Arc<Mutex<Sampler>>) -> Result<Self, SamplerError> {
        let busy = Arc::new(AtomicBool::new(false));
        let (theirs, sampler) = (Arc::clone(&busy), Arc::downgrade(sampler));
        let thread = Builder::new()
            .name("varid-drainer".to_owned())
            .spawn(move || run(&sampler, &theirs))
            .map_err(SamplerError::Drainer)?;
        let thread = thread.thread().clone();
        Ok(Self { thread, busy })
    }

    /// From now on the rings are looked after.
    pub fn session_is_busy(&self) {
        self.busy.store(true, Ordering::Release);
        self.thread.unpark();
    }

    /// From now on they are not: the session waits for them itself.
    pub fn session_waits(&self) {
        self.busy.store(false, Ordering::Release);
    }
}

impl Drop for Drainer {
    fn drop(&mut self) {
        // It finds its sampler gone, now or when it looks next.
        self.session_is_busy();
    }
}

fn run(sampler: &Weak<Mutex<Sampler>>, busy: &AtomicBool) {
    loop {
        park();
        while busy.load(Ordering::Acquire) {
            sleep(INTERVAL);
            let Some(sampler) = sampler.upgrade() else {
                return;
            };
            if busy.load(Ordering::Acquire) {
                let mut sampler = sampler.lock().unwrap_or_else(PoisonError::into_inner);
                sampler.collect_in_between();
            }
        }
    }
}
