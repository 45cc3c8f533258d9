//! When is a process recorded no longer?

use super::Processes;
use super::changes::TaskEvent;
use super::tracked::Tracked;
use crate::SessionError;
use crate::output::Output;
use crate::request::TargetSpec;
use crate::sampling::Sampling;
use varid_model::{MonotonicNs, Pid, Tid};
use varid_process::reader;
use varid_recording::SessionRecord;
use varid_sampler::monotonic_ns;

impl Processes {
    /// A process or a thread has ended.
    pub fn exit(
        &mut self,
        event: TaskEvent,
        sampling: &Sampling,
        output: &mut Output,
    ) -> Result<(), SessionError> {
        let TaskEvent {
            time,
            pid,
            ppid,
            tid,
            ptid,
        } = event;
        if self.contains(pid) {
            output.write(&SessionRecord::Exit {
                time,
                pid,
                ppid,
                tid,
                ptid,
            })?;
        }
        self.thread_ended(pid, tid, sampling)
    }

    fn thread_ended(
        &mut self,
        pid: Pid,
        tid: Tid,
        sampling: &Sampling,
    ) -> Result<(), SessionError> {
        let Some(tracked) = self.tracked.get_mut(&pid) else {
            if tid.is_main_thread_of(pid) {
                self.tracker.forget(pid);
                self.refused.remove(&pid);
                // The source may have been told to ignore it.
                sampling.remove_target(pid)?;
            }
            return Ok(());
        };
        if tid.is_main_thread_of(pid) {
            reader::main_thread_ended(pid);
        }
        if tracked.lifetime.thread_ended(pid, tid) {
            if !tracked.awaits_name() && !tracked.lifetime.has_left() {
                match self.tracker.target() {
                    TargetSpec::All => {}
                    // A command's children come and go.
                    TargetSpec::Command(command, _) if *command != pid => {
                        tracing::debug!("process {pid} has ended")
                    }
                    _ => tracing::info!("process {pid} has ended"),
                }
            }
            // Its last samples may still come: it stays tracked for a while.
            self.tracker.forget(pid);
            sampling.remove_target(pid)?;
        }
        Ok(())
    }

    /// Removes processes that have ended or left the target so long ago that no record of them can come. Also
    /// detects processes that ended without an exit record.
    pub fn remove_ended(
        &mut self,
        sampling: &Sampling,
        output: &mut Output,
    ) -> Result<(), SessionError> {
        let now = monotonic_ns();
        let mut unseen = Vec::new();
        self.tracked.retain(|_, tracked| {
            let is_over = tracked.lifetime.is_over(now);
            if is_over {
                unseen.extend(tracked.unseen());
            }
            !is_over
        });
        output.note_unseen(unseen);
        let mut vanished = Vec::new();
        for (pid, tracked) in &mut self.tracked {
            if tracked.lifetime.has_vanished(*pid) {
                vanished.push(*pid);
            }
        }
        vanished
            .into_iter()
            .try_for_each(|pid| self.thread_ended(pid, pid.main_thread(), sampling))
    }

    /// The session ends: says of every process why its methods are not seen.
    pub fn note_all_unseen(&self, output: &mut Output) {
        output.note_unseen(self.tracked.values().flat_map(Tracked::unseen));
    }

    /// A process leaves the target: it is not recorded from a time on.
    pub(super) fn leave(
        &mut self,
        pid: Pid,
        time: MonotonicNs,
        sampling: &Sampling,
        output: &mut Output,
    ) -> Result<(), SessionError> {
        let Some(tracked) = self.tracked.get_mut(&pid) else {
            return Ok(());
        };
        let name = &tracked.names.own;
        tracing::info!("process {pid} ({name}) is no longer recorded");
        // Samples of an earlier time may still come.
        tracked.lifetime.leave(time);
        let latest = sampling.latest();
        let counted = self.calls.read_last(tracked, &mut output.recorder, latest);
        output.tolerate(counted)?;
        sampling.ignore(pid);
        for other in sampling.with(|sampler| sampler.detach(pid)) {
            let attached = sampling.attach_threads(other);
            self.refuse_on_error(other, attached, output)?;
        }
        Ok(())
    }
}
