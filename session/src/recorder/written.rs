//! Which mappings of a process does the recording know?

use varid_process::{AddressSpace, MappingId};

/// What has been written of a process's mappings. What was written of a mapping that has changed, or of the address space before an
/// exec or a fork, counts for nothing by itself: their ids are others.
#[derive(Debug, Default)]
pub struct Written {
    /// By slot: the serial number of the mapping that was written last.
    mappings: Vec<u64>,
    /// The serial number of the address space that has these parts of the remap range.
    space: u64,
    /// The parts' files.
    parts: Vec<&'static str>,
}

impl Written {
    /// Whether a mapping has been written.
    pub fn has(&self, id: MappingId) -> bool {
        self.mappings.get(id.slot as usize) == Some(&id.serial)
    }

    /// A mapping is written.
    pub fn add(&mut self, id: MappingId) {
        let slot = id.slot as usize;
        if self.mappings.len() <= slot {
            self.mappings.resize(slot.saturating_add(1), 0);
        }
        if let Some(serial) = self.mappings.get_mut(slot) {
            *serial = id.serial;
        }
    }

    /// Whether a part of the remap range has been written as a mapping of an address space.
    pub fn has_part(&self, file: &'static str, space: &AddressSpace) -> bool {
        self.space == space.serial() && self.parts.contains(&file)
    }

    /// A part of the remap range is written as a mapping of an address space.
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
        // A part of it is replaced: neither that part nor the rest is known.
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
