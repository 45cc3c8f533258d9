//! Which mapping held this address of this process at this time?
//!
//! Records come in order of time: what is mapped when a sample is read was mapped when it was taken.

use std::{ops::Range, rc::Rc};

use varid_model::{Address, Interval, IntervalMap, IntervalValue, Mode, Pid};

use crate::{
    fast_hash::{FastMap, Fingerprint, Fingerprints},
    frames::ImageId,
};

/// What a process has mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappedImage {
    /// The file.
    pub image: ImageId,
    /// What to add to an address to get the offset in the file: `pgoff - start`, modulo 2^64.
    bias: u64,
    /// What the process may do with it, if that is known.
    pub mode: Option<Mode>,
}

impl MappedImage {
    /// The file offset of an address of the mapping.
    pub const fn offset(self, address: Address) -> u64 {
        address.get().wrapping_add(self.bias)
    }
}

impl IntervalValue for MappedImage {
    /// The bias is the same in all parts.
    fn part(&self, _: u64) -> Self {
        *self
    }
}

/// Mappings of all processes together that are kept: a small recording of forks and mappings
/// can ask for the square of its size. A phone's hundred apps have some 300,000.
const MAX_MAPPINGS: usize = 4 << 20;

/// The mappings of every process.
#[derive(Debug, Default)]
pub struct AddressSpaces {
    processes: FastMap<Pid, AddressSpace>,
    fingerprints: Fingerprints,
    /// Entries of all distinct maps.
    entries: usize,
}

/// The mappings of a process.
#[derive(Debug, Clone, Default)]
struct AddressSpace {
    /// A child shares its parent's map until either changes.
    mappings: Rc<IntervalMap<MappedImage>>,
    state: SpaceState,
}

/// What an address space has mapped, as a number: equal ones have the same mappings. It is made of all that was mapped in turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct SpaceState(Fingerprint);

impl SpaceState {
    /// Bits that are others in another state.
    pub fn bits(self) -> u64 {
        let [bits, _] = self.0;
        bits
    }
}

impl AddressSpaces {
    /// Maps a range; whatever it covers is unmapped there. `false`: there are too many
    /// mappings already, and this one was left out.
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
        // A copy if it is shared, the range, and what is left behind it of one that it splits.
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

    /// A process is forked: it has its parent's mappings.
    pub fn fork(&mut self, parent: Pid, child: Pid) {
        if parent != child {
            let space = self.processes.get(&parent).cloned().unwrap_or_default();
            self.clear(child);
            self.processes.insert(child, space);
        }
    }

    /// A process replaces its mappings, or is gone.
    pub fn clear(&mut self, pid: Pid) {
        let gone = self.processes.remove(&pid);
        if let Some(space) = gone.and_then(|gone| Rc::into_inner(gone.mappings)) {
            self.entries = self.entries.saturating_sub(space.len());
        }
    }

    /// The mapping of an address, and what is left of its range.
    pub fn lookup(&self, pid: Pid, address: Address) -> Option<&Interval<MappedImage>> {
        self.processes.get(&pid)?.mappings.get(address)
    }

    /// What a process has mapped now, as a number.
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
