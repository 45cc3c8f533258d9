//! Which mapping held this address of this process at this time?
//!
//! Records come in order of time, so what is mapped now is what a sample of now saw.

use std::{
    collections::{BTreeMap, HashMap},
    rc::Rc,
};

use std::ops::Range;

use varid_model::Mode;

use crate::tables::ImageId;

/// A mapping's file, and what to add to an address to get the offset in it (modulo 2^64).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapped {
    /// The file.
    pub image: ImageId,
    /// `pgoff - start`, wrapping.
    bias: u64,
    /// What the process may do with it, if that is known.
    pub mode: Option<Mode>,
}

/// What is left of a mapping around an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// What is there.
    pub mapped: Mapped,
}

impl Mapped {
    /// The file offset of an address of the mapping.
    pub const fn offset(self, address: u64) -> u64 {
        address.wrapping_add(self.bias)
    }
}

/// Mappings of all processes together that are kept: a small recording of forks and mappings
/// can ask for the square of its size. A phone's hundred apps have some 300,000.
const MAX_MAPPINGS: usize = 4 << 20;

/// The mappings of every process.
#[derive(Debug, Default)]
pub struct AddressSpaces {
    processes: HashMap<u32, Space>,
    /// Entries of all distinct spaces.
    entries: usize,
}

/// Disjoint ranges: start, and the address behind the end.
type Space = Rc<BTreeMap<u64, (u64, Mapped)>>;

impl AddressSpaces {
    /// Maps a range; whatever it covers is unmapped there. `false`: there are too many
    /// mappings already, and this one was left out.
    #[must_use]
    pub fn map(
        &mut self,
        pid: u32,
        Range { start, end }: Range<u64>,
        pgoff: u64,
        (image, mode): (ImageId, Option<Mode>),
    ) -> bool {
        if end <= start {
            return true;
        }
        let shared = self.processes.entry(pid).or_default();
        let (before, others) = (shared.len(), Rc::strong_count(shared) > 1);
        // A copy if it is shared, the range, and what is left behind it of one that it splits.
        let needed = if others { before } else { 0 }.saturating_add(2);
        if self.entries.saturating_add(needed) > MAX_MAPPINGS {
            return false;
        }
        let space = Rc::make_mut(shared);
        let covered: Vec<_> = space
            .range(..end)
            .rev()
            .take_while(|(_, (its_end, _))| *its_end > start)
            .map(|(&its_start, &(its_end, mapped))| (its_start, its_end, mapped))
            .collect();
        for (its_start, its_end, mapped) in covered {
            space.remove(&its_start);
            if its_start < start {
                space.insert(its_start, (start, mapped));
            }
            if its_end > end {
                space.insert(end, (its_end, mapped));
            }
        }
        let bias = pgoff.wrapping_sub(start);
        space.insert(start, (end, Mapped { image, bias, mode }));
        let kept = if others { 0 } else { before };
        self.entries = self
            .entries
            .saturating_sub(kept)
            .saturating_add(space.len());
        true
    }

    /// A process is forked: it has its parent's mappings.
    pub fn fork(&mut self, parent: u32, child: u32) {
        if parent != child {
            let space = self.processes.get(&parent).cloned().unwrap_or_default();
            self.clear(child);
            self.processes.insert(child, space);
        }
    }

    /// A process replaces its mappings, or is gone.
    pub fn clear(&mut self, pid: u32) {
        let gone = self.processes.remove(&pid);
        if let Some(space) = gone.and_then(Rc::into_inner) {
            self.entries = self.entries.saturating_sub(space.len());
        }
    }

    /// The mapping of an address.
    pub fn lookup(&self, pid: u32, address: u64) -> Option<Mapped> {
        Some(self.stretch(pid, address)?.mapped)
    }

    /// The mapping of an address, and how far it reaches.
    pub fn stretch(&self, pid: u32, address: u64) -> Option<Stretch> {
        let (&start, &(end, mapped)) = self.processes.get(&pid)?.range(..=address).next_back()?;
        (address < end).then_some(Stretch { start, end, mapped })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_mapping_splits_the_old_one_and_offsets_stay_right() {
        let mut spaces = AddressSpaces::default();
        let (old, new) = (ImageId(0), ImageId(1));
        assert!(spaces.map(1, 0x1000..0x4000, 0x500, (old, None)));
        assert!(spaces.map(1, 0x2000..0x3000, 0, (new, None)));
        let at = |address| {
            let mapped = spaces.lookup(1, address)?;
            Some((mapped.image, mapped.offset(address)))
        };
        assert_eq!(at(0xfff), None);
        assert_eq!(at(0x1fff), Some((old, 0x14ff)));
        assert_eq!(at(0x2000), Some((new, 0)));
        assert_eq!(at(0x3000), Some((old, 0x2500)));
        assert_eq!(at(0x4000), None);
    }

    #[test]
    fn a_child_keeps_its_parents_mappings_until_either_changes() {
        let mut spaces = AddressSpaces::default();
        assert!(spaces.map(1, 0..0x1000, 0, (ImageId(0), None)));
        spaces.fork(1, 2);
        assert!(spaces.map(1, 0..0x1000, 0, (ImageId(1), None)));
        assert_eq!(spaces.lookup(2, 0).map(|m| m.image), Some(ImageId(0)));
        spaces.clear(2);
        assert_eq!(spaces.lookup(2, 0), None);
        assert_eq!(spaces.lookup(1, 0).map(|m| m.image), Some(ImageId(1)));
    }

    #[test]
    fn mappings_at_the_end_of_memory_and_of_no_size_are_harmless() {
        let mut spaces = AddressSpaces::default();
        assert!(spaces.map(1, u64::MAX - 1..u64::MAX, u64::MAX, (ImageId(0), None)));
        assert!(spaces.map(1, 5..5, 0, (ImageId(0), None)));
        assert_eq!(spaces.lookup(1, 5), None);
        assert!(spaces.lookup(1, u64::MAX - 1).is_some());
    }

    #[test]
    fn forks_and_mappings_in_turn_do_not_take_the_square_of_memory() {
        let mut spaces = AddressSpaces::default();
        for page in 0..10_000 {
            assert!(spaces.map(0, page * 0x1000..(page + 1) * 0x1000, 0, (ImageId(0), None)));
        }
        let fits = (1..1_000)
            .take_while(|&pid| {
                spaces.fork(0, pid);
                spaces.map(pid, 0..0x1000, 0, (ImageId(1), None))
            })
            .count();
        assert!(spaces.entries <= MAX_MAPPINGS);
        assert_eq!(fits, MAX_MAPPINGS / 10_000 - 1);
        (0..1_000).for_each(|pid| spaces.clear(pid));
        assert_eq!(spaces.entries, 0);
    }
}
