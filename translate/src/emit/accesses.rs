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

/// What an access is compared with the limits by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check {
    /// The instruction before which all of the span is compared.
    pub by: usize,
    /// All that is compared there.
    pub span: Span,
}

/// By instruction. All accesses of a span follow the comparison before the register changes.
pub fn checks(instructions: &[Instruction], alignment: Alignment) -> Vec<Option<Check>> {
    let mut checks: Vec<Option<Check>> = vec![None; instructions.len()];
    for (by, first) in instructions.iter().enumerate() {
        let known = checks.get(by).copied().flatten();
        let Some(access) = Access::of(first).filter(|_| known.is_none()) else {
            continue;
        };
        let mut span = Span {
            lowest: access.offset,
            highest: access.offset,
        };
        let mut covered = Vec::new();
        for (index, instruction) in instructions.iter().enumerate().skip(by) {
            let alike = Access::of(instruction).filter(|one| one.is_alike(access, alignment));
            if let Some(alike) = alike {
                let lowest = span.lowest.min(alike.offset);
                let highest = span.highest.max(alike.offset);
                if highest.wrapping_sub(lowest) <= MAX_SPAN {
                    span = Span { lowest, highest };
                    covered.push(index);
                }
            }
            if instruction.writes() == Some(access.base) {
                break;
            }
        }
        for index in covered {
            if let Some(check) = checks.get_mut(index) {
                *check = Some(Check { by, span });
            }
        }
    }
    checks
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
        let check = |by, lowest, highest| {
            let span = Span { lowest, highest };
            Some(Check { by, span })
        };
        let (loads, store, last) = (check(0, 0, 8), check(1, 12, 12), check(5, 0, 0));
        let natural = [loads, store, loads, check(3, 2, 2), None, last];
        assert_eq!(checks(&code, Alignment::Natural), natural);
        let any = [loads, store, loads, loads, None, last];
        assert_eq!(checks(&code, Alignment::Any), any);
    }

    #[test]
    fn a_load_of_the_register_itself_ends_the_span() {
        let code = instructions(&[0x0001_2103, 0x0041_2283]); // lw sp, 0(sp); lw t0, 4(sp)
        let one = |by, offset| {
            let span = Span {
                lowest: offset,
                highest: offset,
            };
            Some(Check { by, span })
        };
        let expected = [one(0, 0), one(1, 4)];
        assert_eq!(checks(&code, Alignment::Natural), expected);
    }
}
