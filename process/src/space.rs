//! A process's addresses: which image is where, by time of the last change.

use crate::file::MappedFile;
use crate::image::Image;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;
use varid_model::Mode;

/// A stretch of addresses that shows an image.
#[derive(Debug, Clone)]
pub struct Mapped {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// Offset in the file of `start`.
    pub pgoff: u64,
    /// What is there.
    pub image: Image,
    /// What the process may do with it; none: nobody said.
    pub mode: Option<Mode>,
    /// The recording knows of it.
    pub recorded: bool,
}

impl Mapped {
    /// A mapping, all of which shows one image.
    pub(super) fn whole(file: &MappedFile<'_>, image: Image) -> Self {
        // A bytecode file's own offsets count from where it starts.
        let pgoff = match &image {
            Image::Code(_) => 0,
            _ => file.pgoff,
        };
        Self {
            start: file.start,
            end: file.end,
            pgoff,
            image,
            mode: Some(file.mode),
            recorded: false,
        }
    }
}

/// All mappings of a process that samples can land in.
#[derive(Debug, Clone, Default)]
pub struct AddressSpace {
    /// By address, disjoint.
    mappings: Vec<Mapped>,
    /// Which one the last address was in, as the next one often is. Only a guess: what stands
    /// there now says whether it is right.
    last: Cell<usize>,
    /// Counts what has changed of what is mapped, or of what has been recorded of it.
    changes: u64,
}

impl AddressSpace {
    /// While this number is the same, so is what is mapped where; and what the recording knew of
    /// it, it knows.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// The mapping of an address.
    pub fn at(&self, address: u64) -> Option<&Mapped> {
        self.mappings.get(self.index(address)?)
    }

    /// The same, to note that it has been recorded.
    pub fn at_mut(&mut self, address: u64) -> Option<&mut Mapped> {
        let index = self.index(address)?;
        self.mappings.get_mut(index)
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

    /// Which mappings show any of these addresses.
    fn overlapping(&self, range: &Range<u64>) -> Range<usize> {
        let from = self
            .mappings
            .partition_point(|mapped| mapped.end <= range.start);
        let to = self
            .mappings
            .partition_point(|mapped| mapped.start < range.end);
        from..to.max(from)
    }

    /// All of them, by address.
    pub fn iter(&self) -> impl Iterator<Item = &Mapped> {
        self.mappings.iter()
    }

    /// How many bytes are kept of the files of bytecode.
    pub(super) fn code_memory(&self) -> u64 {
        let mut counted = BTreeSet::new();
        self.iter()
            .filter(|mapped| match &mapped.image {
                Image::Code(code) => counted.insert(Rc::as_ptr(code)),
                Image::Elf(_) | Image::Other(_) => false,
            })
            .map(|mapped| mapped.image.code_memory())
            .fold(0, u64::saturating_add)
    }

    /// A new mapping replaces what it covers, as mmap does. False: there are too many to keep it.
    pub fn insert(&mut self, mapped: Mapped) -> bool {
        /// Of code and dex files no process has so many; each new one moves those behind it.
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
            self.mappings.insert(before, mapped);
        }
        true
    }

    /// Nothing is known of these addresses any more.
    pub fn remove(&mut self, start: u64, end: u64) {
        let overlapping = self.overlapping(&(start..end));
        if overlapping.is_empty() {
            return;
        }
        self.changes = self.changes.wrapping_add(1);
        let removed = self.mappings.get(overlapping.clone()).unwrap_or_default();
        let left = removed.first().filter(|old| old.start < start);
        let left = left.map(|old| Mapped {
            end: start,
            recorded: false,
            ..old.clone()
        });
        let right = removed.last().filter(|old| old.end > end);
        let right = right.map(|old| Mapped {
            start: end,
            pgoff: old.pgoff.wrapping_add(end.wrapping_sub(old.start)),
            recorded: false,
            ..old.clone()
        });
        self.mappings
            .splice(overlapping, left.into_iter().chain(right));
    }

    /// What is at these addresses is to be recorded again.
    pub fn forget_recorded_in(&mut self, range: &Range<u64>) {
        self.changes = self.changes.wrapping_add(1);
        let overlapping = self.overlapping(range);
        let mappings = self.mappings.get_mut(overlapping).unwrap_or_default();
        mappings
            .iter_mut()
            .for_each(|mapped| mapped.recorded = false);
    }

    /// Nothing has been recorded yet: another process has taken these mappings over.
    pub fn forget_recorded(&mut self) {
        self.changes = self.changes.wrapping_add(1);
        self.mappings
            .iter_mut()
            .for_each(|mapped| mapped.recorded = false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;

    fn mapped(start: u64, end: u64) -> Mapped {
        Mapped {
            start,
            end,
            pgoff: start,
            image: Image::Other(Path::new("x").into()),
            mode: None,
            recorded: true,
        }
    }

    #[test]
    fn a_mapping_in_the_middle_splits_what_was_there() {
        let mut space = AddressSpace::default();
        space.insert(mapped(0x1000, 0x5000));
        space.insert(Mapped {
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

    fn file(mapped: &Mapped) -> u64 {
        let Image::Other(path) = &mapped.image else {
            panic!("no other image is mapped here")
        };
        path.to_str().unwrap().parse().unwrap()
    }

    proptest! {
        #[test]
        fn every_address_shows_what_was_mapped_there_last(changes in changes()) {
            let mut space = AddressSpace::default();
            let mut model: Model = [None; 64];
            for (start, end, what) in changes {
                match what {
                    Some((pgoff, id)) => {
                        let image = Image::Other(Path::new(&id.to_string()).into());
                        space.insert(Mapped { start, end, pgoff, image, mode: None, recorded: true });
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
                    let found = space.at_mut(at).map(|mapped| mapped.start);
                    prop_assert_eq!(found, space.at(at).map(|mapped| mapped.start));
                }
                let all: Vec<_> = space.iter().map(|mapped| (mapped.start, mapped.end)).collect();
                prop_assert!(all.iter().all(|(start, end)| start < end));
                prop_assert!(all.windows(2).all(|pair| pair[0].1 <= pair[1].0));
            }
            space.forget_recorded();
            prop_assert!(space.iter().all(|mapped| !mapped.recorded));
        }
    }
}
