//! Tracks the mappings of each process.
//!
//! Records are in order of time, so the mappings at a sample are the current ones.

use std::{ops::Range, rc::Rc};

use varid_model::{Address, Interval, IntervalMap, IntervalValue, Mode, Pid};

use crate::{
    fast_hash::{FastMap, Fingerprint, Fingerprints},
    frames::ImageId,
};

/// A mapping of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappedImage {
    /// The file.
    pub image: ImageId,
    /// `pgoff - start`, modulo 2^64: the sum of an address and this is the offset in the file.
    bias: u64,
    /// The protection and flags, if known.
    pub mode: Option<Mode>,
}

impl MappedImage {
    /// Returns the file offset of an address in the mapping.
    pub const fn offset(self, address: Address) -> u64 {
        address.get().wrapping_add(self.bias)
    }
}

impl IntervalValue for MappedImage {
    /// All parts of a mapping have the same bias.
    fn part(&self, _: u64) -> Self {
        *self
    }
}

/// The most mappings of all processes together. Without a limit, a small recording of forks and mappings could require
/// memory quadratic in its size. A hundred apps on a phone have some 300,000.
const MAX_MAPPINGS: usize = 4 << 20;

/// The mappings of every process.
#[derive(Debug, Default)]
pub struct AddressSpaces {
    processes: FastMap<Pid, AddressSpace>,
    fingerprints: Fingerprints,
    /// The number of entries in all distinct maps.
    entries: usize,
}

/// The mappings of a process.
#[derive(Debug, Clone, Default)]
struct AddressSpace {
    /// Shared by parent and child until either one changes it.
    mappings: Rc<IntervalMap<MappedImage>>,
    state: SpaceState,
}

/// A number for the state of an address space: spaces with equal states have the same mappings. It is derived from the
/// sequence of changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct SpaceState(Fingerprint);

impl SpaceState {
    /// Returns bits that differ between states.
    pub fn bits(self) -> u64 {
        let [bits, _] = self.0;
        bits
    }

    /// Returns all bits.
    pub const fn fingerprint(self) -> Fingerprint {
        self.0
    }
}

impl AddressSpaces {
    /// Adds a mapping, which replaces overlapping ones. Returns `false` if the limit of mappings is reached and this
    /// one was dropped.
    #[must_use]
    pub fn map(
        &mut self,
        pid: Pid,
        range: Range<Address>,
        pgoff: u64,
        (image, mode): (ImageId, Option<Mode>),
    ) -> bool {
        if range.is_empty() {
            return true;
        }
        let process = self.processes.entry(pid).or_default();
        let shared = &mut process.mappings;
        let (before, others) = (shared.len(), Rc::strong_count(shared) > 1);
        // For a copy of a shared map, the new range, and the rest of a mapping that it splits.
        let needed = if others { before } else { 0 }.saturating_add(2);
        if self.entries.saturating_add(needed) > MAX_MAPPINGS {
            return false;
        }
        let space = Rc::make_mut(shared);
        let bias = pgoff.wrapping_sub(range.start.get());
        let mapped = (process.state, (range.start, range.end), (bias, image, mode));
        process.state = SpaceState(self.fingerprints.of(mapped));
        space.insert(range, MappedImage { image, bias, mode });
        let kept = if others { 0 } else { before };
        self.entries = self
            .entries
            .saturating_sub(kept)
            .saturating_add(space.len());
        true
    }

    /// Handles a fork: the child inherits its parent's mappings.
    pub fn fork(&mut self, parent: Pid, child: Pid) {
        if parent != child {
            let space = self.processes.get(&parent).cloned().unwrap_or_default();
            self.clear(child);
            self.processes.insert(child, space);
        }
    }

    /// Removes the mappings of a process after exec or exit.
    pub fn clear(&mut self, pid: Pid) {
        let gone = self.processes.remove(&pid);
        if let Some(space) = gone.and_then(|gone| Rc::into_inner(gone.mappings)) {
            self.entries = self.entries.saturating_sub(space.len());
        }
    }

    /// Returns the mapping of an address, with its remaining range.
    pub fn lookup(&self, pid: Pid, address: Address) -> Option<&Interval<MappedImage>> {
        self.processes.get(&pid)?.mappings.get(address)
    }

    /// Returns the state of a process's address space.
    pub fn state(&self, pid: Pid) -> SpaceState {
        let process = self.processes.get(&pid);
        process.map(|process| process.state).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Pid = Pid::new(1);
    const TWO: Pid = Pid::new(2);

    fn range(start: u64, end: u64) -> Range<Address> {
        Address::new(start)..Address::new(end)
    }

    fn image_at(spaces: &AddressSpaces, pid: Pid, address: u64) -> Option<(ImageId, u64)> {
        let address = Address::new(address);
        let mapped = spaces.lookup(pid, address)?.value;
        Some((mapped.image, mapped.offset(address)))
    }

    #[test]
    fn a_new_mapping_splits_the_old_one_and_offsets_stay_right() {
        let mut spaces = AddressSpaces::default();
        let (old, new) = (ImageId(0), ImageId(1));
        assert!(spaces.map(ONE, range(0x1000, 0x4000), 0x500, (old, None)));
        assert!(spaces.map(ONE, range(0x2000, 0x3000), 0, (new, None)));
        let at = |address| image_at(&spaces, ONE, address);
        assert_eq!(at(0xfff), None);
        assert_eq!(at(0x1fff), Some((old, 0x14ff)));
        assert_eq!(at(0x2000), Some((new, 0)));
        assert_eq!(at(0x3000), Some((old, 0x2500)));
        assert_eq!(at(0x4000), None);
    }

    #[test]
    fn a_child_keeps_its_parents_mappings_until_either_changes() {
        let mut spaces = AddressSpaces::default();
        let (old, new) = (ImageId(0), ImageId(1));
        assert!(spaces.map(ONE, range(0, 0x1000), 0, (old, None)));
        spaces.fork(ONE, TWO);
        assert!(spaces.map(ONE, range(0, 0x1000), 0, (new, None)));
        assert_eq!(image_at(&spaces, TWO, 0), Some((old, 0)));
        spaces.clear(TWO);
        assert_eq!(image_at(&spaces, TWO, 0), None);
        assert_eq!(image_at(&spaces, ONE, 0), Some((new, 0)));
    }

    #[test]
    fn mappings_at_the_end_of_memory_and_of_no_size_are_harmless() {
        let mut spaces = AddressSpaces::default();
        let image = (ImageId(0), None);
        assert!(spaces.map(ONE, range(u64::MAX - 1, u64::MAX), u64::MAX, image));
        assert!(spaces.map(ONE, range(5, 5), 0, image));
        assert_eq!(image_at(&spaces, ONE, 5), None);
        assert!(image_at(&spaces, ONE, u64::MAX - 1).is_some());
    }

    #[test]
    fn address_spaces_of_the_same_state_have_the_same_mappings() {
        let mut spaces = AddressSpaces::default();
        let image = |number| (ImageId(number), None);
        assert_eq!(spaces.state(ONE), spaces.state(TWO));
        assert!(spaces.map(ONE, range(0, 0x1000), 0, image(0)));
        assert_ne!(spaces.state(ONE), spaces.state(TWO));
        spaces.fork(ONE, TWO);
        assert_eq!(spaces.state(ONE), spaces.state(TWO));
        assert!(spaces.map(ONE, range(0x1000, 0x2000), 0, image(1)));
        assert!(spaces.map(TWO, range(0x1000, 0x2000), 8, image(1)));
        assert_ne!(spaces.state(ONE), spaces.state(TWO));
        spaces.clear(ONE);
        assert_eq!(spaces.state(ONE), SpaceState::default());
        assert!(spaces.map(ONE, range(0, 0x1000), 0, image(0)));
        assert!(spaces.map(ONE, range(0x1000, 0x2000), 8, image(1)));
        assert_eq!(spaces.state(ONE), spaces.state(TWO));
    }

    #[test]
    fn forks_and_mappings_in_turn_do_not_take_the_square_of_memory() {
        let mut spaces = AddressSpaces::default();
        let parent = Pid::new(0);
        for page in 0..10_000 {
            let page = range(page * 0x1000, (page + 1) * 0x1000);
            assert!(spaces.map(parent, page, 0, (ImageId(0), None)));
        }
        let fits = (1..1_000)
            .map(Pid::new)
            .take_while(|&pid| {
                spaces.fork(parent, pid);
                spaces.map(pid, range(0, 0x1000), 0, (ImageId(1), None))
            })
            .count();
        assert!(spaces.entries <= MAX_MAPPINGS);
        assert_eq!(fits, MAX_MAPPINGS / 10_000 - 1);
        (0..1_000).for_each(|pid| spaces.clear(Pid::new(pid)));
        assert_eq!(spaces.entries, 0);
    }
}
