//! Reads the debug sections of a file.

use std::borrow::Cow;

use gimli::{Dwarf, DwarfSections, RunTimeEndian, SectionId};

use super::Slice;
use super::budget::Budget;
use crate::Result;
use crate::elf::reader::ElfReader;

/// The debug sections of a file.
#[derive(Debug, Default)]
pub(super) struct Sections {
    sections: DwarfSections<Vec<u8>>,
    endian: RunTimeEndian,
    /// The size of all sections, in bytes.
    pub(super) size: usize,
    /// Why the first of those that cannot be read cannot be.
    pub(super) problem: Option<String>,
}

impl Sections {
    /// Reads the sections that are used. A section that cannot be read counts as empty.
    pub(super) fn read(image: &ElfReader<'_>) -> Self {
        Self::load(image, |id| Some(id.name()))
    }

    /// Like [`Sections::read`], for a `.dwo` file.
    pub(super) fn read_split(image: &ElfReader<'_>) -> Self {
        Self::load(image, SectionId::dwo_name)
    }

    fn load(image: &ElfReader<'_>, name: impl Fn(SectionId) -> Option<&'static str>) -> Self {
        let mut size = 0usize;
        let mut problem = None;
        let load = |id: SectionId| -> Result<Vec<u8>> {
            let used = matches!(
                id,
                SectionId::DebugAbbrev
                    | SectionId::DebugAddr
                    | SectionId::DebugAranges
                    | SectionId::DebugInfo
                    | SectionId::DebugLine
                    | SectionId::DebugLineStr
                    | SectionId::DebugRanges
                    | SectionId::DebugRngLists
                    | SectionId::DebugStr
                    | SectionId::DebugStrOffsets
            );
            let bytes = match name(id).filter(|_| used) {
                Some(name) => image.bytes_of(name).unwrap_or_else(|error| {
                    problem.get_or_insert_with(|| format!("{name}: {error}"));
                    Cow::default()
                }),
                None => Cow::default(),
            };
            let bytes = bytes.into_owned();
            size = size.saturating_add(bytes.len());
            Ok(bytes)
        };
        let sections = DwarfSections::load(load).unwrap_or_default();
        Self {
            sections,
            endian: image.encoding().endian(),
            size,
            problem,
        }
    }

    /// The budget for the work that these sections may cause.
    pub(super) fn budget(&self) -> Budget {
        Budget::new(self.size)
    }

    pub(super) fn view(&self) -> Dwarf<Slice<'_>> {
        self.sections.borrow(|bytes| Slice::new(bytes, self.endian))
    }
}
