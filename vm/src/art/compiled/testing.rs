//! Memory that tests make.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use varid_process::reader::{Batch, BatchAnswer, BatchMemory};
use varid_tunnel::{Memory, TunnelError};

/// Words of memory; nothing else is there.
#[derive(Debug, Default)]
pub(super) struct Words {
    words: RefCell<BTreeMap<u64, u64>>,
    requests: Cell<usize>,
}

impl Words {
    /// These words, by their addresses.
    pub(super) fn of(words: &[(u64, u64)]) -> Self {
        Self {
            words: RefCell::new(words.iter().copied().collect()),
            requests: Cell::new(0),
        }
    }

    /// Writes a word.
    pub(super) fn set(&self, address: u64, word: u64) {
        self.words.borrow_mut().insert(address, word);
    }

    /// How many requests a session would have made for what was read.
    pub(super) fn requests(&self) -> usize {
        self.requests.get()
    }
}

impl Memory for Words {
    fn read(&self, address: u64, out: &mut [u8]) -> Result<(), TunnelError> {
        self.requests.set(self.requests.get() + 1);
        let len = out.len();
        for (at, bytes) in (address..).step_by(8).zip(out.chunks_mut(8)) {
            let words = self.words.borrow();
            let word = words.get(&at).ok_or(TunnelError::Read {
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
