//! Finds the unit at an address of a file.

use std::collections::HashMap;
use std::sync::OnceLock;

use gimli::Dwarf;

use super::Slice;
use super::budget::Budget;
use super::code_ranges::CodeRanges;
use super::lines::Lines;
use super::names::NameTable;
use super::sections::Sections;
use super::split::Split;
use super::unit_input::UnitInput;
use super::unit_tables::UnitTables;
use super::units::Units;
use crate::Frame;
use crate::elf::debug_files::DebugFiles;
use crate::elf::ranges::Ranges;
use crate::elf::reader::ElfReader;

/// What is read of the functions at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::elf) enum FrameDetail {
    /// Their names.
    Functions,
    /// Also their lines, which take a line program for each unit.
    Lines,
}

/// The debug information of a file.
#[derive(Debug, Default)]
pub(in crate::elf) struct DebugFile {
    sections: Sections,
    supplementary: Option<(Sections, Units)>,
    units: Units,
    /// The functions of each unit, read at the first lookup in it.
    tables: Vec<OnceLock<UnitTables>>,
    /// The lines of each unit, read at the first lookup of a line in it.
    lines: Vec<OnceLock<Lines>>,
    /// The index of the unit at an address, read at the first lookup.
    index: OnceLock<Ranges<u32>>,
    split: Split,
    budget: Budget,
}

impl DebugFile {
    /// Reads the debug sections of `image`, the debug file of `program`, and of its supplementary file (`.gnu_debugaltlink`).
    pub(in crate::elf) fn read(
        program: &str,
        image: &ElfReader<'_>,
        supplementary: Option<&ElfReader<'_>>,
        debug_files: &DebugFiles,
    ) -> Self {
        let sections = Sections::read(image);
        let units = Units::read(&sections.view());
        let supplementary = supplementary.map(|image| {
            let sections = Sections::read(image);
            let units = Units::read(&sections.view());
            (sections, units)
        });
        let supplementary_size = supplementary
            .as_ref()
            .map_or(0, |(sections, _)| sections.size);
        Self {
            budget: Budget::new(sections.size.saturating_add(supplementary_size)),
            sections,
            supplementary,
            tables: units.offsets().iter().map(|_| OnceLock::new()).collect(),
            lines: units.offsets().iter().map(|_| OnceLock::new()).collect(),
            units,
            index: OnceLock::new(),
            split: Split::new(program, debug_files),
        }
    }

    /// Why a part of it cannot be read.
    pub(in crate::elf) fn problem(&self) -> Option<&str> {
        self.sections.problem.as_deref()
    }

    /// The functions at `address`, innermost first.
    pub(in crate::elf) fn frames(&self, address: u64, detail: FrameDetail) -> Vec<Frame<'_>> {
        let index = self.index.get_or_init(|| self.read_index());
        let frames = index.get(address).and_then(|unit| {
            let tables = self.tables(unit as usize)?;
            let lines = match detail {
                FrameDetail::Functions => None,
                FrameDetail::Lines => self.lines(unit as usize, tables),
            };
            Some(tables.frames(address, lines))
        });
        frames.unwrap_or_default()
    }

    fn view(&self) -> Dwarf<Slice<'_>> {
        let mut view = self.sections.view();
        if let Some((sections, _)) = &self.supplementary {
            view.set_sup(sections.view());
        }
        view
    }

    /// Reads which unit is at which address: from the unit's entry, else from `.debug_aranges`, else from the unit's functions and
    /// lines.
    fn read_index(&self) -> Ranges<u32> {
        let dwarf = self.view();
        let aranges = read_aranges(&dwarf);
        let mut ranges = Vec::new();
        for (index, offset) in self.units.offsets().iter().enumerate() {
            let (Some(unit), Ok(index32)) = (self.units.unit(&dwarf, index), u32::try_from(index))
            else {
                continue;
            };
            let before = ranges.len();
            let input = UnitInput {
                dwarf: &dwarf,
                unit: &unit,
                budget: &self.budget,
            };
            if let Some(code) = CodeRanges::of_unit(input) {
                let add = |start, end| ranges.push((start, end, index32));
                // The remaining ranges are missing if the budget is used up.
                let _ = code.for_each(input, add);
            }
            if ranges.len() == before {
                let listed = aranges.get(offset).into_iter().flatten();
                ranges.extend(listed.map(|&(start, end)| (start, end, index32)));
            }
            if ranges.len() == before
                && unit.header.type_() == gimli::UnitType::Compilation
                && let Some(tables) = self.tables(index)
            {
                let lines = self.lines(index, tables).map(Lines::ranges);
                let found = lines.into_iter().flatten().chain(tables.stretches());
                ranges.extend(found.map(|(start, end)| (start, end, index32)));
            }
        }
        // Of overlapping units with the same start the first one wins.
        ranges.sort_by_key(|&(start, _, unit)| (start, std::cmp::Reverse(unit)));
        Ranges::nested(ranges)
    }

    fn tables(&self, index: usize) -> Option<&UnitTables> {
        let tables = self.tables.get(index)?;
        Some(tables.get_or_init(|| {
            let dwarf = self.view();
            let Some(unit) = self.units.unit(&dwarf, index) else {
                return UnitTables::default();
            };
            let units = [
                Some(&self.units),
                self.supplementary.as_ref().map(|(_, units)| units),
            ];
            let input = UnitInput {
                dwarf: &dwarf,
                unit: &unit,
                budget: &self.budget,
            };
            if let Some(tables) = self.split.tables(input) {
                return tables;
            }
            UnitTables::read(input, &mut NameTable::new(input, units))
        }))
    }

    /// The lines of a unit with these functions. Those of a split unit are in its skeleton, which is the unit in this file.
    fn lines(&self, index: usize, tables: &UnitTables) -> Option<&Lines> {
        let lines = self.lines.get(index)?;
        Some(lines.get_or_init(|| {
            let dwarf = self.view();
            let Some(unit) = self.units.unit(&dwarf, index) else {
                return Lines::default();
            };
            let input = UnitInput {
                dwarf: &dwarf,
                unit: &unit,
                budget: &self.budget,
            };
            Lines::read(input, tables.call_files())
        }))
    }
}

/// The ranges in `.debug_aranges`, by the offset of their unit.
fn read_aranges(dwarf: &Dwarf<Slice<'_>>) -> HashMap<usize, Vec<(u64, u64)>> {
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
