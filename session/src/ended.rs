//! Which processes have ended, and when is that final?

use super::{Session, SessionError, tracker};
use crate::request::TargetSpec;
use std::time::{Duration, Instant};
use varid_sampler::monotonic_ns;

/// For so long the last records of a process that has ended may come.
const MOURNING: Duration = Duration::from_secs(2);

impl Session {
    /// Ends that nobody told of, and those that have been told of long enough ago: what a
    /// process did last may still be in the rings for a while.
    pub(super) fn forget_the_dead(&mut self) -> Result<(), SessionError> {
        let left = monotonic_ns().saturating_sub(MOURNING.as_nanos() as u64);
        let mut unseen = Vec::new();
        self.tracked.retain(|_, tracked| {
            let ended = tracked.ended.map(|since| since.elapsed());
            let stays = ended.is_none_or(|ago| ago < MOURNING)
                && tracked.left.is_none_or(|since| since > left);
            if !stays {
                unseen.extend(tracked.unseen());
            }
            stays
        });
        self.tell_unseen(unseen);
        let mut untold = Vec::new();
        for (pid, tracked) in self
            .tracked
            .iter_mut()
            .filter(|(_, tracked)| tracked.ended.is_none())
        {
            if tracker::is_alive(*pid) {
                tracked.dead_since = None;
            } else if tracked
                .dead_since
                .get_or_insert_with(Instant::now)
                .elapsed()
                > MOURNING
            {
                untold.push(*pid);
            }
        }
        untold.into_iter().try_for_each(|pid| self.exit(pid, pid))
    }

    pub(super) fn exit(&mut self, pid: u32, tid: u32) -> Result<(), SessionError> {
        let Some(tracked) = self.tracked.get_mut(&pid) else {
            if pid == tid {
                self.tracker.forget(pid);
                self.refused.remove(&pid);
                // It may have been known as one to ignore.
                self.sampler(|sampler| sampler.remove_target(pid))?;
            }
            return Ok(());
        };
        tracked.main_thread_gone |= pid == tid;
        if tracked.ended.is_none() && tracked.main_thread_gone && !tracker::is_alive(pid) {
            let recorded = tracked.held.is_none() && tracked.left.is_none();
            if recorded && !matches!(self.options.target, TargetSpec::All) {
                // A command's children come and go.
                match self.options.target {
                    TargetSpec::Command(command, _) if command != pid => {
                        tracing::debug!("process {pid} has ended")
                    }
                    _ => tracing::info!("process {pid} has ended"),
                }
            }
            // On its way out it is sampled still: it is forgotten a little later.
            tracked.ended = Some(Instant::now());
            self.tracker.forget(pid);
            self.sampler(|sampler| sampler.remove_target(pid))?;
        }
        Ok(())
    }
}
