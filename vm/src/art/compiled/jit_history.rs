//! Tracks since when code of the JIT has been in its place.
//!
//! The JIT collects code that is no longer executed and puts other code in its place. A sample shows where a thread was some time before
//! the code is looked up. The code cache counts compilations and collections: while one of the two numbers is unchanged, no code has been
//! replaced by other code. Code that a thread executes is never collected.

use crate::art::code_format::CodeFormat;
use std::collections::VecDeque;
use std::time::Duration;
use varid_model::MonotonicNs;
use varid_process::reader::MemoryRange;

/// Size of a counter in bytes.
const WORD: u32 = 8;
/// The most changes that are kept. There is more than one between two batches of samples only if the session is late.
const MAX_CHANGES: usize = 256;
/// After this time without a collection, the JIT is assumed to have finished collecting.
const QUIET: Duration = Duration::from_secs(1);

/// The counters of a code cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JitCounts {
    compiled: u64,
    collected: u64,
    /// A collection is in progress.
    collecting: bool,
}

impl JitCounts {
    /// Returns where a code cache has its counters, in the order in which they must be read. `at`: address of the byte that says whether a
    /// collection is in progress.
    pub(super) fn ranges(format: CodeFormat, at: u64) -> impl Iterator<Item = MemoryRange> {
        // The VM counts a collection first, and then marks it as in progress. With this order of reads, a collection that begins meanwhile
        // is either seen as in progress, or counted later.
        let counts = format.counts();
        let words = counts.compiled.iter().copied().chain([counts.collections]);
        let words = words.map(|offset| (offset, WORD));
        words.chain([(0, 1)]).map(move |(offset, len)| MemoryRange {
            address: at.wrapping_add(offset.into()),
            len,
        })
    }

    /// Parses the bytes that were read there.
    pub(super) fn parse(format: CodeFormat, bytes: &[u8]) -> Option<Self> {
        let (words, collecting) = bytes.as_chunks();
        let words = words.iter().map(|word| u64::from_le_bytes(*word));
        let (&[collecting], compiled) = (collecting, format.counts().compiled.len()) else {
            return None;
        };
        let all: Vec<u64> = words.collect();
        let (compiled, collected) = all.split_at_checked(compiled)?;
        let &[collected] = collected else { return None };
        Some(Self {
            compiled: compiled.iter().copied().fold(0, u64::wrapping_add),
            collected,
            collecting: collecting != 0,
        })
    }

    /// Returns true if a collection was in progress.
    pub(super) const fn is_collecting(&self) -> bool {
        self.collecting
    }

    /// Returns true if code that is there at `later` has been there since these counters were read.
    pub(super) fn no_code_replaced_until(&self, later: &Self) -> bool {
        let none_collected = self.collected == later.collected && !self.collecting;
        none_collected || self.compiled == later.compiled
    }
}

/// The counters of a code cache over time.
#[derive(Debug, Default)]
pub(super) struct JitHistory {
    /// The times at which changed counters were seen, the latest last.
    changes: VecDeque<(MonotonicNs, JitCounts)>,
    /// The last time at which the number of collections was seen to have increased.
    collected: Option<MonotonicNs>,
    latest: MonotonicNs,
}

impl JitHistory {
    /// Records counters that were read at or before a time.
    pub(super) fn observe(&mut self, time: MonotonicNs, counts: JitCounts) {
        let last = self.changes.back().map(|(_, last)| *last);
        self.latest = time;
        if last.is_some_and(|last| last.collected != counts.collected) {
            self.collected = Some(time);
        }
        // While they are unchanged, the first time is as good as any later one.
        if last == Some(counts) {
            return;
        }
        if self.changes.len() >= MAX_CHANGES {
            self.changes.pop_front();
        }
        self.changes.push_back((time, counts));
    }

    /// Returns the counters that were observed last.
    pub(super) fn counts(&self) -> Option<JitCounts> {
        self.changes.back().map(|(_, counts)| *counts)
    }

    /// Returns the time since when, at least, code that was read before the last observation has been in its place.
    pub(super) fn unchanged_since(&self) -> MonotonicNs {
        let Some((_, now)) = self.changes.back() else {
            return self.latest;
        };
        // This includes the time before the first observation.
        if now.collected == 0 {
            return MonotonicNs::ZERO;
        }
        let unchanged = self.changes.iter();
        let mut unchanged = unchanged.filter(|(_, counts)| counts.no_code_replaced_until(now));
        unchanged.next().map_or(self.latest, |(time, _)| *time)
    }

    /// Returns the number of collections from a time to the last observation, including one in progress at that time. None if it is not
    /// known.
    pub(super) fn collections_since(&self, time: MonotonicNs) -> Option<u64> {
        let (_, now) = self.changes.back()?;
        let before = self.changes.iter().rev();
        let mut before = before.skip_while(|(observed, _)| *observed > time);
        let (_, counts) = before.next()?;
        let begun = now.collected.checked_sub(counts.collected)?;
        Some(begun.saturating_add(counts.collecting.into()))
    }

    /// Returns true if code was collected in the last second of the observations.
    pub(super) fn is_collecting(&self) -> bool {
        let ago = self.collected.map(|time| self.latest.since(time));
        ago.is_some_and(|ago| ago < QUIET)
    }

    /// Returns true if code was compiled or collected in the last second of the observations.
    pub(super) fn is_changing(&self) -> bool {
        let changed = self.changes.back();
        changed.is_some_and(|(time, _)| self.latest.since(*time) < QUIET)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(observed: &[(u64, u64, u64, bool)]) -> JitHistory {
        let mut history = JitHistory::default();
        for (time, compiled, collected, collecting) in observed {
            let counts = JitCounts {
                compiled: *compiled,
                collected: *collected,
                collecting: *collecting,
            };
            history.observe(MonotonicNs::new(*time), counts);
        }
        history
    }

    fn unchanged_since(observed: &[(u64, u64, u64, bool)]) -> u64 {
        history(observed).unchanged_since().get()
    }

    #[test]
    fn code_stays_while_nothing_is_collected() {
        let observed = [(10, 1, 3, false), (20, 5, 3, false), (30, 9, 3, false)];
        assert_eq!(unchanged_since(&observed), 10);
    }

    #[test]
    fn code_stays_while_nothing_is_compiled() {
        let observed = [(10, 9, 3, true), (20, 9, 3, false), (30, 9, 4, true)];
        assert_eq!(unchanged_since(&observed), 10);
    }

    #[test]
    fn code_may_be_new_where_some_was_collected_and_some_compiled() {
        let observed = [(10, 8, 3, false), (20, 8, 4, false), (30, 9, 4, false)];
        assert_eq!(unchanged_since(&observed), 20);
        // The collection had been counted, but was not done.
        let observed = [(10, 8, 3, true), (20, 9, 3, false)];
        assert_eq!(unchanged_since(&observed), 20);
        assert_eq!(unchanged_since(&[]), 0);
    }

    #[test]
    fn where_nothing_was_ever_collected_code_has_always_been_there() {
        assert_eq!(unchanged_since(&[(10, 1, 0, false), (20, 5, 0, false)]), 0);
        assert_eq!(unchanged_since(&[(10, 1, 0, false), (20, 5, 1, false)]), 20);
    }

    #[test]
    fn collections_are_counted_from_what_was_seen_last_before() {
        let observed = [(10, 1, 3, false), (20, 1, 4, false), (30, 2, 5, true)];
        let since =
            |time, observed: &[_]| history(observed).collections_since(MonotonicNs::new(time));
        assert_eq!(since(9, &observed), None);
        assert_eq!(since(19, &observed), Some(2));
        assert_eq!(since(20, &observed), Some(1));
        assert_eq!(since(30, &observed), Some(1));
        let in_progress = [(10, 1, 3, true), (20, 1, 4, false)];
        assert_eq!(since(10, &in_progress), Some(2));
        assert_eq!(since(10, &[]), None);
    }

    #[test]
    fn a_change_that_is_forgotten_makes_code_new() {
        let mut history = JitHistory::default();
        for time in 1..2 * MAX_CHANGES as u64 {
            let counts = JitCounts {
                compiled: time,
                collected: 1,
                collecting: false,
            };
            history.observe(MonotonicNs::new(time), counts);
        }
        assert_eq!(history.unchanged_since().get(), MAX_CHANGES as u64);
    }

    #[test]
    fn a_cache_is_quiet_a_second_after_its_last_collection() {
        let second = QUIET.as_nanos() as u64;
        assert!(!history(&[(10, 1, 3, false)]).is_collecting());
        let observed = [(10, 1, 3, false), (20, 1, 4, false), (30, 2, 4, false)];
        assert!(history(&observed).is_collecting());
        let quiet = [&observed[..], &[(20 + second, 2, 4, false)]].concat();
        assert!(!history(&quiet).is_collecting() && history(&quiet).is_changing());
        let quiet = [&observed[..], &[(30 + second, 2, 4, false)]].concat();
        assert!(!history(&quiet).is_changing());
    }

    #[test]
    fn a_collection_that_begins_while_the_counts_are_read_is_seen() {
        let ranges: Vec<_> = JitCounts::ranges(CodeFormat::Android11, 0x100).collect();
        // Each is read before or behind the start of a collection.
        for seen in 0..=ranges.len() {
            let bytes = ranges.iter().enumerate().flat_map(|(read, range)| {
                let begun = u64::from(read >= seen);
                let word = match range.address {
                    0x100 => begun,
                    0x118 => 7,
                    0x128 => 3 + begun,
                    _ => panic!("{range:?}"),
                };
                word.to_le_bytes()[..range.len as usize].to_vec()
            });
            let bytes: Vec<u8> = bytes.collect();
            let counts = JitCounts::parse(CodeFormat::Android11, &bytes).unwrap();
            let is_seen = counts.collecting || counts.collected == 4;
            assert_eq!(is_seen, seen < ranges.len(), "{counts:?}");
        }
    }

    #[test]
    fn all_that_is_compiled_is_one_number() {
        let ranges: Vec<_> = JitCounts::ranges(CodeFormat::Android14, 0x100).collect();
        let addresses: Vec<_> = ranges.iter().map(|range| range.address).collect();
        assert_eq!(addresses, [0x118, 0x120, 0x128, 0x130, 0x100]);
        let words = [1u64, 2, 4, 9].map(u64::to_le_bytes);
        let bytes = [words.as_flattened(), &[1]].concat();
        let counts = JitCounts::parse(CodeFormat::Android14, &bytes).unwrap();
        let expected = JitCounts {
            compiled: 7,
            collected: 9,
            collecting: true,
        };
        assert_eq!(counts, expected);
        for len in 0..bytes.len() {
            let short = JitCounts::parse(CodeFormat::Android14, &bytes[..len]);
            assert_eq!(short, None, "{len}");
        }
    }
}
