//! Attributes samples, writes them, and counts those that a filter rejects.

use super::filter::{Filter, Filtered};
use super::recorder::{Recorder, RecorderError, Written};
use std::collections::BTreeMap;
use varid_model::{Address, Period, PrecisePlace, Precision, Stack};
use varid_process::MappedCode;
use varid_recording::{CpuMode, NO_UID, Sample, SampleCounts};
use varid_sampler::decode::Sampled;
use varid_shim::{CapturedSample, flags};
use varid_vm::ManagedProcess;
use varid_vm::attribution::{Attributed, attribute, cached_callchain};

/// Writes samples, and counts them.
#[derive(Debug)]
pub struct SampleWriter {
    /// How much of each stack is written.
    stack: Stack,
    /// The last sample's frames. Their memory is reused for the next sample.
    attributed: Attributed,
    kernel: Vec<Address>,
    /// Samples whose leaf was in a transition of the interpreter.
    transitions: u64,
    /// Samples that were not written, by the reason.
    filtered: BTreeMap<&'static str, u64>,
}

impl SampleWriter {
    /// Makes a writer of this much of each stack.
    pub fn new(stack: Stack) -> Self {
        Self {
            stack,
            attributed: Attributed::default(),
            kernel: Vec::new(),
            transitions: 0,
            filtered: BTreeMap::new(),
        }
    }

    /// The number of samples that were not written.
    pub fn filtered(&self) -> u64 {
        let counts = self.filtered.values();
        counts.fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Puts the counts into the manifest's, which counts written samples itself.
    pub fn write_to(&self, counts: &mut SampleCounts) {
        let filtered = self.filtered.iter();
        let filtered = filtered.map(|(reason, count)| ((*reason).to_owned(), *count));
        counts.filtered = filtered.collect();
        counts.transitions = self.transitions;
    }

    /// Attributes a sample of a process and writes it, unless a filter rejects it. `known`: the mappings of the process in the
    /// recording.
    pub fn write(
        &mut self,
        sampled: &mut Sampled,
        managed: &mut ManagedProcess,
        known: &mut Written,
        filter: Option<&mut Filter>,
        recorder: &mut Recorder,
    ) -> Result<(), RecorderError> {
        let Sampled {
            event,
            record,
            read,
        } = sampled;
        managed.process.replace_code(record.time);
        let sample = without_frames(*event, record, managed);
        // With a filter, the thread's previous sample, or the names of its frames, may not have been written.
        if filter.is_none()
            && read.is_empty()
            && record.kernel.is_empty()
            && let Some(user) = cached_callchain(record, managed, |id| known.has(id))
        {
            return recorder.named_sample(&Sample { user, ..sample });
        }
        let attributed = &mut self.attributed;
        attribute(record, managed, &mut recorder.remap, self.stack, attributed);
        let kept = recorder.keep_compiled_code(managed.pid(), managed.take_executed_code());
        if let Some(filter) = filter {
            if let Some(reason) = filter.refuses(&attributed.user, managed, &recorder.remap) {
                let samples = counted_members(read).count().saturating_add(1);
                self.count_filtered(reason, samples as u64);
                return kept;
            }
            attributed.known = 0..0;
        }
        self.lead_with_sampled_instruction(record, managed);
        self.set_kernel_chain(record);
        let leader = self.with_frames(sample);
        let members = counted_members(read).map(|(event, period)| Sample {
            event,
            period: Period::new(period),
            ..leader
        });
        let named = &self.attributed.known;
        let mut written = kept;
        for sample in members.chain([leader]) {
            written = written.and(recorder.sample(&sample, named, managed, known));
        }
        let transition = self.attributed.transition && written.is_ok();
        self.transitions = self.transitions.saturating_add(u64::from(transition));
        written
    }

    /// Puts the instruction of a precise event before its frames. The registers are those of the interrupt, which arrives after
    /// the instruction.
    fn lead_with_sampled_instruction(&mut self, record: &CapturedSample, managed: &ManagedProcess) {
        let attributed = &mut self.attributed;
        if let Some((leaf, callers)) = attributed.user.split_first()
            && !record.has(flags::IN_KERNEL)
            && *leaf != record.ip
            && record.regs.ip() == Some(leaf.get())
        {
            let code = MappedCode::new(&managed.process.space);
            let place = match self.stack {
                Stack::None => PrecisePlace::SameFrame,
                Stack::Vertical | Stack::Full => {
                    PrecisePlace::of(record.ip, Some(*leaf), callers, |at| {
                        code.described_start(at)
                    })
                }
            };
            place.lead(record.ip, &mut attributed.user);
            attributed.known = 0..0;
        }
    }

    /// Copies the kernel's callchain. That of a sample in the kernel has at least the sampled instruction.
    fn set_kernel_chain(&mut self, record: &CapturedSample) {
        self.kernel.clear();
        self.kernel.extend_from_slice(&record.kernel);
        if record.has(flags::IN_KERNEL) && self.kernel.is_empty() {
            self.kernel.push(record.ip);
        }
    }

    /// Returns a sample with the frames that were attributed to it.
    fn with_frames<'s>(&'s self, sample: Sample<&'s [Address]>) -> Sample<&'s [Address]> {
        let attributed = &self.attributed;
        Sample {
            frame: attributed.frame,
            precision: attributed.precision,
            kernel: &self.kernel,
            user: &attributed.user,
            ..sample
        }
    }

    /// Counts samples that a filter rejected.
    fn count_filtered(&mut self, reason: Filtered, samples: u64) {
        let count = self.filtered.entry(reason.name()).or_default();
        *count = count.saturating_add(samples);
    }
}

/// Returns a sample without callchains. Its frame and precision are those of a cached callchain, whose leaf is in an interpreter.
fn without_frames(
    event: usize,
    record: &CapturedSample,
    managed: &ManagedProcess,
) -> Sample<&'static [Address]> {
    let innermost = record.frames.innermost().map(|frame| frame.address());
    Sample {
        event,
        time: record.time,
        pid: record.pid,
        tid: record.tid,
        cpu: record.cpu,
        period: record.period,
        original_ip: record.ip,
        interrupt: None,
        mode: match record.has(flags::IN_KERNEL) {
            true => CpuMode::Kernel,
            false => CpuMode::User,
        },
        uid: managed.process.status.uid.unwrap_or(NO_UID),
        frame: innermost.filter(|at| at.get() != 0),
        precision: Precision::Exact,
        kernel: &[],
        user: &[],
    }
}

/// Takes the members of a group that have counted since the last sample, each with its period.
fn counted_members(read: &mut Vec<(usize, u64)>) -> impl Iterator<Item = (usize, u64)> {
    read.drain(..).filter(|(_, period)| *period > 0)
}

#[cfg(test)]
mod tests;
