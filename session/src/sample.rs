//! What becomes of a sample: whose it is, whether it is kept, dropped or held, what is written of it.

use super::filter::{Filter, Filtered};
use super::recorder::{Recorder, RecorderError};
use super::{LAYOUT_TRIALS, MAX_HELD, Session, SessionError, tracker};
use crate::request::TargetSpec;
use varid_model::{Address, MonotonicNs, Period, Pid, Stack, Tid};
use varid_recording::{CpuMode, Sample, SessionRecord};
use varid_sampler::decode::Sampled;
use varid_shim::flags;
use varid_vm::ManagedProcess;
use varid_vm::attribution::{attribute, cached_callchain};

impl Session {
    /// A sample of a process that is not tracked: it may have to be from now on.
    fn first_sample(&mut self, mut sampled: Box<Sampled>) -> Result<(), SessionError> {
        let pid = sampled.record.pid;
        let all = matches!(self.options.target, TargetSpec::All);
        if !all || pid == std::process::id() || self.refused.contains_key(&pid) {
            return Ok(());
        }
        if !tracker::is_alive(pid) {
            // On its way out: nothing of it can be read any more.
            let mut gone = ManagedProcess::new(pid, self.options.vms);
            let stack = self.options.stack;
            let mut filter = Filter::of(&self.tracker.selection.terms("", "").methods);
            let recorder = &mut self.recorder;
            let written = write_sample(&mut sampled, &mut gone, recorder, stack, filter.as_mut());
            return self.written(written);
        }
        self.track_one_of_many(pid)?;
        match self.tracked.contains_key(&pid) {
            true => self.sample(sampled),
            false => Ok(()),
        }
    }

    /// A sample that was handed over.
    pub(super) fn sample(&mut self, mut sampled: Box<Sampled>) -> Result<(), SessionError> {
        let record = &sampled.record;
        let Some(tracked) = self.tracked.get_mut(&record.pid) else {
            return self.first_sample(sampled);
        };
        if tracked.awaits_exec {
            return Ok(());
        }
        if tracked.left.is_some_and(|left| left <= record.time) {
            return Ok(());
        }
        if let Some(held) = &mut tracked.held {
            if held.len() < MAX_HELD {
                held.push(sampled);
                return Ok(());
            }
            return self.record(&SessionRecord::Lost {
                time: MonotonicNs::new(record.time),
                count: 1,
            });
        }
        if record.has(flags::IN_BODY) {
            tracked.trials.0 = tracked.trials.0.saturating_add(1);
            tracked.trials.1 = tracked
                .trials
                .1
                .saturating_add(u32::from(!record.packed.is_empty()));
            if tracked.trials == (LAYOUT_TRIALS, 0) {
                tracked.managed.refuse_vm(LAYOUT_TRIALS);
                let pid = record.pid;
                self.retarget(pid)?;
                return self.sample(sampled);
            }
        }
        let managed = &mut tracked.managed;
        let gate = tracked.gate.as_mut();
        let filter = gate.and_then(|gate| gate.at(record.time, managed));
        let recorder = &mut self.recorder;
        let written = write_sample(&mut sampled, managed, recorder, self.options.stack, filter);
        self.sampler(|sampler| sampler.take_back(sampled));
        self.written(written)
    }

    fn written(&mut self, written: Result<Written, RecorderError>) -> Result<(), SessionError> {
        match written {
            Ok(Written::Sample { transition }) => {
                self.transitions = self.transitions.saturating_add(u64::from(transition));
                Ok(())
            }
            Ok(Written::Not(reason, samples)) => {
                let count = self.filtered.entry(reason.name().to_owned()).or_default();
                *count = count.saturating_add(samples);
                Ok(())
            }
            Err(error) => self.tolerate(Err(error)),
        }
    }
}

/// What has become of a record.
enum Written {
    /// It was written; its leaf was in a transition or not.
    Sample { transition: bool },
    /// It was not, and would have been so many samples.
    Not(Filtered, u64),
}

/// Attributes a record and writes it down, unless a filter refuses it.
fn write_sample(
    sampled: &mut Sampled,
    managed: &mut ManagedProcess,
    recorder: &mut Recorder,
    stack: Stack,
    filter: Option<&mut Filter>,
) -> Result<Written, RecorderError> {
    let Sampled {
        event,
        record,
        read,
    } = sampled;
    let in_kernel = record.has(flags::IN_KERNEL);
    let mode = match in_kernel {
        true => CpuMode::Kernel,
        false => CpuMode::User,
    };
    let sample = Sample {
        event: *event,
        time: MonotonicNs::new(record.time),
        pid: Pid::new(record.pid),
        tid: Tid::new(record.tid),
        cpu: record.cpu,
        period: Period::new(record.period),
        original_ip: Address::new(record.ip),
        mode,
        uid: managed.process.status.uid,
        frame: record
            .innermost()
            .map(|frame| frame.addr)
            .filter(|at| *at != 0)
            .map(Address::new),
        kernel: &[][..],
        user: &[][..],
    };
    // Where there is a filter, the sample before may not have been written.
    if filter.is_none()
        && read.is_empty()
        && record.kernel.is_empty()
        && let Some(user) = cached_callchain(record, managed)
    {
        recorder.named_sample(&Sample { user, ..sample })?;
        return Ok(Written::Sample { transition: false });
    }
    let mut attributed = std::mem::take(&mut recorder.attributed);
    attribute(record, managed, &mut recorder.remap, stack, &mut attributed);
    if let Some(filter) = filter {
        if let Some(reason) = filter.refuses(&attributed.user, managed, &recorder.remap) {
            recorder.attributed = attributed;
            let members = read.drain(..).filter(|(_, period)| *period > 0);
            let samples = members.count().saturating_add(1);
            return Ok(Written::Not(reason, samples as u64));
        }
        // The sample in which they were seen may not have been recorded, nor their names.
        attributed.known = 0..0;
    }
    let mut kernel = std::mem::take(&mut recorder.kernel_frames);
    kernel.clear();
    kernel.extend(record.kernel.iter().copied().map(Address::new));
    if in_kernel && kernel.is_empty() {
        kernel.push(sample.original_ip);
    }
    let leader = Sample {
        frame: attributed.frame,
        kernel: kernel.as_slice(),
        user: attributed.user.as_slice(),
        ..sample
    };
    let mut recorded = Ok(());
    for (event, period) in read.drain(..).filter(|(_, period)| *period > 0) {
        let member = Sample {
            event,
            period: Period::new(period),
            ..leader
        };
        recorded = recorded.and(recorder.sample(&member, &attributed.known, managed));
    }
    recorded = recorded.and(recorder.sample(&leader, &attributed.known, managed));
    let transition = attributed.transition;
    // Its memory is the next one's.
    recorder.attributed = attributed;
    recorder.kernel_frames = kernel;
    recorded.map(|()| Written::Sample { transition })
}

#[cfg(test)]
mod tests;
