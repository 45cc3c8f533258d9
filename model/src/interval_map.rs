//! A map from disjoint address ranges, such as the mappings of a process, to values.

use std::cell::Cell;
use std::ops::Range;

use crate::Address;

/// A value of an [`IntervalMap`]. A later range that overlaps the value's range can cut it.
pub trait IntervalValue: Clone {
    /// Returns the value of a part of the range, which starts `offset` bytes after the range's start. At 0, only the end was cut.
    ///
    /// ```
    /// use varid_model::IntervalValue;
    ///
    /// /// The offset in a file of a mapping's first byte.
    /// #[derive(Clone)]
    /// struct FileOffset(u64);
    ///
    /// impl IntervalValue for FileOffset {
    ///     fn part(&self, offset: u64) -> Self {
    ///         Self(self.0.wrapping_add(offset))
    ///     }
    /// }
    /// ```
    #[must_use]
    fn part(&self, offset: u64) -> Self;
}

/// A range of addresses and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval<V> {
    /// First address.
    pub start: Address,
    /// The address after the last one.
    pub end: Address,
    /// The value.
    pub value: V,
}

impl<V> Interval<V> {
    /// Returns true if the range contains an address.
    #[must_use]
    pub fn contains(&self, address: Address) -> bool {
        self.start <= address && address < self.end
    }
}

/// Disjoint ranges of addresses with a value each. A new range replaces what it overlaps, as mmap(2) does.
///
/// A lookup first tries the range that the last lookup found, because it often contains the next address, too. Otherwise it takes two
/// binary searches. The ranges are stored in chunks of at most 512. An insertion moves the ranges of one chunk, and the chunks' headers if
/// a chunk is split.
#[derive(Debug, Clone)]
pub struct IntervalMap<V> {
    /// Chunks by address. None of them is empty.
    chunks: Vec<Vec<Interval<V>>>,
    len: usize,
    /// The chunk and the index in it that the last lookup found. It is only a hint.
    last_hit: Cell<(usize, usize)>,
}

/// The most ranges in a chunk.
const MAX_CHUNK: usize = 512;

impl<V> Default for IntervalMap<V> {
    fn default() -> Self {
        Self {
            chunks: Vec::new(),
            len: 0,
            last_hit: Cell::new((0, 0)),
        }
    }
}

impl<V> IntervalMap<V> {
    /// The number of ranges.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no ranges.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The range that contains an address.
    #[must_use]
    pub fn get(&self, address: Address) -> Option<&Interval<V>> {
        let (chunk, place) = self.find(address)?;
        self.chunks.get(chunk)?.get(place)
    }

    /// The value of the range that contains an address.
    pub fn get_mut(&mut self, address: Address) -> Option<&mut V> {
        let (chunk, place) = self.find(address)?;
        let interval = self.chunks.get_mut(chunk)?.get_mut(place)?;
        Some(&mut interval.value)
    }

    /// All ranges, by address.
    pub fn iter(&self) -> impl Iterator<Item = &Interval<V>> {
        self.chunks.iter().flatten()
    }

    /// The values of all ranges, by address.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        let intervals = self.chunks.iter_mut().flatten();
        intervals.map(|interval| &mut interval.value)
    }

    /// The values of the ranges that overlap `range`, by address.
    pub fn overlapping_mut(&mut self, range: Range<Address>) -> impl Iterator<Item = &mut V> {
        let first = self.first_chunk_behind(range.start);
        let chunks = self.chunks.get_mut(first..).unwrap_or_default();
        let end = range.end;
        chunks
            .iter_mut()
            .take_while(move |chunk| chunk.first().is_some_and(|first| first.start < end))
            .flat_map(move |chunk| {
                let overlapping = overlapping(chunk, &range);
                chunk.get_mut(overlapping).unwrap_or_default()
            })
            .map(|interval| &mut interval.value)
    }

    /// The first chunk that does not end at or before an address.
    fn first_chunk_behind(&self, address: Address) -> usize {
        self.chunks
            .partition_point(|chunk| chunk.last().is_some_and(|last| last.end <= address))
    }

    fn find(&self, address: Address) -> Option<(usize, usize)> {
        let holds = |(chunk, place): (usize, usize)| {
            let interval = self.chunks.get(chunk).and_then(|chunk| chunk.get(place));
            interval.is_some_and(|interval| interval.contains(address))
        };
        let last = self.last_hit.get();
        if holds(last) {
            return Some(last);
        }
        let chunk = self.first_chunk_behind(address);
        let place = self
            .chunks
            .get(chunk)?
            .partition_point(|interval| interval.end <= address);
        let found = (chunk, place);
        holds(found).then(|| {
            self.last_hit.set(found);
            found
        })
    }
}

impl<V: IntervalValue> IntervalMap<V> {
    /// Sets the value of a range. The overlapped parts of other ranges are removed. An empty range changes nothing.
    pub fn insert(&mut self, range: Range<Address>, value: V) {
        let Range { start, end } = range;
        if start >= end {
            return;
        }
        self.remove(start..end);
        // The chunk of the preceding range, or the first chunk.
        let at = self
            .chunks
            .partition_point(|chunk| chunk.first().is_some_and(|first| first.start < start))
            .saturating_sub(1);
        if self.chunks.is_empty() {
            self.chunks.push(Vec::new());
        }
        let Some(chunk) = self.chunks.get_mut(at) else {
            return; // the map has at least one chunk
        };
        let place = chunk.partition_point(|interval| interval.start < start);
        chunk.insert(place, Interval { start, end, value });
        self.len = self.len.saturating_add(1);
        self.split_if_full(at);
    }

    /// Removes the addresses of a range. Returns true if any of them had a value.
    pub fn remove(&mut self, range: Range<Address>) -> bool {
        let Range { start, end } = range;
        if start >= end {
            return false;
        }
        let first = self.first_chunk_behind(start);
        let mut at = first;
        let mut changed = false;
        let mut emptied = first..first;
        while let Some(chunk) = self.chunks.get_mut(at) {
            let overlapping = overlapping(chunk, &(start..end));
            if overlapping.is_empty() {
                break;
            }
            changed = true;
            let before = chunk.len();
            let removed = chunk.get(overlapping.clone()).unwrap_or_default();
            let left = removed.first().filter(|old| old.start < start);
            let left = left.map(|old| Interval {
                start: old.start,
                end: start,
                value: old.value.part(0),
            });
            let right = removed.last().filter(|old| old.end > end);
            let right = right.map(|old| Interval {
                start: end,
                end: old.end,
                value: old
                    .value
                    .part(end.offset_from(old.start).unwrap_or_default()),
            });
            chunk.splice(overlapping, left.into_iter().chain(right));
            self.len = self.len.saturating_sub(before).saturating_add(chunk.len());
            // Emptied chunks are neighbours: only the first and the last chunk can keep a part.
            if chunk.is_empty() {
                let from = if emptied.is_empty() {
                    at
                } else {
                    emptied.start
                };
                emptied = from..at.saturating_add(1);
            }
            at = at.saturating_add(1);
        }
        self.chunks.drain(emptied);
        if changed {
            // If a range was cut in two, the chunk has one more.
            self.split_if_full(first);
        }
        changed
    }

    fn split_if_full(&mut self, at: usize) {
        if let Some(chunk) = self.chunks.get_mut(at)
            && chunk.len() > MAX_CHUNK
        {
            let upper = chunk.split_off(MAX_CHUNK / 2);
            self.chunks.insert(at.saturating_add(1), upper);
        }
    }
}

/// Returns the indices of a chunk's ranges that overlap a range.
fn overlapping<V>(chunk: &[Interval<V>], range: &Range<Address>) -> Range<usize> {
    let from = chunk.partition_point(|interval| interval.end <= range.start);
    let to = chunk.partition_point(|interval| interval.start < range.end);
    from..to.max(from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A part of a file. Tests whether it is still as it was inserted.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct Stretch {
        file: u64,
        offset: u64,
        whole: bool,
    }

    impl IntervalValue for Stretch {
        fn part(&self, offset: u64) -> Self {
            Self {
                offset: self.offset.wrapping_add(offset),
                whole: false,
                ..*self
            }
        }
    }

    fn range(start: u64, end: u64) -> Range<Address> {
        Address::new(start)..Address::new(end)
    }

    fn of(file: u64, offset: u64) -> Stretch {
        Stretch {
            file,
            offset,
            whole: true,
        }
    }

    #[test]
    fn a_range_in_the_middle_cuts_what_was_there_in_two() {
        let mut map = IntervalMap::default();
        map.insert(range(0x1000, 0x5000), of(0, 0x500));
        map.insert(range(0x2000, 0x3000), of(1, 0));
        let found: Vec<_> = map
            .iter()
            .map(|i| (i.start.get(), i.end.get(), i.value.offset, i.value.whole))
            .collect();
        assert_eq!(
            found,
            [
                (0x1000, 0x2000, 0x500, false),
                (0x2000, 0x3000, 0, true),
                (0x3000, 0x5000, 0x2500, false)
            ]
        );
        assert!(map.get(Address::new(0xfff)).is_none());
        assert!(map.get(Address::new(0x5000)).is_none());
        assert!(map.remove(range(0, 0x10000)) && map.is_empty());
        assert!(!map.remove(range(0, 0x10000)));
    }

    #[test]
    fn ranges_at_the_end_of_memory_and_empty_ones_are_harmless() {
        let mut map = IntervalMap::default();
        map.insert(range(u64::MAX - 1, u64::MAX), of(0, u64::MAX));
        map.insert(range(5, 5), of(0, 0));
        map.insert(range(7, 6), of(0, 0));
        assert_eq!(map.len(), 1);
        assert!(map.get(Address::new(u64::MAX - 1)).is_some());
        assert!(map.get(Address::new(u64::MAX)).is_none());
    }

    #[test]
    fn many_ranges_are_found_in_whatever_order_they_came() {
        const COUNT: u64 = 10_000;
        for step in [1, COUNT - 1, 7_919] {
            let mut map = IntervalMap::default();
            for number in 0..COUNT {
                let at = number * step % COUNT;
                map.insert(range(at * 16, at * 16 + 8), of(at, 0));
            }
            assert_eq!(map.len() as u64, COUNT);
            assert!(map.chunks.iter().all(|chunk| chunk.len() <= MAX_CHUNK));
            for at in 0..COUNT {
                let found = map.get(Address::new(at * 16 + 7)).map(|i| i.value.file);
                assert_eq!(found, Some(at));
                assert!(map.get(Address::new(at * 16 + 8)).is_none());
            }
            map.remove(range(16, (COUNT - 1) * 16));
            assert_eq!(
                map.iter().map(|i| i.value.file).collect::<Vec<_>>(),
                [0, COUNT - 1]
            );
        }
    }

    /// Start, end, and the offset and file that were inserted. None if the range was removed.
    type Change = (u64, u64, Option<(u64, u64)>);

    /// Number of addresses in the model. The map has many more ranges, so that there are several chunks.
    const ADDRESSES: u64 = 64;

    fn changes() -> impl Strategy<Value = Vec<Change>> {
        let what = prop::option::weighted(0.7, (0..1000u64, 0..4u64));
        prop::collection::vec((0..ADDRESSES, 0..24u64, what), 0..24).prop_map(|all| {
            let clipped =
                |(start, len, what): (u64, u64, _)| (start, (start + len).min(ADDRESSES), what);
            all.into_iter().map(clipped).collect()
        })
    }

    proptest! {
        #[test]
        fn every_address_has_the_value_that_it_was_given_last(changes in changes(), scale in 1..40u64) {
            // Each address of the model stands for `scale` ranges of the map.
            let mut map = IntervalMap::default();
            let mut model = vec![None; ADDRESSES as usize];
            for at in 0..ADDRESSES * scale {
                map.insert(range(at * 4, at * 4 + 2), of(99, at));
            }
            let mut expected_len = ADDRESSES * scale;
            for (start, end, what) in changes {
                let (from, to) = (start * scale * 4, end * scale * 4);
                match what {
                    Some((offset, file)) => map.insert(range(from, to), of(file, offset)),
                    None => _ = map.remove(range(from, to)),
                }
                for at in start..end {
                    model[at as usize] = Some(what.map(|(offset, file)| (file, offset + (at - start) * scale * 4)));
                }
                for (at, expected) in (0..).zip(&model) {
                    let address = Address::new(at * scale * 4);
                    let found = map.get(address).map(|interval| {
                        let offset = address.get() - interval.start.get();
                        (interval.value.file, interval.value.offset + offset)
                    });
                    prop_assert_eq!(found, expected.unwrap_or(Some((99, at * scale))), "at {}", at);
                    let value = map.get_mut(address).map(|value| *value);
                    prop_assert_eq!(value, map.get(address).map(|interval| interval.value));
                }
                let all: Vec<_> = map.iter().collect();
                prop_assert!(all.iter().all(|interval| interval.start < interval.end));
                prop_assert!(all.windows(2).all(|pair| pair[0].end <= pair[1].start));
                prop_assert!(map.chunks.iter().all(|chunk| !chunk.is_empty() && chunk.len() <= MAX_CHUNK));
                prop_assert_eq!(map.len(), all.len());
                expected_len = all.len() as u64;
            }
            prop_assert_eq!(map.values_mut().count() as u64, expected_len);
            let part = range(4 * scale * 4 + 1, 9 * scale * 4);
            let overlapping = map.iter().filter(|i| i.end > part.start && i.start < part.end).count();
            prop_assert_eq!(map.overlapping_mut(part).count(), overlapping);
        }
    }
}
