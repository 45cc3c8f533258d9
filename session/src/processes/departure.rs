//! Ends the recording of processes.

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
    /// Handles the end of a process or a thread.
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
                // The source may have been set to ignore it.
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
                    // The end of a command's children is not worth a message.
                    TargetSpec::Command(command, _) if *command != pid => {
                        tracing::debug!("process {pid} has ended")
                    }
                    _ => tracing::info!("process {pid} has ended"),
                }
            }
            // It stays tracked for a while, because its last samples may still arrive.
            self.tracker.forget(pid);
            sampling.remove_target(pid)?;
        }
        Ok(())
    }

    /// Removes processes that ended or left the target so long ago that no more records of them can arrive. Also detects processes
    /// that have ended without an exit record.
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

    /// At the end of the session: notes for every process why its methods are missing.
    pub fn note_all_unseen(&self, output: &mut Output) {
        output.note_unseen(self.tracked.values().flat_map(Tracked::unseen));
    }

    /// Stops recording a process that has left the target, from a time on.
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
        // Samples from before this time may still arrive.
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
