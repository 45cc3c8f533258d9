//! The units of a file's debug information.

use std::sync::{Arc, OnceLock};

use gimli::{Abbreviations, DebugAbbrev, DebugInfoOffset, Dwarf, Reader, Section, Unit};

use super::Slice;

/// The units of a file.
#[derive(Debug, Default)]
pub(super) struct Units {
    /// Their offsets in `.debug_info`, ascending.
    offsets: Vec<usize>,
    /// Sorted by start. Units can share them.
    abbreviations: Vec<SharedAbbreviations>,
}

/// The abbreviations of one or more units.
#[derive(Debug)]
struct SharedAbbreviations {
    start: usize,
    /// The start of the next abbreviations. Nothing is read beyond it.
    end: usize,
    read: OnceLock<Option<Arc<Abbreviations>>>,
}

impl Units {
    /// Finds the units. Those after a broken header are not found.
    pub(super) fn read(dwarf: &Dwarf<Slice<'_>>) -> Self {
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
                found.push(offset.0);
                starts.push(header.debug_abbrev_offset().0);
            }
        }
        starts.sort_unstable();
        starts.dedup();
        let ends = starts.iter().skip(1).copied().chain([usize::MAX]);
        let shared = starts
            .iter()
            .zip(ends)
            .map(|(&start, end)| SharedAbbreviations {
                start,
                end,
                read: OnceLock::new(),
            });
        Self {
            offsets: found,
            abbreviations: shared.collect(),
        }
    }

    /// Their offsets in `.debug_info`.
    pub(super) fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// The index of the unit that contains the entry at `offset`.
    pub(super) fn containing(&self, offset: usize) -> Option<usize> {
        self.offsets
            .partition_point(|start| *start <= offset)
            .checked_sub(1)
    }

    /// Reads the header and the root entry of a unit.
    pub(super) fn unit<'d>(
        &self,
        dwarf: &Dwarf<Slice<'d>>,
        index: usize,
    ) -> Option<Unit<Slice<'d>>> {
        let offset = *self.offsets.get(index)?;
        let header = dwarf
            .debug_info
            .header_from_offset(DebugInfoOffset(offset))
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
