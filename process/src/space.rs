//! The address space of a process: the images that are mapped at its addresses.

use crate::file::KernelMapping;
use crate::image::ProcessImage;
use crate::mapping_id::{MappingId, Slots, next_serial};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;
use varid_model::Mode;

/// A range of addresses with an image.
#[derive(Debug, Clone)]
pub struct ProcessMapping {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// The file offset of `start`.
    pub pgoff: u64,
    /// The image.
    pub image: ProcessImage,
    /// What the process may do with it. None if it is not known.
    pub mode: Option<Mode>,
    /// Its id, which an address space assigns.
    pub id: MappingId,
}

impl ProcessMapping {
    /// Returns the offset of an address in the image, in bytes.
    pub fn offset_of(&self, address: u64) -> u64 {
        address.wrapping_sub(self.start).wrapping_add(self.pgoff)
    }

    /// A mapping of one image.
    pub(super) fn whole(file: &KernelMapping<'_>, image: ProcessImage) -> Self {
        // Offsets in a bytecode image count from the start of that image.
        let pgoff = match &image {
            ProcessImage::Code(_) => 0,
            _ => file.pgoff,
        };
        Self {
            start: file.start,
            end: file.end,
            pgoff,
            image,
            mode: Some(file.mode),
            id: MappingId::default(),
        }
    }
}

/// The mappings of a process that can be sampled.
#[derive(Debug)]
pub struct AddressSpace {
    /// By address, disjoint.
    mappings: Vec<ProcessMapping>,
    /// The index of the mapping that the last lookup found. The next address is often in the same one; a lookup checks that.
    last: Cell<usize>,
    slots: Slots,
    /// A number that no other address space has.
    serial: u64,
    /// Counts changes of the mappings.
    changes: u64,
}

impl Default for AddressSpace {
    fn default() -> Self {
        Self {
            mappings: Vec::new(),
            last: Cell::default(),
            slots: Slots::default(),
            serial: next_serial(),
            changes: 0,
        }
    }
}

impl AddressSpace {
    /// Returns a number that no other address space has. A forked process has another one, and so does the same process after an exec.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// Returns a number that changes with the mappings and their ids.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns the mapping of an address.
    pub fn at(&self, address: u64) -> Option<&ProcessMapping> {
        self.mappings.get(self.index(address)?)
    }

    fn index(&self, address: u64) -> Option<usize> {
        let holds = |index: usize| {
            let mapped = self.mappings.get(index);
            mapped.is_some_and(|mapped| mapped.start <= address && address < mapped.end)
        };
        let last = self.last.get();
        if holds(last) {
            return Some(last);
        }
        let after = self
            .mappings
            .partition_point(|mapped| mapped.start <= address);
        let index = after.checked_sub(1).filter(|index| holds(*index))?;
        self.last.set(index);
        Some(index)
    }

    /// Returns the indices of the mappings that overlap a range.
    fn overlapping(&self, range: &Range<u64>) -> Range<usize> {
        let from = self
            .mappings
            .partition_point(|mapped| mapped.end <= range.start);
        let to = self
            .mappings
            .partition_point(|mapped| mapped.start < range.end);
        from..to.max(from)
    }

    /// Returns the mappings that overlap a range, by address.
    pub(crate) fn within(&self, range: &Range<u64>) -> &[ProcessMapping] {
        let places = self.overlapping(range);
        self.mappings.get(places).unwrap_or_default()
    }

    /// Returns all mappings, by address.
    pub fn iter(&self) -> impl Iterator<Item = &ProcessMapping> {
        self.mappings.iter()
    }

    /// Returns the size of the bytecode files that are in memory, in bytes.
    pub(super) fn code_memory(&self) -> u64 {
        let mut counted = BTreeSet::new();
        self.iter()
            .filter(|mapped| match &mapped.image {
                ProcessImage::Code(code) => counted.insert(Rc::as_ptr(code)),
                ProcessImage::Elf(_) | ProcessImage::Other(_) => false,
            })
            .map(|mapped| mapped.image.code_memory())
            .fold(0, u64::saturating_add)
    }

    /// Adds a mapping, which replaces those that it overlaps, as mmap(2) does. Returns false if there are too many mappings; then it is not
    /// added.
    pub fn insert(&mut self, mapped: ProcessMapping) -> bool {
        /// The most mappings. Real processes have far fewer of code and dex files. Adding a mapping takes time in proportion to their
        /// number.
        const MAX_MAPPINGS: usize = 1 << 13;
        self.remove(mapped.start, mapped.end);
        if self.mappings.len() >= MAX_MAPPINGS {
            return false;
        }
        if mapped.start < mapped.end {
            self.changes = self.changes.wrapping_add(1);
            let before = self
                .mappings
                .partition_point(|other| other.start < mapped.start);
            let id = self.slots.assign();
            self.mappings
                .insert(before, ProcessMapping { id, ..mapped });
        }
        true
    }

    /// Removes the mappings of a range.
    pub fn remove(&mut self, start: u64, end: u64) {
        let overlapping = self.overlapping(&(start..end));
        if overlapping.is_empty() {
            return;
        }
        self.changes = self.changes.wrapping_add(1);
        let removed = self.mappings.get(overlapping.clone()).unwrap_or_default();
        removed.iter().for_each(|old| self.slots.release(old.id));
        let left = removed.first().filter(|old| old.start < start);
        let left = left.map(|old| ProcessMapping {
            end: start,
            id: self.slots.assign(),
            ..old.clone()
        });
        let right = removed.last().filter(|old| old.end > end);
        let right = right.map(|old| ProcessMapping {
            start: end,
            pgoff: old.pgoff.wrapping_add(end.wrapping_sub(old.start)),
            id: self.slots.assign(),
            ..old.clone()
        });
        self.mappings
            .splice(overlapping, left.into_iter().chain(right));
    }

    /// Gives new ids to the mappings that overlap a range, because their contents have changed.
    pub fn renew(&mut self, range: &Range<u64>) {
        self.changes = self.changes.wrapping_add(1);
        let overlapping = self.overlapping(range);
        let mappings = self.mappings.get_mut(overlapping).unwrap_or_default();
        for mapped in mappings {
            mapped.id.serial = next_serial();
        }
    }

    /// Returns the address space of a forked process: the same mappings, with other ids.
    pub(super) fn fork(&self) -> Self {
        let mut child = Self {
            mappings: self.mappings.clone(),
            slots: self.slots.clone(),
            ..Self::default()
        };
        child.renew(&(0..u64::MAX));
        child
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;
    use std::path::Path;

    fn mapped(start: u64, end: u64) -> ProcessMapping {
        ProcessMapping {
            start,
            end,
            pgoff: start,
            image: ProcessImage::Other(Path::new("x").into()),
            mode: None,
            id: MappingId::default(),
        }
    }

    #[test]
    fn a_mapping_in_the_middle_splits_what_was_there() {
        let mut space = AddressSpace::default();
        space.insert(mapped(0x1000, 0x5000));
        space.insert(ProcessMapping {
            pgoff: 0,
            ..mapped(0x2000, 0x3000)
        });
        let found: Vec<_> = space.iter().map(|m| (m.start, m.end, m.pgoff)).collect();
        assert_eq!(
            found,
            [
                (0x1000, 0x2000, 0x1000),
                (0x2000, 0x3000, 0),
                (0x3000, 0x5000, 0x3000)
            ]
        );
        assert!(space.at(0x0fff).is_none() && space.at(0x5000).is_none());
        assert_eq!(space.at(0x4fff).unwrap().start, 0x3000);
        space.remove(0, 0x10000);
        assert_eq!(space.iter().count(), 0);
    }

    #[test]
    fn a_mapping_keeps_its_id_until_it_changes() {
        let mut space = AddressSpace::default();
        space.insert(mapped(0x1000, 0x2000));
        space.insert(mapped(0x3000, 0x4000));
        let ids = |space: &AddressSpace| -> Vec<_> { space.iter().map(|one| one.id).collect() };
        let before = ids(&space);
        // Something else changes.
        space.insert(mapped(0x5000, 0x6000));
        space.remove(0x5000, 0x6000);
        assert_eq!(ids(&space), before);
        let child = space.fork();
        assert!(ids(&child).iter().all(|id| !before.contains(id)));
        assert_ne!(child.serial(), space.serial());
        let changes = space.changes();
        space.renew(&(0x1000..0x1001));
        assert_ne!(space.changes(), changes);
        space.insert(mapped(0x3800, 0x3900));
        assert!(ids(&space).iter().all(|id| !before.contains(id)));
    }

    /// What is mapped at each of a few addresses: which mapping, and which byte of its file.
    type Model = [Option<(u64, u64)>; 64];

    /// From where to where, at which offset of which file; none: unmapped.
    type Change = (u64, u64, Option<(u64, u64)>);

    fn changes() -> impl Strategy<Value = Vec<Change>> {
        let what = prop::option::weighted(0.7, (0u64..1000, 0u64..4));
        prop::collection::vec((0u64..64, 0u64..24, what), 0..24).prop_map(|all| {
            all.into_iter()
                .map(|(start, len, what)| (start, (start + len).min(64), what))
                .collect()
        })
    }

    fn file(mapped: &ProcessMapping) -> u64 {
        let ProcessImage::Other(path) = &mapped.image else {
            panic!("no other image is mapped here")
        };
        path.to_str().unwrap().parse().unwrap()
    }

    proptest! {
        #[test]
        fn every_address_shows_what_was_mapped_there_last(changes in changes()) {
            let mut space = AddressSpace::default();
            let mut model: Model = [None; 64];
            let mut most = 0;
            for (start, end, what) in changes {
                match what {
                    Some((pgoff, id)) => {
                        let image = ProcessImage::Other(Path::new(&id.to_string()).into());
                        space.insert(ProcessMapping { start, end, pgoff, image, mode: None, id: MappingId::default() });
                        (start..end).for_each(|at| model[at as usize] = Some((id, pgoff + at - start)));
                    }
                    None => {
                        space.remove(start, end);
                        (start..end).for_each(|at| model[at as usize] = None);
                    }
                }
                for (at, expected) in (0..).zip(model) {
                    let found = space.at(at).map(|mapped| (file(mapped), mapped.pgoff + at - mapped.start));
                    prop_assert_eq!(found, expected, "at {}", at);
                }
                let serials: HashSet<_> = space.iter().map(|mapped| mapped.id.serial).collect();
                let slots: HashSet<_> = space.iter().map(|mapped| mapped.id.slot).collect();
                prop_assert!(serials.len() == slots.len() && slots.len() == space.iter().count());
                most = most.max(slots.len());
                // While a mapping splits in two there is one more.
                prop_assert!(slots.iter().all(|slot| (*slot as usize) <= most), "slots are used again");
                let all: Vec<_> = space.iter().map(|mapped| (mapped.start, mapped.end)).collect();
                prop_assert!(all.iter().all(|(start, end)| start < end));
                prop_assert!(all.windows(2).all(|pair| pair[0].1 <= pair[1].0));
            }
        }
    }
}
