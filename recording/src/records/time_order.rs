//! Puts the records that were read in order of time.

use std::collections::VecDeque;

use varid_model::perf::{Header, Malformed};
use varid_model::{Address, MonotonicNs};

use super::Damage;
use crate::{
    decode::{self, ChainSpan, RawContent},
    format::{RECORD_HEADER_SIZE, kind},
    record::{RecordRef, Sample, SessionRecord},
};

/// Records that were read and not delivered. A record is released when no record still to come can precede it.
///
/// Samples stay where they were decoded: only their times and places are sorted.
#[derive(Debug, Default)]
pub struct TimeOrder {
    /// The released records by time, then the others. Records that came since the last release are in the order of the file.
    records: Vec<(MonotonicNs, Place)>,
    /// The number of released records.
    ready: usize,
    /// The number of released records that were delivered.
    delivered: usize,
    /// Batches that take no more samples, of which some were not delivered, or precede such ones.
    full: VecDeque<Batch>,
    /// The number of the first of them. Numbers wrap.
    first: u32,
    /// The batch that takes the next samples.
    open: Batch,
    /// A delivered batch, whose memory is used again.
    spare: Batch,
    /// The latest time of the rounds before the current one.
    previous: MonotonicNs,
    /// The latest time so far.
    latest: MonotonicNs,
}

/// Where a record is.
#[derive(Debug)]
enum Place {
    Sample {
        /// The number of the batch.
        batch: u32,
        /// The sample's place in the batch.
        index: u32,
    },
    Other(Box<SessionRecord>),
}

/// Samples that follow each other in the file.
#[derive(Debug, Default)]
struct Batch {
    samples: Vec<Sample<ChainSpan>>,
    /// The addresses of the samples' callchains.
    chains: Vec<Address>,
    /// The number of samples that were delivered.
    delivered: usize,
}

/// The most samples of a batch.
const MAX_SAMPLES: usize = 1 << 12;

impl Batch {
    fn is_delivered(&self) -> bool {
        self.delivered >= self.samples.len()
    }

    fn clear(&mut self) {
        self.samples.clear();
        self.chains.clear();
        self.delivered = 0;
    }

    fn deliver(&mut self, index: u32) -> Option<Sample<&[Address]>> {
        self.delivered = self.delivered.saturating_add(1);
        let sample = self.samples.get(usize::try_from(index).ok()?)?;
        let [kernel, user] = [sample.kernel, sample.user].map(|chain| chain.of(&self.chains));
        Some(sample.with_chains(kernel, user))
    }
}

impl TimeOrder {
    /// Decodes a record at a file offset and adds it, if a session needs its kind.
    pub fn add(
        &mut self,
        at: u64,
        header: Header,
        body: &[u8],
        events: &[RawContent],
    ) -> Result<(), Damage> {
        let damage = |Malformed { at: place, reason }| {
            let before = RECORD_HEADER_SIZE.saturating_add(place);
            let at = at.saturating_add(before as u64);
            Damage { at, reason }
        };
        let (time, place) = if header.kind == kind::SAMPLE {
            let sample = decode::sample(header, body, events, &mut self.open.chains);
            let sample = sample.map_err(damage)?;
            (sample.time, self.keep(sample))
        } else {
            let Some((time, record)) = decode::record(header, body).map_err(damage)? else {
                return Ok(());
            };
            (time, Place::Other(record))
        };
        self.latest = self.latest.max(time);
        self.records.push((time, place));
        Ok(())
    }

    /// Ends the current round: no later record is older than the previous one.
    pub fn end_round(&mut self) {
        self.release(self.previous);
        self.previous = self.latest;
    }

    /// Releases all records: no more come.
    pub fn release_all(&mut self) {
        self.release(MonotonicNs::MAX);
    }

    fn keep(&mut self, sample: Sample<ChainSpan>) -> Place {
        let [full, index] = [self.full.len(), self.open.samples.len()]
            .map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        self.open.samples.push(sample);
        if self.open.samples.len() >= MAX_SAMPLES {
            let next = std::mem::take(&mut self.spare);
            let open = std::mem::replace(&mut self.open, next);
            self.full.push_back(open);
        }
        let batch = self.first.wrapping_add(full);
        Place::Sample { batch, index }
    }

    /// Returns true if a released record is left.
    pub const fn has_next(&self) -> bool {
        self.delivered < self.ready
    }

    /// Returns the next released record.
    pub fn next_ref(&mut self) -> Option<RecordRef<'_>> {
        self.forget_batches();
        let ready = self.records.get(..self.ready)?;
        let (_, place) = ready.get(self.delivered)?;
        self.delivered = self.delivered.saturating_add(1);
        match place {
            Place::Other(record) => Some(RecordRef::Other(record)),
            Place::Sample { batch, index } => {
                let batch = usize::try_from(batch.wrapping_sub(self.first)).ok()?;
                let batch = self.full.get_mut(batch).unwrap_or(&mut self.open);
                batch.deliver(*index).map(RecordRef::Sample)
            }
        }
    }

    /// Releases the records up to `time`: all records still to come are later. Records of the same time stay in the order of the file.
    fn release(&mut self, time: MonotonicNs) {
        self.records.drain(..self.delivered);
        self.delivered = 0;
        self.records.sort_by_key(|(at, _)| *at);
        self.ready = self.records.partition_point(|(at, _)| *at <= time);
    }

    /// Frees the batches that were delivered.
    fn forget_batches(&mut self) {
        while self.full.front().is_some_and(Batch::is_delivered)
            && let Some(mut batch) = self.full.pop_front()
        {
            batch.clear();
            self.spare = batch;
            self.first = self.first.wrapping_add(1);
        }
        if self.open.is_delivered() {
            self.open.clear();
        }
    }
}
