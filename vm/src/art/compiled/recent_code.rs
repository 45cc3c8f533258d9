//! Predicts the code that the next samples execute: the code of the previous ones.

use super::method::CompiledMethod;
use std::collections::BTreeMap;
use std::rc::Rc;

/// After this many batches of samples without an execution, code is no longer expected.
const MAX_AGE: u32 = 16;
/// The most bytes that are expected: they are read again whenever the JIT has changed something.
const MAX_SIZE: usize = 1 << 18;
/// The most pieces of code that are expected.
const MAX_CODES: usize = 256;

/// The JIT code that was executed recently.
#[derive(Debug, Default)]
pub(super) struct RecentCode {
    /// By start, with the number of batches since it was executed.
    codes: BTreeMap<u64, (Rc<CompiledMethod>, u32)>,
    /// Some code was executed in this batch.
    used: bool,
}

impl RecentCode {
    /// Records that a sample of this batch has executed some code.
    pub(super) fn add(&mut self, code: &Rc<CompiledMethod>) {
        self.used = true;
        self.codes.insert(code.code.start, (code.clone(), 0));
    }

    /// Ends the batch.
    pub(super) fn end_batch(&mut self) {
        if !std::mem::take(&mut self.used) {
            return;
        }
        self.codes.retain(|_, (_, age)| {
            *age = age.saturating_add(1);
            *age <= MAX_AGE
        });
    }

    /// Returns the expected code, the most recent first.
    pub(super) fn expected(&self) -> Vec<Rc<CompiledMethod>> {
        let mut codes: Vec<_> = self.codes.values().collect();
        codes.sort_by_key(|(_, age)| *age);
        let mut size = 0usize;
        let codes = codes.into_iter().take(MAX_CODES).filter(|(code, _)| {
            let with = size.saturating_add(code.size());
            let fits = with <= MAX_SIZE;
            if fits {
                size = with;
            }
            fits
        });
        codes.map(|(code, _)| code.clone()).collect()
    }
}
