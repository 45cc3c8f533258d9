//! Which unit is at an address, and what does it have there?

use std::collections::HashMap;
use std::sync::OnceLock;

use gimli::Dwarf;

use super::Slice;
use super::budget::Budget;
use super::covers::Covers;
use super::names::Namer;
use super::sections::Sections;
use super::split::Split;
use super::unit::Tables;
use super::units::Units;
use crate::Frame;
use crate::elf::debug_files::DebugFiles;
use crate::elf::image::Image;
use crate::elf::ranges::Ranges;

/// The debug information of a file.
#[derive(Debug, Default)]
pub(in crate::elf) struct DebugFile {
    sections: Sections,
    supplementary: Option<(Sections, Units)>,
    units: Units,
    /// What is known of each unit, once it has been asked for.
    tables: Vec<OnceLock<Tables>>,
    /// Which unit is at an address: read at the first question.
    index: OnceLock<Ranges<u32>>,
    split: Split,
    budget: Budget,
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
            tables: units.offsets().iter().map(|_| OnceLock::new()).collect(),
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
        for (index, offset) in self.units.offsets().iter().enumerate() {
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
                let listed = listed.get(offset).into_iter().flatten();
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
        let tables = self.tables.get(index)?;
        Some(tables.get_or_init(|| {
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
