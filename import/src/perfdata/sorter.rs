//! Sorts records by time.
//!
//! perf writes rounds: a record of a round is not older than any record of the second-last round. simpleperf's files, and perf's compressed
//! files as they are read here, have no rounds. There, every 32 MB count as a round.

use std::mem::size_of;

use super::records::RawRecord;

/// The most bytes of records that are held until no older record can follow.
pub const MAX_HELD: usize = 64 << 20;

/// Sorts records by time.
#[derive(Debug, Default)]
pub struct RecordSorter {
    /// Unsorted records with their times.
    waiting: Vec<(u64, RawRecord)>,
    /// In descending order of time, so that the next record is the last one.
    ready: Vec<RawRecord>,
    /// Bytes that were added since the last round ended.
    of_round: usize,
    /// The latest time before the current round, and the latest time overall.
    previous_round: u64,
    latest: u64,
}

impl RecordSorter {
    /// Adds a record. A record without a time follows those before it.
    pub fn add(&mut self, time: Option<u64>, record: RawRecord) {
        let time = time.unwrap_or(self.latest);
        self.latest = self.latest.max(time);
        self.of_round = self.of_round.saturating_add(bytes(&record));
        self.waiting.push((time, record));
        if self.of_round >= MAX_HELD / 2 {
            self.end_round();
        }
    }

    /// Ends a round.
    pub fn end_round(&mut self) {
        self.release(self.previous_round);
        self.previous_round = self.latest;
        self.of_round = 0;
    }

    /// Ends the records.
    pub fn end(&mut self) {
        self.release(u64::MAX);
    }

    /// The next record in order of time.
    pub fn next_ready(&mut self) -> Option<RawRecord> {
        self.ready.pop()
    }

    /// Moves the records up to a time to `ready`. Records with the same time keep the order of the file.
    fn release(&mut self, time: u64) {
        let all = std::mem::take(&mut self.waiting);
        let (mut ready, waiting): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(at, _)| *at <= time);
        self.waiting = waiting;
        ready.sort_by_key(|(at, _)| *at);
        let before = std::mem::take(&mut self.ready);
        self.ready = ready.into_iter().rev().map(|(_, record)| record).collect();
        self.ready.extend(before);
    }
}

/// The memory that a waiting record takes, in bytes.
const fn bytes(record: &RawRecord) -> usize {
    record
        .body
        .len()
        .saturating_add(size_of::<(u64, RawRecord)>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: u64, bytes: usize) -> RawRecord {
        RawRecord {
            kind: 9,
            misc: 0,
            body: vec![0; bytes],
            offset: number,
        }
    }

    fn taken(sorter: &mut RecordSorter) -> Vec<u64> {
        std::iter::from_fn(|| sorter.next_ready())
            .map(|record| record.offset)
            .collect()
    }

    #[test]
    fn a_record_waits_until_two_rounds_have_ended() {
        let mut sorter = RecordSorter::default();
        for time in [3, 1] {
            sorter.add(Some(time), record(time, 8));
        }
        sorter.end_round();
        assert!(taken(&mut sorter).is_empty());
        for time in [2, 5] {
            sorter.add(Some(time), record(time, 8));
        }
        sorter.end_round();
        assert_eq!(taken(&mut sorter), [1, 2, 3]);
        sorter.add(Some(4), record(4, 8));
        sorter.add(None, record(6, 8));
        sorter.end();
        assert_eq!(taken(&mut sorter), [4, 5, 6]);
    }

    #[test]
    fn without_rounds_no_more_is_held_than_the_limit() {
        let mut sorter = RecordSorter::default();
        let (mut count, mut last) = (0, 0);
        for time in 0..3_000 {
            sorter.add(Some(time), record(time, 60_000));
            let held = sorter.waiting.iter().map(|(_, record)| bytes(record));
            assert!(held.sum::<usize>() <= MAX_HELD);
            for time in taken(&mut sorter) {
                assert!(time >= last);
                (count, last) = (count + 1, time);
            }
        }
        sorter.end();
        assert_eq!(count + taken(&mut sorter).len(), 3_000);
    }
}
