//! Counts the records that are written, and keeps what is needed of them later.

use varid_model::{Address, MonotonicNs, Reason};

use crate::{
    features::Facts,
    format::MAX_FRAMES,
    manifest::SampleCounts,
    record::{MappingRecord, Sample, SessionRecord},
    remap,
};

/// What has been recorded so far, and what was lost.
#[derive(Debug, Default)]
pub struct Tally {
    /// The valid counts while records are written. The manifest's are replaced when it is saved.
    counts: SampleCounts,
    facts: Facts,
    /// Samples that were dropped since the last batch was written, and the losses of dropped [`Lost`](SessionRecord::Lost) records.
    dropped: u64,
    /// The latest time that was written.
    latest: MonotonicNs,
}

impl Tally {
    pub const fn counts(&self) -> &SampleCounts {
        &self.counts
    }

    pub const fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Sets what the raw data of tracepoints means.
    pub fn describe_tracepoints(&mut self, tracing_data: Vec<u8>) {
        self.facts.tracing_data = tracing_data;
    }

    /// Returns a record of the losses since the last such record, if there were any.
    pub fn take_lost(&mut self) -> Option<SessionRecord> {
        let count = std::mem::take(&mut self.dropped);
        (count > 0).then_some(SessionRecord::Lost {
            time: self.latest,
            count,
        })
    }

    /// Counts samples that the batch has no room for. The next record of losses includes them.
    pub fn lose(&mut self, count: u64) {
        add(&mut self.dropped, count);
        add(&mut self.counts.lost, count);
    }

    /// Counts a record other than a sample that the batch has no room for.
    pub fn drop(&mut self, record: &SessionRecord) {
        match record {
            SessionRecord::Lost { count, .. } => self.lose(*count),
            _ => add(&mut self.counts.dropped, 1),
        }
    }

    /// Keeps what is needed later of a record other than a sample.
    pub fn note(&mut self, record: &SessionRecord) {
        match record {
            SessionRecord::Lost { count, .. } => add(&mut self.counts.lost, *count),
            SessionRecord::Mapping(MappingRecord {
                kernel: true,
                mode: None,
                path,
                build_id,
                ..
            }) if path
                .to_str()
                .is_some_and(|path| path.starts_with("[kernel.kallsyms]")) =>
            {
                self.facts.kernel_build_id.clone_from(build_id);
            }
            _ => {}
        }
        self.latest = self.latest.max(record.time());
    }

    /// Counts a sample that is written.
    pub fn count(&mut self, sample: &Sample<&[Address]>) {
        add(&mut self.counts.samples, 1);
        self.latest = self.latest.max(sample.time);
        add(self.attribution(sample), 1);
        let (first, last) = self
            .facts
            .sample_times
            .unwrap_or((sample.time, sample.time));
        self.facts.sample_times = Some((first.min(sample.time), last.max(sample.time)));
    }

    /// Counts a sample as lost that was counted as written and is not.
    pub fn retract(&mut self, sample: &Sample<&[Address]>) {
        let less = |count: &mut u64| *count = count.saturating_sub(1);
        less(&mut self.counts.samples);
        less(self.attribution(sample));
        self.counts.unattributed.retain(|_, count| *count > 0);
        self.lose(1);
    }

    /// Returns the count that a sample belongs to: that of attributed samples, or that of its reason.
    fn attribution(&mut self, sample: &Sample<&[Address]>) -> &mut u64 {
        let cut = sample.kernel.len().saturating_add(sample.user.len()) > MAX_FRAMES;
        let reason = remap::unattributed(sample.user).or_else(|| cut.then_some(Reason::Truncated));
        match reason {
            None => &mut self.counts.attributed,
            Some(reason) => {
                let name = reason.name().to_owned();
                self.counts.unattributed.entry(name).or_default()
            }
        }
    }
}

fn add(count: &mut u64, more: u64) {
    *count = count.saturating_add(more);
}
