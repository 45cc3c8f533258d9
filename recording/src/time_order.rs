//! Which of the records that were read is the next by time?

use varid_model::{Address, MonotonicNs};

use crate::{decode::Decoded, record::RecordRef};

/// Records that were read and not delivered, with the callchains of their samples in one list.
#[derive(Debug, Default)]
pub struct TimeOrder {
    /// Those that nothing can overtake any more, by time, then the others: what has come since the last release is in the order of the
    /// file.
    records: Vec<(MonotonicNs, Decoded)>,
    /// How many of them nothing can overtake.
    ready: usize,
    /// How many of these were delivered.
    delivered: usize,
    /// The addresses of the samples' callchains.
    chains: Vec<Address>,
    /// The list before this one, kept for its memory.
    spare_chains: Vec<Address>,
}

impl TimeOrder {
    /// Where the callchains of the next record belong.
    pub const fn chains(&mut self) -> &mut Vec<Address> {
        &mut self.chains
    }

    /// A further record.
    pub fn push(&mut self, time: MonotonicNs, record: Decoded) {
        self.records.push((time, record));
    }

    /// Whether a record is left that nothing can overtake.
    pub const fn has_next(&self) -> bool {
        self.delivered < self.ready
    }

    /// The next record that nothing can overtake.
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

    /// Nothing will come any more that is not later than `time`. Records of the same time stay in the order of the file.
    pub fn release(&mut self, time: MonotonicNs) {
        self.forget_delivered();
        self.records.sort_by_key(|(at, _)| *at);
        self.ready = self.records.partition_point(|(at, _)| *at <= time);
    }

    /// Frees what was delivered.
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
