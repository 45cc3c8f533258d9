//! Describes where the parts of a substitute are that may grow, and how much space they have.

use std::ops::Range;

use object::write::elf::SectionIndex;

/// The names of the sections of symbols, and of their names.
pub(super) const SYMBOLS: &str = ".symtab";
pub(super) const STRINGS: &str = ".strtab";

/// How much space follows each section that may grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spare {
    /// None: the file is complete.
    None,
    /// As much as the section takes.
    Double,
}

impl Spare {
    /// Returns the space behind a section of a size.
    pub(super) fn behind(self, size: usize) -> usize {
        match self {
            Self::None => 0,
            Self::Double => size,
        }
    }

    /// Returns the number of further tables of section headers for a file with so many symbols.
    pub(super) fn tables(self, symbols: usize) -> usize {
        match self {
            Self::None => 0,
            Self::Double => (symbols / 4).saturating_add(16),
        }
    }
}

/// A part of the file that may grow.
#[derive(Debug, Clone)]
pub(super) struct Room {
    /// The offsets of its content.
    pub(super) content: Range<usize>,
    /// The offset at which its spare space ends.
    pub(super) end: usize,
}

impl Room {
    /// Returns the part with so many further bytes. None if there is not enough space.
    pub(super) fn grown(&self, bytes: usize) -> Option<Self> {
        let content = self.content.start..self.content.end.saturating_add(bytes);
        let end = self.end;
        (content.end <= end).then_some(Self { content, end })
    }
}

/// A section that may grow.
#[derive(Debug, Clone)]
pub(super) struct SectionRoom {
    pub(super) name: &'static str,
    /// Its index in the table of section headers.
    pub(super) index: SectionIndex,
    pub(super) room: Room,
}

/// Where the parts of a file are.
#[derive(Debug)]
pub(super) struct Places {
    /// The section of all symbols.
    pub(super) text: SectionIndex,
    pub(super) sections: Vec<SectionRoom>,
    /// The table of section headers, the last part of the file.
    pub(super) headers: Room,
}

impl Places {
    /// Returns the size of a section. A section that is not in the file has none.
    pub(super) fn size(&self, section: &str) -> usize {
        let known = self.section(section);
        known.map_or(0, |known| known.room.content.len())
    }

    /// Returns a section with so many further bytes. None if there is not enough space, or no such section.
    pub(super) fn grown(&self, section: &str, bytes: usize) -> Option<SectionRoom> {
        let known = self.section(section)?;
        let room = known.room.grown(bytes)?;
        Some(SectionRoom { room, ..*known })
    }

    /// Replaces a section by one that has grown.
    pub(super) fn replace(&mut self, grown: SectionRoom) {
        let mut sections = self.sections.iter_mut();
        if let Some(known) = sections.find(|known| known.index == grown.index) {
            *known = grown;
        }
    }

    fn section(&self, name: &str) -> Option<&SectionRoom> {
        self.sections.iter().find(|known| known.name == name)
    }
}
