//! Which accesses of a block are compared with the limits of memory: one comparison serves all that use the same register.

use varid_riscv::{Instruction, Operation, Register, Width};

use crate::memory::Alignment;

/// The most bytes from the first to the last access of a comparison.
const MAX_SPAN: i32 = 1 << 10;

/// Accesses that lie between two offsets from the value of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The lowest offset.
    pub lowest: i32,
    /// The highest offset.
    pub highest: i32,
}

/// What an instruction does with memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Access {
    base: Register,
    offset: i32,
    width: Width,
    is_store: bool,
}

impl Access {
    fn of(instruction: &Instruction) -> Option<Self> {
        let (width, is_store) = match instruction.operation {
            Operation::Load(width, _) => (width, false),
            Operation::Store(width) => (width, true),
            _ => return None,
        };
        Some(Self {
            base: instruction.rs1,
            offset: instruction.immediate,
            width,
            is_store,
        })
    }

    /// Returns true if a comparison for `other` may serve for this one, too.
    fn is_alike(self, other: Self, alignment: Alignment) -> bool {
        let distance = self.offset.wrapping_sub(other.offset);
        let is_aligned = match alignment {
            Alignment::Natural => distance & other.width.bytes().cast_signed().wrapping_sub(1) == 0,
            Alignment::Any => true,
        };
        self.base == other.base
            && self.width == other.width
            && self.is_store == other.is_store
            && is_aligned
    }
}

/// For each instruction the span that is compared before it, if there is one. All accesses of the span follow, before the register changes.
pub fn spans(instructions: &[Instruction], alignment: Alignment) -> Vec<Option<Span>> {
    let mut spans: Vec<Option<Span>> = vec![None; instructions.len()];
    let mut is_covered = vec![false; instructions.len()];
    for (index, first) in instructions.iter().enumerate() {
        let known = is_covered.get(index).copied().unwrap_or_default();
        let Some(access) = Access::of(first).filter(|_| !known) else {
            continue;
        };
        let mut span = Span {
            lowest: access.offset,
            highest: access.offset,
        };
        let behind = instructions.iter().zip(&mut is_covered).skip(index);
        for (instruction, is_covered) in behind {
            let alike = Access::of(instruction).filter(|one| one.is_alike(access, alignment));
            if let Some(alike) = alike {
                let lowest = span.lowest.min(alike.offset);
                let highest = span.highest.max(alike.offset);
                if highest.wrapping_sub(lowest) <= MAX_SPAN {
                    span = Span { lowest, highest };
                    *is_covered = true;
                }
            }
            if instruction.writes() == Some(access.base) {
                break;
            }
        }
        if let Some(known) = spans.get_mut(index) {
            *known = Some(span);
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use varid_riscv::{Xlen, decode};

    use super::*;

    fn instructions(words: &[u32]) -> Vec<Instruction> {
        let words = words.iter();
        words
            .map(|word| decode(&word.to_le_bytes(), Xlen::Rv32).unwrap())
            .collect()
    }

    #[test]
    fn accesses_by_a_register_are_compared_once_until_it_changes() {
        let code = instructions(&[
            0x0081_2283, // lw t0, 8(sp)
            0x0051_2623, // sw t0, 12(sp)
            0x0001_2303, // lw t1, 0(sp)
            0x0021_2383, // lw t2, 2(sp)
            0x0101_0113, // addi sp, sp, 16
            0x0001_2303, // lw t1, 0(sp)
        ]);
        let span = |lowest, highest| Some(Span { lowest, highest });
        let natural = [span(0, 8), span(12, 12), None, span(2, 2), None, span(0, 0)];
        assert_eq!(spans(&code, Alignment::Natural), natural);
        let any = [span(0, 8), span(12, 12), None, None, None, span(0, 0)];
        assert_eq!(spans(&code, Alignment::Any), any);
    }

    #[test]
    fn a_load_of_the_register_itself_ends_the_span() {
        let code = instructions(&[0x0001_2103, 0x0041_2283]); // lw sp, 0(sp); lw t0, 4(sp)
        let one = |offset| {
            Some(Span {
                lowest: offset,
                highest: offset,
            })
        };
        assert_eq!(spans(&code, Alignment::Natural), [one(0), one(4)]);
    }
}
