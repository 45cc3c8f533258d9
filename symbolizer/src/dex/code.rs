//! Reads code_items: the sizes and the instructions of a method.

use std::ops::Range;

use super::file::DexFile;
use super::read::{bad, u16_at, u32_at, uleb128};
use crate::Result;
use crate::bytecode::MethodCode;

/// Size of a standard code_item before its instructions, in bytes.
const HEADER: usize = 16;
/// Size of a compact code_item before its instructions, in bytes.
const COMPACT_HEADER: usize = 4;
/// Number of methods for each entry of a compact file's debug information table.
const PER_BLOCK: u32 = 16;

/// The code_item of a method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeItem {
    /// Number of registers of the frame, including the arguments.
    pub registers: u16,
    /// Number of registers of the arguments, which are the last ones of the frame.
    pub ins: u16,
    /// Number of registers for the arguments of the methods that it calls.
    pub outs: u16,
    /// Number of try ranges: see [`DexFile::tries`].
    pub tries: u16,
    /// File offset of the debug_info_item.
    pub debug_info: Option<u32>,
    /// File offsets of the instructions.
    pub insns: Range<u32>,
}

impl DexFile<'_> {
    /// The code_item of `method`.
    ///
    /// # Errors
    /// [`crate::Error::Dex`] if it reaches beyond the file.
    pub fn code_item(&self, method: &MethodCode) -> Result<CodeItem> {
        let data = self.bytes();
        let start = method.code.start as usize;
        let (sizes, debug_info) = if self.is_compact() {
            let item = start.saturating_sub(COMPACT_HEADER);
            (
                compact_sizes(data, item)?,
                self.compact_debug_info(method.index)?,
            )
        } else {
            let item = start.saturating_sub(HEADER);
            let word = |at: usize, field| u16_at(data, item.saturating_add(at), field);
            let sizes = Sizes {
                registers: word(0, "registers_size")?,
                ins: word(2, "ins_size")?,
                outs: word(4, "outs_size")?,
                tries: word(6, "tries_size")?,
                units: u32_at(data, item.saturating_add(12), "insns_size")?,
            };
            let debug_info = u32_at(data, item.saturating_add(8), "debug_info_off")?;
            (sizes, debug_info)
        };
        let debug_info = match debug_info {
            0 => None,
            offset => u32::try_from(self.data_at(offset)).ok(),
        };
        Ok(CodeItem {
            registers: sizes.registers,
            ins: sizes.ins,
            outs: sizes.outs,
            tries: sizes.tries,
            debug_info,
            insns: insns(data, start, sizes.units, self.is_compact())?,
        })
    }

    /// Returns the offset of the debug_info_item of method `index` of a compact dex file, or zero if it has none.
    ///
    /// The table has the position of a block for every sixteen methods. A block has two bytes that say which methods have debug
    /// information, then the distance of each one from the one before.
    fn compact_debug_info(&self, index: u32) -> Result<u32> {
        let Some(compact) = self.compact() else {
            return Ok(0);
        };
        let data = self.bytes();
        let entry = (index / PER_BLOCK) as usize;
        let entry = compact.table.saturating_add(entry.saturating_mul(4));
        let block = u32_at(data, entry, "debug_info_offsets_table")? as usize;
        let mut at = compact.blocks.saturating_add(block);
        let present = u16_at(data, at, "debug_info_offsets mask")?.swap_bytes();
        at = at.saturating_add(2);
        let place = index % PER_BLOCK;
        if present & (1u16 << place) == 0 {
            return Ok(0);
        }
        let up_to = present & (u16::MAX >> 15u32.saturating_sub(place));
        let mut offset = compact.base;
        for _ in 0..up_to.count_ones() {
            // Sums wrap, as in ART.
            offset = offset.wrapping_add(uleb128(data, &mut at, "debug_info_offsets delta")?);
        }
        Ok(offset)
    }
}

/// The sizes at the beginning of a code_item.
struct Sizes {
    registers: u16,
    ins: u16,
    outs: u16,
    tries: u16,
    units: u32,
}

/// Reads the packed sizes of the compact code_item at `item`. The item has four bits of each. The remaining bits of larger sizes precede
/// the item, going backwards in the order of the reads below.
fn compact_sizes(data: &[u8], item: usize) -> Result<Sizes> {
    let fields = u16_at(data, item, "code_item fields")?;
    let count = u16_at(data, item.saturating_add(2), "insns_count_and_flags")?;
    let mut at = item;
    let mut before = |flag: u32| -> Result<u16> {
        if count & (1u16 << flag) == 0 {
            return Ok(0);
        }
        at = at
            .checked_sub(2)
            .ok_or_else(|| bad("code_item preheader", item, "lies before the file"))?;
        u16_at(data, at, "code_item preheader")
    };
    // The number of instructions has two such words, under one flag each.
    let low = before(4)?;
    let high = before(4)?;
    let mut size = |flag: u32, shift: u32| -> Result<u16> {
        let rest = before(flag)?;
        (fields >> shift & 0xf)
            .checked_add(rest)
            .ok_or_else(|| bad("code_item preheader", item, "a number of more than 16 bits"))
    };
    let locals = size(0, 12)?;
    let ins = size(1, 8)?;
    let outs = size(2, 4)?;
    let tries = size(3, 0)?;
    let registers = locals
        .checked_add(ins)
        .ok_or_else(|| bad("registers_size", item, "a number of more than 16 bits"))?;
    let units = (u32::from(high) << 16 | u32::from(low)).saturating_add(u32::from(count >> 5));
    Ok(Sizes {
        registers,
        ins,
        outs,
        tries,
        units,
    })
}

/// Returns the range of the instructions of the code_item at `offset`, the code_off of a class_data_item.
pub(super) fn code_range(dex: &DexFile<'_>, offset: u32) -> Result<Option<Range<u32>>> {
    if offset == 0 {
        return Ok(None);
    }
    let data = dex.bytes();
    let item = dex.data_at(offset);
    let compact = dex.is_compact();
    let (header, alignment, units) = match compact {
        true => (COMPACT_HEADER, 2, compact_sizes(data, item)?.units),
        false => {
            let units = u32_at(data, item.saturating_add(12), "insns_size")?;
            (HEADER, 4, units)
        }
    };
    if !item.is_multiple_of(alignment) {
        return Err(bad("code_off", item, "a code_item that is not aligned"));
    }
    insns(data, item.saturating_add(header), units, compact).map(Some)
}

/// Returns the file offsets of `units` code units from `start` on.
fn insns(data: &[u8], start: usize, units: u32, compact: bool) -> Result<Range<u32>> {
    (units as usize)
        .checked_mul(2)
        .and_then(|bytes| start.checked_add(bytes))
        .filter(|&end| end <= data.len())
        .and_then(|end| Some(u32::try_from(start).ok()?..u32::try_from(end).ok()?))
        .ok_or_else(|| {
            let size = if compact { 2 } else { 4 };
            bad(
                "insns_size",
                start.saturating_sub(size),
                "the instructions reach beyond the end of the file",
            )
        })
}
