//! Finds the function that was at an address at a time.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use crate::Frame;

/// The most functions in a map. A V8 that runs for days makes about 100,000.
const MAX_CODES: usize = 1 << 20;
/// The most bytes of all names in a map.
const MAX_NAMES: usize = 1 << 26;
/// The most functions that a lookup searches. An address that has been reused more often has no name.
const MAX_VERSIONS: usize = 1 << 10;

/// A function that a program generated at run time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JitFunction {
    /// Its addresses.
    pub range: Range<u64>,
    /// Its name according to its producer.
    pub name: Arc<str>,
    /// When it was placed there, in nanoseconds of the producer's clock (usually CLOCK_MONOTONIC). 0: before the first listing of its
    /// producer.
    pub from: u64,
    /// When it was freed or moved. None if it has not been.
    pub until: Option<u64>,
    /// An `.eh_frame` section that describes its frames, with addresses as if the section were after the code, at the next multiple of 8.
    /// Empty if there is none.
    pub eh_frame: Arc<[u8]>,
}

impl JitFunction {
    /// Makes a function at `range` that exists since `from`.
    #[must_use]
    pub fn new(range: Range<u64>, name: impl Into<Arc<str>>, from: u64) -> Self {
        Self {
            range,
            name: name.into(),
            from,
            until: None,
            eh_frame: Arc::default(),
        }
    }

    /// Returns true if it has been placed and not yet freed at `time`.
    fn is_there_at(&self, time: u64) -> bool {
        self.from <= time && self.until.is_none_or(|until| time < until)
    }

    /// The frame for an address in it. Source lines of its producer are not kept.
    #[must_use]
    pub fn frame(&self) -> Frame<'_> {
        Frame {
            function: self.name.as_ref().into(),
            location: None,
        }
    }
}

/// Addresses that belong to another function from a time on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// The addresses of the new function.
    pub range: Range<u64>,
    /// When it begins, in nanoseconds of its producer's clock.
    pub from: u64,
}

/// Code by address and time. Among several functions at an address, the latest one counts.
#[derive(Debug, Clone, Default)]
pub struct CodeMap {
    codes: Vec<JitFunction>,
    /// Size of all names in bytes.
    names: usize,
    /// A function was left out because there was no room for it.
    is_full: bool,
    /// Size class (its longest size is 2^class - 1), first address, index in `codes`.
    by_start: BTreeSet<(u32, u64, usize)>,
    /// Bit set of the size classes in use: bit `class - 1`.
    classes: u64,
    /// The number of `codes` at the end of the last listing, and its time.
    last_listing: (usize, u64),
}

impl CodeMap {
    /// Adds a function whose time is known. Returns false if the map is full or the function is empty.
    pub fn load(&mut self, code: JitFunction) -> bool {
        let names = self.names.saturating_add(code.name.len());
        let has_room = self.codes.len() < MAX_CODES && names <= MAX_NAMES;
        let Some(class) = class_of(&code.range) else {
            return false;
        };
        if !has_room {
            self.is_full = true;
            return false;
        }
        self.names = names;
        self.classes |= 1 << class.saturating_sub(1);
        self.by_start
            .insert((class, code.range.start, self.codes.len()));
        self.codes.push(code);
        true
    }

    /// Adds functions that a producer without times lists at `now` and did not list before the last
    /// [`CodeMap::finish_listing`]; their own times are ignored. A function that overlaps none of the earlier listings is
    /// there from time 0 on. One that replaces an earlier function is there from `now` on, and the earlier one ends at the time
    /// of the last listing: in between either may have been there.
    ///
    /// Example: A is listed at 10, B at the same addresses at 20. A is there until 10, B from 20 on.
    ///
    /// Within one listing a later function hides an earlier one. Returns what was replaced.
    pub fn appear(
        &mut self,
        codes: impl IntoIterator<Item = JitFunction>,
        now: u64,
    ) -> Vec<Replacement> {
        let (known, before) = self.last_listing;
        let mut replaced = Vec::new();
        for mut code in codes {
            // An empty map has nothing to replace.
            let overlapping = match known {
                0 => Some(Vec::new()),
                _ => self.overlapping(&code.range),
            };
            let Some(mut rivals) = overlapping else {
                continue;
            };
            rivals.retain(|&index| index < known);
            let is_known = rivals.iter().any(|&index| {
                self.codes.get(index).is_some_and(|old| {
                    old.range == code.range && old.name == code.name && old.until.is_none()
                })
            });
            if is_known {
                continue;
            }
            (code.from, code.until) = (0, None);
            if !rivals.is_empty() {
                code.from = now;
                replaced.push(Replacement {
                    range: code.range.clone(),
                    from: now,
                });
            }
            for index in rivals {
                self.end(index, before);
            }
            self.load(code);
        }
        replaced
    }

    /// Ends a listing: everything that the producer listed at `time` has been added.
    pub const fn finish_listing(&mut self, time: u64) {
        self.last_listing = (self.codes.len(), time);
    }

    /// The time of the last listing. 0 if there was none.
    #[must_use]
    pub const fn last_listing(&self) -> u64 {
        self.last_listing.1
    }

    /// Ends the function that starts at `start` and exists at `time`.
    pub fn unload(&mut self, start: u64, time: u64) {
        let at = start..start.saturating_add(1);
        for index in self.overlapping(&at).unwrap_or_default() {
            let code = self.codes.get(index);
            if code.is_some_and(|code| code.range.start == start && code.from <= time) {
                self.end(index, time);
            }
        }
    }

    /// The function that was at `address` at `time`.
    #[must_use]
    pub fn lookup(&self, time: u64, address: u64) -> Option<&JitFunction> {
        let mut best: Option<(u64, usize)> = None;
        for index in self.overlapping(&(address..address.checked_add(1)?))? {
            let code = self.codes.get(index)?;
            if code.is_there_at(time) {
                best = best.max(Some((code.from, index)));
            }
        }
        self.codes.get(best?.1)
    }

    /// The frame of the function that was at `address` at `time`.
    #[must_use]
    pub fn frame(&self, time: u64, address: u64) -> Option<Frame<'_>> {
        self.lookup(time, address).map(JitFunction::frame)
    }

    /// Returns true if a function was left out because there was no room for it.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.is_full
    }

    /// All functions, in the order in which they were added.
    #[must_use]
    pub fn codes(&self) -> &[JitFunction] {
        &self.codes
    }

    /// Returns true if any of these addresses ever belonged to a function.
    #[must_use]
    pub fn holds_any(&self, range: &Range<u64>) -> bool {
        self.overlapping(range)
            .is_none_or(|found| !found.is_empty())
    }

    fn end(&mut self, index: usize, time: u64) {
        if let Some(code) = self.codes.get_mut(index) {
            code.until = Some(code.until.map_or(time, |until| until.min(time)));
        }
    }

    /// The functions that overlap `range` at any time. None if there are more than are searched.
    fn overlapping(&self, range: &Range<u64>) -> Option<Vec<usize>> {
        let mut found = Vec::new();
        let mut searched = 0usize;
        let there = |class: &u32| (self.classes >> class.saturating_sub(1)) & 1 != 0;
        for class in (1..=u64::BITS).filter(there) {
            let longest = u64::MAX >> 64u32.saturating_sub(class).min(63);
            let first = range.start.saturating_sub(longest);
            for (.., index) in self
                .by_start
                .range((class, first, 0)..(class, range.end, 0))
            {
                searched = searched.saturating_add(1);
                if searched > MAX_VERSIONS {
                    return None;
                }
                if self.codes.get(*index)?.range.end > range.start {
                    found.push(*index);
                }
            }
        }
        Some(found)
    }
}

/// The number of bits of a size. None if the size is zero.
fn class_of(range: &Range<u64>) -> Option<u32> {
    let size = range.end.checked_sub(range.start)?;
    Some(64u32.saturating_sub(size.leading_zeros())).filter(|class| *class > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn code(start: u64, end: u64, name: &str, from: u64) -> JitFunction {
        JitFunction::new(start..end, name, from)
    }

    fn name(map: &CodeMap, time: u64, address: u64) -> Option<&str> {
        map.lookup(time, address).map(|code| &*code.name)
    }

    #[test]
    fn a_name_is_that_of_its_time() {
        let mut map = CodeMap::default();
        map.load(code(0x1000, 0x1100, "first", 10));
        map.load(code(0x1080, 0x1180, "second", 20));
        map.load(code(0x1000, 0x1010, "third", 30));
        map.unload(0x1000, 40);
        assert_eq!(name(&map, 9, 0x1000), None);
        assert_eq!(name(&map, 10, 0x10ff), Some("first"));
        assert_eq!(name(&map, 20, 0x10ff), Some("second"));
        assert_eq!(name(&map, 20, 0x107f), Some("first"));
        assert_eq!(name(&map, 39, 0x1000), Some("third"));
        assert_eq!(name(&map, 40, 0x1000), None);
        assert_eq!(name(&map, 40, 0x1100), Some("second"));
    }

    #[test]
    fn an_address_has_no_name_between_two_reads_that_differ() {
        let mut map = CodeMap::default();
        let before_all = [code(0x10, 0x40, "a", 0), code(0x20, 0x30, "in a", 0)];
        assert_eq!(map.appear(before_all, 100), []);
        map.finish_listing(100);
        assert_eq!(name(&map, 1, 0x20), Some("in a"));
        assert_eq!(name(&map, 1, 0x30), Some("a"));
        let relisted = [code(0x10, 0x40, "a", 0), code(0x50, 0x60, "new", 0)];
        assert_eq!(map.appear(relisted, 200), []);
        map.finish_listing(200);
        assert_eq!(name(&map, 1, 0x50), Some("new"));
        assert_eq!(
            map.appear([code(0x28, 0x38, "b", 0)], 300),
            [Replacement {
                range: 0x28..0x38,
                from: 300
            }]
        );
        assert_eq!(name(&map, 199, 0x28), Some("in a"));
        assert_eq!(name(&map, 250, 0x28), None);
        assert_eq!(name(&map, 300, 0x28), Some("b"));
    }

    #[test]
    fn names_have_a_bound_and_what_is_beyond_it_is_known() {
        let mut map = CodeMap::default();
        assert!(!map.load(code(5, 5, "empty", 0)) && !map.is_full());
        let name = "n".repeat(MAX_NAMES / 4);
        let taken = (0..6).filter(|at| map.load(code(at * 0x10, at * 0x10 + 8, &name, 0)));
        assert_eq!(taken.count(), 4);
        assert!(map.is_full());
    }

    #[test]
    fn absurd_ranges_are_harmless() {
        let mut map = CodeMap::default();
        assert!(!map.load(code(5, 5, "empty", 0)));
        #[expect(clippy::reversed_empty_ranges)]
        let reversed = JitFunction::new(6..5, "reversed", 0);
        assert!(!map.load(reversed));
        assert!(map.load(code(0, u64::MAX, "all", 0)));
        assert_eq!(name(&map, 0, u64::MAX), None);
        assert_eq!(name(&map, 0, u64::MAX - 1), Some("all"));
    }

    proptest! {
        #[test]
        fn a_look_up_finds_what_looking_at_all_finds(
            codes in prop::collection::vec((0u64..300, 1u64..200, 0u64..20, 0u64..20), 0..40),
            looks in prop::collection::vec((0u64..25, 0u64..600), 40),
        ) {
            let mut map = CodeMap::default();
            for (index, (start, size, from, life)) in codes.iter().enumerate() {
                let mut code = code(*start, start + size, &index.to_string(), *from);
                code.until = Some(from + life);
                prop_assert!(map.load(code));
            }
            for (time, address) in looks {
                let mut expected: Option<(u64, usize)> = None;
                for (index, code) in map.codes().iter().enumerate() {
                    if code.range.contains(&address) && code.is_there_at(time) {
                        expected = expected.max(Some((code.from, index)));
                    }
                }
                let expected = expected.map(|(_, index)| index.to_string());
                prop_assert_eq!(name(&map, time, address), expected.as_deref());
            }
        }
    }
}
