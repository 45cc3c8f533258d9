//! Which code do the next samples probably execute? That of the last ones.

use super::method::CompiledMethod;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Batches of samples after which code that none of them executes is no longer expected.
const MAX_AGE: u32 = 16;
/// Bytes that are expected at most: they are read again whenever the JIT has changed something.
const MAX_SIZE: usize = 1 << 18;
/// Pieces of code that are expected at most.
const MAX_CODES: usize = 256;

/// The code of the JIT that was executed lately.
#[derive(Debug, Default)]
pub(super) struct RecentCode {
    /// By its start, with the number of batches since it was executed.
    codes: BTreeMap<u64, (Rc<CompiledMethod>, u32)>,
    /// Some was executed in this batch.
    used: bool,
}

impl RecentCode {
    /// A sample of this batch has executed it.
    pub(super) fn add(&mut self, code: &Rc<CompiledMethod>) {
        self.used = true;
        self.codes.insert(code.code.start, (code.clone(), 0));
    }

    /// The next samples are of another batch.
    pub(super) fn end_batch(&mut self) {
        if !std::mem::take(&mut self.used) {
            return;
        }
        self.codes.retain(|_, (_, age)| {
            *age = age.saturating_add(1);
            *age <= MAX_AGE
        });
    }

    /// The code that is expected, the latest first.
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
