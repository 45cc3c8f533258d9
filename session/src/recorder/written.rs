//! The mappings of a process that the recording contains.

use varid_process::{AddressSpace, MappingId};

/// The mappings of a process that have been written. Entries become invalid without further action when a mapping changes, and at
/// an exec or a fork, because the ids then differ.
#[derive(Debug, Default)]
pub struct Written {
    /// By slot: the serial number of the last written mapping.
    mappings: Vec<u64>,
    /// The serial number of the address space that has these parts of the remap range.
    space: u64,
    /// The parts' files.
    parts: Vec<&'static str>,
}

impl Written {
    /// Returns true if a mapping has been written.
    pub fn has(&self, id: MappingId) -> bool {
        self.mappings.get(id.slot as usize) == Some(&id.serial)
    }

    /// Adds a written mapping.
    pub fn add(&mut self, id: MappingId) {
        let slot = id.slot as usize;
        if self.mappings.len() <= slot {
            self.mappings.resize(slot.saturating_add(1), 0);
        }
        if let Some(serial) = self.mappings.get_mut(slot) {
            *serial = id.serial;
        }
    }

    /// Returns true if a part of the remap range has been written as a mapping of an address space.
    pub fn has_part(&self, file: &'static str, space: &AddressSpace) -> bool {
        self.space == space.serial() && self.parts.contains(&file)
    }

    /// Adds a part of the remap range that was written as a mapping of an address space.
    pub fn add_part(&mut self, file: &'static str, space: &AddressSpace) {
        if self.space != space.serial() {
            self.parts.clear();
            self.space = space.serial();
        }
        self.parts.push(file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use varid_process::{ProcessImage, ProcessMapping};

    fn map(space: &mut AddressSpace, start: u64, end: u64) {
        space.insert(ProcessMapping {
            start,
            end,
            pgoff: 0,
            image: ProcessImage::Other(Path::new("x").into()),
            mode: None,
            id: MappingId::default(),
        });
    }

    #[test]
    fn what_was_written_of_a_mapping_that_has_changed_counts_for_nothing() {
        let mut space = AddressSpace::default();
        let mut written = Written::default();
        map(&mut space, 0x1000, 0x3000);
        map(&mut space, 0x5000, 0x6000);
        let id = |space: &AddressSpace, at| space.at(at).unwrap().id;
        assert!(!written.has(id(&space, 0x1000)) && !written.has(MappingId::default()));
        for at in [0x1000, 0x5000] {
            written.add(id(&space, at));
            assert!(written.has(id(&space, at)));
        }
        // A part of it is replaced, so neither that part nor the rest has been written.
        map(&mut space, 0x2000, 0x3000);
        assert!(!written.has(id(&space, 0x1000)) && !written.has(id(&space, 0x2000)));
        assert!(written.has(id(&space, 0x5000)));
        space.renew(&(0x5000..0x5001));
        assert!(!written.has(id(&space, 0x5000)));
    }

    #[test]
    fn another_address_space_has_no_part_of_the_remap_range() {
        let (before, after) = (AddressSpace::default(), AddressSpace::default());
        let mut written = Written::default();
        written.add_part("a", &before);
        assert!(written.has_part("a", &before) && !written.has_part("a", &after));
        written.add_part("b", &after);
        assert!(written.has_part("b", &after) && !written.has_part("a", &after));
    }
}
