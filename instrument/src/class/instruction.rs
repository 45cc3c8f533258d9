//! What are the instructions of a method?

use super::{Reader, opcode};

/// The index of an instruction in its method. The number of instructions stands for the end of the code.
pub(crate) type Index = u16;

/// An instruction.
#[derive(Debug, Clone)]
pub(crate) struct Instruction<'c> {
    /// Its place.
    pub(crate) bci: u16,
    /// Its opcode; of a wide instruction that of `wide`.
    pub(crate) opcode: u8,
    /// Its bytes.
    pub(crate) bytes: &'c [u8],
    /// Where it leads.
    pub(crate) kind: Kind,
}

/// Where an instruction leads, beside the next one.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    /// Nowhere else.
    Straight,
    /// To one target: an `if`, `goto` or `jsr`.
    Branch(Index),
    /// To one of many: the default target, the lowest value, and the targets of the values from there on.
    Table(Index, i32, Vec<Index>),
    /// To one of many: the default target, and values with their targets.
    Lookup(Index, Vec<(i32, Index)>),
}

impl Instruction<'_> {
    /// Returns the operand in the two bytes after the opcode: a constant's index, of all instructions that have one but `ldc`.
    pub(crate) fn operand(&self) -> u16 {
        match self.bytes {
            [_, high, low, ..] => u16::from_be_bytes([*high, *low]),
            _ => 0,
        }
    }

    /// Returns the opcode, of a wide instruction that which is widened.
    pub(crate) fn operation(&self) -> u8 {
        match self.bytes {
            [opcode::WIDE, wide, ..] => *wide,
            _ => self.opcode,
        }
    }

    /// Returns the local variable that an instruction with an index as its operand is about.
    fn local(&self) -> u16 {
        match self.bytes {
            [opcode::WIDE, _, high, low, ..] => u16::from_be_bytes([*high, *low]),
            [_, index, ..] => u16::from(*index),
            _ => 0,
        }
    }

    /// Returns the local variable of which the instruction loads a reference.
    pub(crate) fn loaded_reference(&self) -> Option<u16> {
        match self.operation() {
            opcode::ALOAD => Some(self.local()),
            short @ opcode::ALOAD_0..opcode::IALOAD => {
                Some(u16::from(short.saturating_sub(opcode::ALOAD_0)))
            }
            _ => None,
        }
    }

    /// Returns the local variable to which the instruction stores the top of the stack, and its number of words.
    pub(crate) fn stored(&self) -> Option<(u16, u16)> {
        // The types in the order of opcodes: int, long, float, double, reference.
        let words = |kind: u8| if matches!(kind, 1 | 3) { 2 } else { 1 };
        match self.operation() {
            long @ opcode::ISTORE..=opcode::ASTORE => {
                Some((self.local(), words(long.saturating_sub(opcode::ISTORE))))
            }
            short @ opcode::ISTORE_0..opcode::IASTORE => {
                let number = short.saturating_sub(opcode::ISTORE_0);
                Some((u16::from(number % 4), words(number / 4)))
            }
            _ => None,
        }
    }

    /// Returns all targets other than the next instruction.
    pub(crate) fn targets(&self) -> impl Iterator<Item = Index> + '_ {
        let (first, table, lookup): (Option<Index>, &[Index], &[(i32, Index)]) = match &self.kind {
            Kind::Straight => (None, &[], &[]),
            Kind::Branch(target) => (Some(*target), &[], &[]),
            Kind::Table(default, _, targets) => (Some(*default), targets, &[]),
            Kind::Lookup(default, pairs) => (Some(*default), &[], pairs),
        };
        let pairs = lookup.iter().map(|(_, target)| *target);
        first.into_iter().chain(table.iter().copied()).chain(pairs)
    }
}

/// The instructions of a method.
#[derive(Debug)]
pub(crate) struct Instructions<'c> {
    /// They, in the order of the code.
    pub(crate) list: Vec<Instruction<'c>>,
    /// For each bci, and for the end of the code, the instruction that starts there, or [`NONE`].
    starts: Vec<Index>,
}

/// No instruction starts here. A method of 65,535 bytes has at most as many instructions, so that its end would be this number; such a method is
/// not decoded, since nothing can be added to it.
const NONE: Index = Index::MAX;

impl<'c> Instructions<'c> {
    /// Decodes a method's code. None: it is not valid.
    pub(crate) fn decode(code: &'c [u8]) -> Option<Self> {
        let mut starts = vec![NONE; code.len().checked_add(1)?];
        let mut undecoded = Vec::new();
        let mut bci = 0_usize;
        while let Some(rest) = code.get(bci..).filter(|rest| !rest.is_empty()) {
            let bytes = rest.get(..length(rest, bci)?)?;
            *starts.get_mut(bci)? = Index::try_from(undecoded.len())
                .ok()
                .filter(|index| *index != NONE)?;
            undecoded.push((bci, bytes));
            bci = bci.checked_add(bytes.len())?;
        }
        *starts.get_mut(bci)? = Index::try_from(undecoded.len())
            .ok()
            .filter(|index| *index != NONE)?;
        let mut found = Self {
            list: Vec::with_capacity(undecoded.len()),
            starts,
        };
        for (bci, bytes) in undecoded {
            let instruction = Instruction {
                bci: u16::try_from(bci).ok()?,
                opcode: *bytes.first()?,
                bytes,
                kind: found.kind(bci, bytes)?,
            };
            found.list.push(instruction);
        }
        Some(found)
    }

    /// Returns the instruction at a bci; the number of instructions for the end of the code.
    pub(crate) fn at(&self, bci: usize) -> Option<Index> {
        self.starts.get(bci).copied().filter(|index| *index != NONE)
    }

    /// Returns the number of instructions.
    pub(crate) fn end(&self) -> Index {
        self.starts.last().copied().unwrap_or(0)
    }

    fn target(&self, bci: usize, offset: i32) -> Option<Index> {
        let target = i64::try_from(bci).ok()?.checked_add(i64::from(offset))?;
        let target = self.at(usize::try_from(target).ok()?)?;
        (target != self.end()).then_some(target)
    }

    fn kind(&self, bci: usize, bytes: &[u8]) -> Option<Kind> {
        let mut reader = Reader::new(bytes, 0);
        let opcode = reader.u8("").ok()?;
        Some(match opcode {
            opcode::IFEQ..=opcode::JSR | opcode::IFNULL | opcode::IFNONNULL => {
                Kind::Branch(self.target(bci, i32::from(reader.i16("").ok()?))?)
            }
            opcode::GOTO_W | opcode::JSR_W => Kind::Branch(self.target(bci, reader.i32("").ok()?)?),
            opcode::TABLESWITCH => {
                reader.bytes(padding(bci), "").ok()?;
                let default = self.target(bci, reader.i32("").ok()?)?;
                let low = reader.i32("").ok()?;
                reader.i32("").ok()?;
                let mut targets = Vec::new();
                while !reader.is_empty() {
                    targets.push(self.target(bci, reader.i32("").ok()?)?);
                }
                Kind::Table(default, low, targets)
            }
            opcode::LOOKUPSWITCH => {
                reader.bytes(padding(bci), "").ok()?;
                let default = self.target(bci, reader.i32("").ok()?)?;
                reader.i32("").ok()?;
                let mut pairs = Vec::new();
                while !reader.is_empty() {
                    let value = reader.i32("").ok()?;
                    pairs.push((value, self.target(bci, reader.i32("").ok()?)?));
                }
                Kind::Lookup(default, pairs)
            }
            _ => Kind::Straight,
        })
    }
}

/// Returns the bytes between a switch's opcode at `bci` and its first operand, which is aligned to 4.
pub(crate) const fn padding(bci: usize) -> usize {
    3_usize.wrapping_sub(bci) % 4
}

/// Returns the length of the instruction that `rest` starts with. None: it has none.
fn length(rest: &[u8], bci: usize) -> Option<usize> {
    let opcode = *rest.first()?;
    if let Some(length) = opcode::length(opcode) {
        return Some(usize::from(length));
    }
    match opcode {
        opcode::WIDE => match *rest.get(1)? {
            opcode::IINC => Some(6),
            opcode::ILOAD..=opcode::ALOAD | opcode::ISTORE..=opcode::ASTORE | opcode::RET => {
                Some(4)
            }
            _ => None,
        },
        opcode::TABLESWITCH => {
            let fixed = padding(bci).checked_add(1)?;
            let mut reader = Reader::new(rest.get(fixed..)?, 0);
            reader.i32("").ok()?;
            let (low, high) = (reader.i32("").ok()?, reader.i32("").ok()?);
            let count = i64::from(high)
                .checked_sub(i64::from(low))?
                .checked_add(1)
                .filter(|count| *count > 0)?;
            let targets = usize::try_from(count).ok()?.checked_mul(4)?;
            fixed.checked_add(12)?.checked_add(targets)
        }
        opcode::LOOKUPSWITCH => {
            let fixed = padding(bci).checked_add(1)?;
            let mut reader = Reader::new(rest.get(fixed..)?, 0);
            reader.i32("").ok()?;
            let pairs = usize::try_from(reader.i32("").ok()?).ok()?.checked_mul(8)?;
            fixed.checked_add(8)?.checked_add(pairs)
        }
        _ => None,
    }
}
