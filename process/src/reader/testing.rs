//! Memory that tests make.

use super::{Batch, BatchAnswer, BatchMemory};
use std::cell::Cell;
use std::collections::BTreeMap;
use varid_tunnel::{Memory, TunnelError};

/// Words of memory; nothing else is there.
#[derive(Debug, Default)]
pub(super) struct Words {
    words: BTreeMap<u64, u64>,
    reads: Cell<usize>,
    requests: Cell<usize>,
}

impl Words {
    /// These words, by their addresses.
    pub(super) fn of(words: &[(u64, u64)]) -> Self {
        Self {
            words: words.iter().copied().collect(),
            ..Self::default()
        }
    }

    /// Writes words from an address on.
    pub(super) fn write(&mut self, address: u64, words: &[u64]) {
        self.words
            .extend((address..).step_by(8).zip(words.iter().copied()));
    }

    /// How many requests a session would have made for what was read.
    pub(super) fn requests(&self) -> usize {
        self.requests.get()
    }

    /// How often something was read.
    pub(super) fn reads(&self) -> usize {
        self.reads.get()
    }
}

impl Memory for Words {
    fn read(&self, address: u64, out: &mut [u8]) -> Result<(), TunnelError> {
        self.reads.set(self.reads.get() + 1);
        self.requests.set(self.requests.get() + 1);
        let len = out.len();
        for (at, bytes) in (address..).step_by(8).zip(out.chunks_mut(8)) {
            let word = self.words.get(&at).ok_or(TunnelError::Read {
                address,
                len,
                reason: "nothing is there".to_owned(),
            })?;
            bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
        }
        Ok(())
    }
}

impl BatchMemory for Words {
    fn read_batch(&self, batch: &Batch) -> Result<BatchAnswer, TunnelError> {
        let requests = self.requests.get() + 1;
        let answer = batch.carry_out(self);
        self.requests.set(requests);
        answer
    }
}
