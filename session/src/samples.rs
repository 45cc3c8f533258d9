//! Attributes samples, writes them, and counts those that a filter rejects.

use super::filter::{Filter, Filtered};
use super::recorder::{Recorder, RecorderError, Written};
use std::collections::BTreeMap;
use varid_model::{Address, Period, PrecisePlace, Precision, Stack};
use varid_process::MappedCode;
use varid_recording::{CpuMode, NO_UID, Sample, SampleCounts};
use varid_sampler::decode::Sampled;
use varid_shim::flags;
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
        let in_kernel = record.has(flags::IN_KERNEL);
        let mode = match in_kernel {
            true => CpuMode::Kernel,
            false => CpuMode::User,
        };
        let sample = Sample {
            event: *event,
            time: record.time,
            pid: record.pid,
            tid: record.tid,
            cpu: record.cpu,
            period: record.period,
            original_ip: record.ip,
            interrupt: None,
            mode,
            uid: managed.process.status.uid.unwrap_or(NO_UID),
            frame: record
                .frames
                .innermost()
                .map(|frame| frame.address())
                .filter(|at| at.get() != 0),
            // The leaf of a cached callchain is in an interpreter.
            precision: Precision::Exact,
            kernel: &[][..],
            user: &[][..],
        };
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
        if let Some(filter) = filter {
            if let Some(reason) = filter.refuses(&attributed.user, managed, &recorder.remap) {
                let members = read.drain(..).filter(|(_, period)| *period > 0);
                let samples = members.count().saturating_add(1);
                self.count_filtered(reason, samples as u64);
                return Ok(());
            }
            attributed.known = 0..0;
        }
        // The registers of a precise event are those of the interrupt, which arrives after the instruction.
        if let Some((leaf, callers)) = attributed.user.split_first()
            && !in_kernel
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
        self.kernel.clear();
        self.kernel.extend_from_slice(&record.kernel);
        if in_kernel && self.kernel.is_empty() {
            self.kernel.push(sample.original_ip);
        }
        let leader = Sample {
            frame: attributed.frame,
            precision: attributed.precision,
            kernel: self.kernel.as_slice(),
            user: attributed.user.as_slice(),
            ..sample
        };
        let named = &attributed.known;
        let mut written = Ok(());
        for (event, period) in read.drain(..).filter(|(_, period)| *period > 0) {
            let member = Sample {
                event,
                period: Period::new(period),
                ..leader
            };
            written = written.and(recorder.sample(&member, named, managed, known));
        }
        written = written.and(recorder.sample(&leader, named, managed, known));
        let transition = attributed.transition && written.is_ok();
        self.transitions = self.transitions.saturating_add(u64::from(transition));
        written
    }

    /// Counts samples that a filter rejected.
    fn count_filtered(&mut self, reason: Filtered, samples: u64) {
        let count = self.filtered.entry(reason.name()).or_default();
        *count = count.saturating_add(samples);
    }
}

#[cfg(test)]
mod tests;
