//! Which memory has the VM's code, and which tables lead from an address there to its blob?

use super::error::{JvmError, Result};
use super::layout::CodeHeapLayout;
use super::member::Offset;
use super::memory::PagedMemory;
use std::ops::Range;
use varid_model::Address;

/// The most code heaps. A segmented code cache has three.
const MAX_HEAPS: u64 = 8;
/// The largest code cache in bytes: `CODE_CACHE_SIZE_LIMIT`.
const MAX_CODE: u64 = 1 << 31;
/// The possible logarithms of the size of a segment.
const LOG2_SEGMENT: Range<u64> = 4..13;

/// A code heap. Its memory grows while the VM runs, and its tables change: only what is reserved is constant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeHeap {
    /// The address of the `CodeHeap`.
    pub address: Address,
    /// The addresses that are reserved for code.
    pub reserved: Range<Address>,
    /// The end of the code when the heap was read.
    pub committed_end: Address,
    /// The first byte of the segment map, which is that of the first reserved segment.
    pub segment_map: Address,
    /// The size of a segment in bytes, as a power of two.
    pub log2_segment_size: u8,
}

/// Reads the code heaps. `heaps`: where the pointer to their list is, `CodeCache::_heaps`.
pub(super) fn read(
    layout: &CodeHeapLayout,
    heaps: Address,
    memory: &PagedMemory<'_>,
) -> Result<Vec<CodeHeap>> {
    const HEAPS: &str = "CodeCache::_heaps";
    const NONE: JvmError = JvmError::NotStarted("it has no code heap yet");
    let list = memory.pointer(HEAPS, heaps)?;
    if list.get() == 0 {
        return Err(NONE);
    }
    let count = memory.member(HEAPS, list, layout.heaps_length)?;
    let data = memory.pointer_in(HEAPS, list, layout.heaps_data)?;
    if count == 0 || data.get() == 0 {
        return Err(NONE);
    }
    if count > MAX_HEAPS {
        let why = "no VM has as many code heaps";
        return Err(JvmError::implausible(HEAPS, count, why));
    }
    let mut found = Vec::new();
    for index in 0..count {
        let pointer = data.wrapping_add(index.wrapping_mul(8));
        let heap = memory.pointer(HEAPS, pointer)?;
        found.push(CodeHeap::read(layout, heap, memory)?);
    }
    found.sort_by_key(|heap| heap.reserved.start);
    let overlap = |pair: &[CodeHeap]| match pair {
        [one, next] => one.reserved.end > next.reserved.start,
        _ => false,
    };
    if let Some([_, next]) = found.windows(2).find(|pair| overlap(pair)) {
        let why = "a code heap overlaps another one";
        let start = next.reserved.start.get();
        return Err(JvmError::implausible("CodeHeap::_memory", start, why));
    }
    Ok(found)
}

/// A `VirtualSpace`: reserved memory, of which a part is in use.
struct Space {
    reserved: Range<Address>,
    committed: Range<Address>,
}

impl Space {
    fn read(
        layout: &CodeHeapLayout,
        what: &'static str,
        at: Address,
        memory: &PagedMemory<'_>,
    ) -> Result<Self> {
        let pointer = |member| memory.pointer_in(what, at, member);
        let space = Self {
            reserved: pointer(layout.space_low_boundary)?..pointer(layout.space_high_boundary)?,
            committed: pointer(layout.space_low)?..pointer(layout.space_high)?,
        };
        let size = space.reserved.end.offset_from(space.reserved.start);
        if !matches!(size, Some(1..=MAX_CODE)) {
            let end = space.reserved.end.get();
            return Err(JvmError::implausible(
                what,
                end,
                "its memory has no such end",
            ));
        }
        let committed = &space.committed;
        let is_inside =
            committed.start == space.reserved.start && committed.end <= space.reserved.end;
        if !is_inside || committed.end < committed.start {
            let end = committed.end.get();
            let why = "what is in use is outside of what is reserved";
            return Err(JvmError::implausible(what, end, why));
        }
        Ok(space)
    }
}

impl CodeHeap {
    fn read(layout: &CodeHeapLayout, address: Address, memory: &PagedMemory<'_>) -> Result<Self> {
        const CODE: &str = "CodeHeap::_memory";
        const MAP: &str = "CodeHeap::_segmap";
        const LOG2: &str = "CodeHeap::_log2_segment_size";
        let space = |what, offset: Offset| Space::read(layout, what, offset.from(address), memory);
        let log2 = memory.member(LOG2, address, layout.log2_segment_size)?;
        if !LOG2_SEGMENT.contains(&log2) {
            let why = "no segment has this size";
            return Err(JvmError::implausible(LOG2, log2, why));
        }
        let (code, map) = (space(CODE, layout.memory)?, space(MAP, layout.segment_map)?);
        let size = |range: &Range<Address>| range.end.offset_from(range.start).unwrap_or(0);
        let segments = size(&code.committed).checked_shr(log2 as u32).unwrap_or(0);
        if size(&map.committed) < segments {
            let why = "it is smaller than one byte for each segment";
            return Err(JvmError::implausible(MAP, size(&map.committed), why));
        }
        Ok(Self {
            address,
            reserved: code.reserved,
            committed_end: code.committed.end,
            segment_map: map.reserved.start,
            log2_segment_size: log2 as u8,
        })
    }
}
