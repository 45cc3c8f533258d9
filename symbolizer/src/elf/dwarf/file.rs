//! Which units does a file's debug information have, and where is each of them?

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use gimli::{
    Abbreviations, DebugAbbrev, DebugInfoOffset, Dwarf, DwarfSections, Reader, RunTimeEndian,
    Section, SectionId, Unit,
};

use super::Slice;
use super::budget::Budget;
use super::covers::Covers;
use super::names::Namer;
use super::split::Split;
use super::unit::Tables;
use crate::elf::debug_files::DebugFiles;
use crate::elf::image::Image;
use crate::elf::ranges::Ranges;
use crate::{Frame, Result};

/// The debug information of a file.
#[derive(Debug, Default)]
pub(in crate::elf) struct DebugFile {
    sections: Sections,
    supplementary: Option<(Sections, Units)>,
    units: Units,
    /// Which unit is at an address: read at the first question.
    index: OnceLock<Ranges<u32>>,
    split: Split,
    budget: Budget,
}

/// The debug sections of a file.
#[derive(Debug, Default)]
pub(super) struct Sections {
    sections: DwarfSections<Vec<u8>>,
    endian: RunTimeEndian,
    size: usize,
}

/// The units of a file.
#[derive(Debug, Default)]
pub(super) struct Units {
    /// By place.
    entries: Vec<Entry>,
    /// By place: units can share them.
    abbreviations: Vec<Shared>,
}

/// A unit.
#[derive(Debug)]
struct Entry {
    offset: usize,
    tables: OnceLock<Tables>,
}

/// The abbreviations of a unit, or of some.
#[derive(Debug)]
struct Shared {
    start: usize,
    /// Where the next ones begin: those of no honest unit reach further.
    end: usize,
    read: OnceLock<Option<Arc<Abbreviations>>>,
}

impl Sections {
    /// Reads the sections that are used. One that cannot be read counts as empty.
    fn read(image: &Image<'_>) -> Self {
        Self::load(image, |id| Some(id.name()))
    }

    /// As [`Sections::read`], of a `.dwo` file.
    pub(super) fn read_split(image: &Image<'_>) -> Self {
        Self::load(image, SectionId::dwo_name)
    }

    fn load(image: &Image<'_>, name: impl Fn(SectionId) -> Option<&'static str>) -> Self {
        let mut size = 0usize;
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
            let bytes = name(id)
                .filter(|_| used)
                .and_then(|name| image.bytes_of(name).ok())
                .map(Cow::into_owned)
                .unwrap_or_default();
            size = size.saturating_add(bytes.len());
            Ok(bytes)
        };
        let sections = DwarfSections::load(load).unwrap_or_default();
        Self {
            sections,
            endian: image.order().endian(),
            size,
        }
    }

    /// For the work that these sections may cause.
    pub(super) fn budget(&self) -> Budget {
        Budget::new(self.size)
    }

    pub(super) fn view(&self) -> Dwarf<Slice<'_>> {
        self.sections.borrow(|bytes| Slice::new(bytes, self.endian))
    }
}

impl DebugFile {
    /// Reads the debug sections of `program`'s debug file, and of the one that it shares parts with.
    pub(in crate::elf) fn read(
        program: &str,
        image: &Image<'_>,
        supplementary: Option<&Image<'_>>,
        debug_files: &DebugFiles,
    ) -> Self {
        let sections = Sections::read(image);
        let units = Units::read(&sections.view());
        let supplementary = supplementary.map(|image| {
            let sections = Sections::read(image);
            let units = Units::read(&sections.view());
            (sections, units)
        });
        let more = supplementary
            .as_ref()
            .map_or(0, |(sections, _)| sections.size);
        Self {
            budget: Budget::new(sections.size.saturating_add(more)),
            sections,
            supplementary,
            units,
            index: OnceLock::new(),
            split: Split::new(program, debug_files),
        }
    }

    /// The functions at `address`, innermost first.
    pub(in crate::elf) fn frames(&self, address: u64) -> Vec<Frame<'_>> {
        self.index
            .get_or_init(|| self.read_index())
            .get(address)
            .and_then(|unit| self.tables(unit as usize))
            .map(|tables| tables.frames(address))
            .unwrap_or_default()
    }

    fn view(&self) -> Dwarf<Slice<'_>> {
        let mut view = self.sections.view();
        if let Some((sections, _)) = &self.supplementary {
            view.set_sup(sections.view());
        }
        view
    }

    /// Finds out which unit is at which address.
    fn read_index(&self) -> Ranges<u32> {
        let dwarf = self.view();
        let listed = listed_ranges(&dwarf);
        let mut ranges = Vec::new();
        for (index, entry) in self.units.entries.iter().enumerate() {
            let (Some(unit), Ok(index32)) = (self.units.unit(&dwarf, index), u32::try_from(index))
            else {
                continue;
            };
            let before = ranges.len();
            if let Some(covers) = Covers::of_unit(&unit) {
                let add = |start, end| ranges.push((start, end, index32));
                // Where the budget ends the others are not found.
                let _ = covers.each(&dwarf, &unit, &self.budget, add);
            }
            if ranges.len() == before {
                let listed = listed.get(&entry.offset).into_iter().flatten();
                ranges.extend(listed.map(|&(start, end)| (start, end, index32)));
            }
            if ranges.len() == before
                && unit.header.type_() == gimli::UnitType::Compilation
                && let Some(tables) = self.tables(index)
            {
                ranges.extend(
                    tables
                        .ranges()
                        .into_iter()
                        .map(|(start, end)| (start, end, index32)),
                );
            }
        }
        // Where units overlap the first one counts.
        ranges.sort_by_key(|&(start, _, unit)| (start, std::cmp::Reverse(unit)));
        Ranges::nested(ranges)
    }

    fn tables(&self, index: usize) -> Option<&Tables> {
        let entry = self.units.entries.get(index)?;
        Some(entry.tables.get_or_init(|| {
            let dwarf = self.view();
            let Some(unit) = self.units.unit(&dwarf, index) else {
                return Tables::default();
            };
            if let Some(tables) = self.split.tables(&dwarf, &unit, &self.budget) {
                return tables;
            }
            let units = [
                Some(&self.units),
                self.supplementary.as_ref().map(|(_, units)| units),
            ];
            let mut namer = Namer::new(&dwarf, &unit, &self.budget, units);
            Tables::read((&dwarf, &unit, &self.budget), None, &mut namer)
        }))
    }
}

impl Units {
    /// Finds the units; what comes after a broken one is not found.
    fn read(dwarf: &Dwarf<Slice<'_>>) -> Self {
        let mut found = Vec::new();
        let mut starts = Vec::new();
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            if let Some(offset) = header.debug_info_offset()
                && !matches!(
                    header.type_(),
                    gimli::UnitType::Type { .. } | gimli::UnitType::SplitType { .. }
                )
            {
                found.push(Entry {
                    offset: offset.0,
                    tables: OnceLock::new(),
                });
                starts.push(header.debug_abbrev_offset().0);
            }
        }
        starts.sort_unstable();
        starts.dedup();
        let ends = starts.iter().skip(1).copied().chain([usize::MAX]);
        let shared = starts.iter().zip(ends).map(|(&start, end)| Shared {
            start,
            end,
            read: OnceLock::new(),
        });
        Self {
            entries: found,
            abbreviations: shared.collect(),
        }
    }

    /// The unit that the entry at `offset` would be in.
    pub(super) fn holding(&self, offset: usize) -> Option<usize> {
        self.entries
            .partition_point(|entry| entry.offset <= offset)
            .checked_sub(1)
    }

    /// Reads a unit's head.
    pub(super) fn unit<'d>(
        &self,
        dwarf: &Dwarf<Slice<'d>>,
        index: usize,
    ) -> Option<Unit<Slice<'d>>> {
        let entry = self.entries.get(index)?;
        let header = dwarf
            .debug_info
            .header_from_offset(DebugInfoOffset(entry.offset))
            .ok()?;
        let start = header.debug_abbrev_offset();
        let shared = self
            .abbreviations
            .binary_search_by_key(&start.0, |shared| shared.start)
            .ok()
            .and_then(|at| self.abbreviations.get(at))?;
        let abbreviations = shared
            .read
            .get_or_init(|| {
                let all = dwarf.debug_abbrev.reader();
                let own = all.slice().get(..shared.end).unwrap_or(all.slice());
                DebugAbbrev::new(own, all.endian())
                    .abbreviations(start)
                    .ok()
                    .map(Arc::new)
            })
            .clone()?;
        Unit::new_with_abbreviations(dwarf, header, abbreviations).ok()
    }
}

/// The ranges that `.debug_aranges` has, by the unit's offset.
fn listed_ranges(dwarf: &Dwarf<Slice<'_>>) -> HashMap<usize, Vec<(u64, u64)>> {
    let mut listed: HashMap<usize, Vec<(u64, u64)>> = HashMap::new();
    let mut headers = dwarf.debug_aranges.headers();
    while let Ok(Some(header)) = headers.next() {
        let ranges = listed.entry(header.debug_info_offset().0).or_default();
        let mut entries = header.entries();
        while let Ok(Some(entry)) = entries.next() {
            let range = entry.range();
            if range.begin != 0 && range.begin < range.end {
                ranges.push((range.begin, range.end));
            }
        }
    }
    listed
}
