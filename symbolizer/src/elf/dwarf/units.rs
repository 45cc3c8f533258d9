//! Which units does a file's debug information have?

use std::sync::{Arc, OnceLock};

use gimli::{Abbreviations, DebugAbbrev, DebugInfoOffset, Dwarf, Reader, Section, Unit};

use super::Slice;

/// The units of a file.
#[derive(Debug, Default)]
pub(super) struct Units {
    /// Where each of them is, in order.
    offsets: Vec<usize>,
    /// By place: units can share them.
    abbreviations: Vec<Shared>,
}

/// The abbreviations of a unit, or of some.
#[derive(Debug)]
struct Shared {
    start: usize,
    /// Where the next ones begin: those of no honest unit reach further.
    end: usize,
    read: OnceLock<Option<Arc<Abbreviations>>>,
}

impl Units {
    /// Finds the units; what comes after a broken one is not found.
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
        let shared = starts.iter().zip(ends).map(|(&start, end)| Shared {
            start,
            end,
            read: OnceLock::new(),
        });
        Self {
            offsets: found,
            abbreviations: shared.collect(),
        }
    }

    /// Where in `.debug_info` each of them is.
    pub(super) fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// The unit that the entry at `offset` would be in.
    pub(super) fn holding(&self, offset: usize) -> Option<usize> {
        self.offsets
            .partition_point(|start| *start <= offset)
            .checked_sub(1)
    }

    /// Reads a unit's head.
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
