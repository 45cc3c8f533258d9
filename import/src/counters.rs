//! Computes how much each event counted between two samples that read its count.
//!
//! As in perf (`deliver_sample_value` of its session.c), it is the difference between an event's count and the one that was read before.

use std::collections::HashMap;

use crate::perfdata::Count;

/// The most counters whose last counts are kept. An event has one for each CPU or thread.
const MAX_COUNTERS: usize = 1 << 20;

/// A counter: the event's id and, if each thread has its own counts, the thread.
type Counter = (u64, Option<u32>);

/// The last count of each counter.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    last: HashMap<Counter, u64>,
}

impl Counters {
    /// Returns how much was counted since this counter was last read. None if there are too many counters.
    pub(crate) fn since_last(&mut self, count: Count, thread: Option<u32>) -> Option<u64> {
        let counter = (count.id.unwrap_or(0), thread);
        let is_full = self.last.len() >= MAX_COUNTERS;
        if is_full && !self.last.contains_key(&counter) {
            return None;
        }
        let last = self.last.insert(counter, count.value).unwrap_or(0);
        // A lower count than before means that the event was opened again.
        Some(count.value.checked_sub(last).unwrap_or(count.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counter_counts_on_from_its_own_last_count() {
        let mut counters = Counters::default();
        let mut read = |id, value, thread| {
            let id = Some(id);
            counters.since_last(Count { id, value }, thread)
        };
        assert_eq!(read(7, 100, None), Some(100));
        assert_eq!(read(8, 30, None), Some(30));
        assert_eq!(read(7, 250, None), Some(150));
        assert_eq!(read(7, 250, Some(5)), Some(250));
        assert_eq!(read(7, 251, Some(5)), Some(1));
        assert_eq!(read(7, 40, None), Some(40));
    }
}
