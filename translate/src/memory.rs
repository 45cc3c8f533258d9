//! Which accesses translated code does itself.

use varid_processor::Processor;
use varid_riscv::Width;

/// Whether an access that is not aligned is left to the interpreter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alignment {
    /// It takes longer, so it is.
    Natural,
    /// It is not.
    Any,
}

impl Alignment {
    /// What a processor's costs ask for.
    pub const fn of(processor: &Processor) -> Self {
        match processor.instructions.misaligned {
            0 => Self::Any,
            _ => Self::Natural,
        }
    }
}

/// A range of the guest's addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Range {
    /// Its first address, a multiple of 4.
    pub start: u32,
    /// Its size in bytes.
    pub size: u32,
}

/// The widths of accesses.
pub const WIDTHS: [Width; 3] = [Width::Byte, Width::Half, Width::Word];

/// The power of two that a width is. None: RV32 has no such access.
pub const fn log2(width: Width) -> Option<u8> {
    match width {
        Width::Byte => Some(0),
        Width::Half => Some(1),
        Width::Word => Some(2),
        Width::Double => None,
    }
}

impl Range {
    /// Makes a range of whole words, the largest in this one.
    pub const fn of(start: u32, size: u32) -> Self {
        let skipped = start.wrapping_neg() & 3;
        let size = size.saturating_sub(skipped) & !3;
        Self {
            start: start.wrapping_add(skipped),
            size,
        }
    }

    /// The larger part of it that lies before or behind another range.
    pub fn outside(self, other: &std::ops::Range<u32>) -> Self {
        if other.is_empty() {
            return self;
        }
        // Exclusive, and no larger than 2^32 less 4.
        let end = self.start.saturating_add(self.size);
        let before = other
            .start
            .clamp(self.start, end)
            .saturating_sub(self.start);
        let behind = other.end.clamp(self.start, end);
        let behind = Self::of(behind, end.saturating_sub(behind));
        match behind.size >= before {
            true => behind,
            false => Self::of(self.start, before),
        }
    }

    /// The limit below which an access's distance from the start must be.
    pub const fn limit(self, width: Width) -> u32 {
        match self.size.checked_sub(width.bytes()) {
            Some(last) => last.saturating_add(1),
            None => 0,
        }
    }
}
