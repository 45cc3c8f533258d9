//! Puts the records that were read in order of time.

use varid_model::{Address, MonotonicNs};

use crate::{decode::Decoded, record::RecordRef};

/// Records that were read and not delivered, with the callchains of their samples in one list. A record is released when no record still to
/// come can precede it.
#[derive(Debug, Default)]
pub struct TimeOrder {
    /// The released records by time, then the others. Records that came since the last release are in the order of the file.
    records: Vec<(MonotonicNs, Decoded)>,
    /// The number of released records.
    ready: usize,
    /// The number of released records that were delivered.
    delivered: usize,
    /// The addresses of the samples' callchains.
    chains: Vec<Address>,
    /// The list before this one. Its memory is used again.
    spare_chains: Vec<Address>,
}

impl TimeOrder {
    /// Returns the list to which the callchains of the next record belong.
    pub const fn chains(&mut self) -> &mut Vec<Address> {
        &mut self.chains
    }

    /// Adds a record.
    pub fn push(&mut self, time: MonotonicNs, record: Decoded) {
        self.records.push((time, record));
    }

    /// Returns true if a released record is left.
    pub const fn has_next(&self) -> bool {
        self.delivered < self.ready
    }

    /// Returns the next released record.
    pub fn next_ref(&mut self) -> Option<RecordRef<'_>> {
        let ready = self.records.get(..self.ready)?;
        let (_, record) = ready.get(self.delivered)?;
        self.delivered = self.delivered.saturating_add(1);
        Some(match record {
            Decoded::Other(record) => RecordRef::Other(record),
            Decoded::Sample(sample) => {
                let [kernel, user] =
                    [sample.kernel, sample.user].map(|chain| chain.of(&self.chains));
                RecordRef::Sample(sample.with_chains(kernel, user))
            }
        })
    }

    /// Releases the records up to `time`: all records still to come are later. Records of the same time stay in the order of the file.
    pub fn release(&mut self, time: MonotonicNs) {
        self.forget_delivered();
        self.records.sort_by_key(|(at, _)| *at);
        self.ready = self.records.partition_point(|(at, _)| *at <= time);
    }

    /// Frees the records that were delivered.
    fn forget_delivered(&mut self) {
        self.records.drain(..self.delivered);
        self.ready = self.ready.saturating_sub(self.delivered);
        self.delivered = 0;
        let (old, new) = (&self.chains, &mut self.spare_chains);
        new.clear();
        for (_, record) in &mut self.records {
            if let Decoded::Sample(sample) = record {
                let chains = [sample.kernel, sample.user];
                [sample.kernel, sample.user] = chains.map(|chain| chain.moved(old, new));
            }
        }
        std::mem::swap(&mut self.chains, &mut self.spare_chains);
    }
}
