//! An instruction at its address, with everything that its time depends on but operands and what was executed before.

use varid_model::Address;
use varid_riscv::{Instruction, Length, Operation, Register};

use crate::{
    class::Class,
    duration::{Duration, Operands, Signedness, Variation},
    error::Unsupported,
    processor::Processor,
};

/// An instruction of a program on a processor. It is made once, and issued each time that the instruction is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Its address.
    pub(crate) address: Address,
    /// Its number of bytes.
    pub(crate) length: u32,
    /// How long it takes.
    pub(crate) duration: Duration,
    /// Whether its operands have a sign, for a division.
    pub(crate) signedness: Signedness,
    /// The registers that it reads.
    pub(crate) reads: [Option<Register>; 3],
    /// How much earlier than others it needs them.
    pub(crate) operands_early: u32,
    /// The register that it writes.
    pub(crate) writes: Option<Register>,
    /// How much later the result can be read.
    pub(crate) result_delay: u32,
    /// How much of what a jump takes directly behind it passes while it is executed.
    pub(crate) jump_overlap: u32,
    /// Whether and how it may leave the sequence.
    pub(crate) transfer: Option<Transfer>,
    /// How it accesses memory.
    pub(crate) access: Option<DataAccess>,
    /// The amount of a shift by a constant.
    pub(crate) amount: Option<u32>,
    /// How it lies in the words of memory.
    pub(crate) alignment: Alignment,
    /// How the next instruction in memory lies. [`Alignment::Whole`] if there is none.
    pub(crate) next_alignment: Alignment,
}

/// How an instruction lies in the words of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alignment {
    /// Within one.
    Whole,
    /// One half in each of two.
    Straddling,
}

/// A transfer of control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// A conditional branch, with the distance to its target in bytes.
    Branch(i32),
    /// `jal`, and `fence.i`, which fetches the next instruction again.
    Jump,
    /// `jalr`.
    JumpRegister,
}

/// An access of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataAccess {
    /// What it does.
    pub(crate) kind: AccessKind,
    /// Added to rs1.
    pub(crate) offset: i32,
    /// The number of bytes.
    pub(crate) bytes: u32,
}

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessKind {
    /// It reads.
    Load,
    /// It writes, or reads and writes.
    Store,
}

impl Alignment {
    const fn of(address: Address, length: Length) -> Self {
        match (address.get() & 2, length) {
            (2, Length::Four) => Self::Straddling,
            _ => Self::Whole,
        }
    }
}

impl DataAccess {
    fn of(instruction: &Instruction) -> Option<Self> {
        let (kind, width) = match instruction.operation {
            Operation::Load(width, _) | Operation::LoadReserved(width) => (AccessKind::Load, width),
            Operation::LoadFloat(precision) => (AccessKind::Load, precision.width()),
            Operation::Store(width)
            | Operation::StoreConditional(width)
            | Operation::Atomic(_, width) => (AccessKind::Store, width),
            Operation::StoreFloat(precision) => (AccessKind::Store, precision.width()),
            _ => return None,
        };
        Some(Self {
            kind,
            offset: instruction.immediate,
            bytes: width.bytes(),
        })
    }

    /// The address, if rs1 has this value.
    pub(crate) const fn address(self, base: u32) -> u32 {
        base.wrapping_add_signed(self.offset)
    }

    /// Returns true if an access at this address crosses a boundary of four bytes.
    pub(crate) const fn is_misaligned(self, address: u32) -> bool {
        (address & 3).saturating_add(self.bytes) > 4
    }
}

impl Slot {
    /// Makes the slot of an instruction. `following` is the length of the next instruction in memory, if there is one.
    ///
    /// # Errors
    ///
    /// The processor has no such instruction.
    pub fn new(
        processor: &Processor,
        instruction: &Instruction,
        address: Address,
        following: Option<Length>,
    ) -> Result<Self, Unsupported> {
        let class = Class::of(instruction);
        let costs = &processor.instructions;
        let duration = costs.duration(class).ok_or(Unsupported {
            class: class.key(),
            address,
        })?;
        let next = instruction.next(address);
        Ok(Self {
            address,
            length: instruction.length.bytes() as u32,
            duration,
            signedness: signedness(instruction.operation),
            reads: instruction.reads(),
            operands_early: costs.operands_early.get(class).unwrap_or_default(),
            writes: instruction.writes(),
            result_delay: costs.result_delays.get(class).unwrap_or_default(),
            jump_overlap: costs.jump_overlap.get(class).unwrap_or_default(),
            transfer: match class {
                Class::Branch => Some(Transfer::Branch(instruction.immediate)),
                Class::Jump | Class::FenceI => Some(Transfer::Jump),
                Class::JumpRegister => Some(Transfer::JumpRegister),
                _ => None,
            },
            access: DataAccess::of(instruction),
            amount: (class == Class::Shift).then_some(instruction.immediate.cast_unsigned()),
            alignment: Alignment::of(address, instruction.length),
            next_alignment: match following {
                Some(length) => Alignment::of(next, length),
                None => Alignment::Whole,
            },
        })
    }

    /// Operands with which it takes the fewest cycles. A divisor is not zero, and an access is aligned.
    #[must_use]
    pub fn least_operands(&self) -> Operands {
        let offset = self.access.map_or(0, |access| access.offset);
        Operands {
            first: offset.wrapping_neg().cast_unsigned(),
            second: match self.duration.varies {
                Variation::MultiplierBits { .. } | Variation::ShiftSteps(_) => 0,
                // Without leading zeros or ones, with and without a sign.
                Variation::None | Variation::ZeroDivisor(_) | Variation::DivisorZeros(_) => 1 << 31,
            },
        }
    }

    /// Returns true if it accesses memory.
    #[must_use]
    pub const fn is_access(&self) -> bool {
        self.access.is_some()
    }

    /// Operands with which it accesses an address, and takes the fewest cycles otherwise.
    #[must_use]
    pub fn accessing(&self, address: u32) -> Operands {
        let least = self.least_operands();
        Operands {
            first: least.first.wrapping_add(address),
            ..least
        }
    }

    /// How long it takes, if nothing holds it up. A shift by a constant does not vary.
    #[must_use]
    pub fn duration(&self) -> Duration {
        match self.amount {
            Some(_) => Duration::fixed(self.cycles(Operands::default())),
            None => self.duration,
        }
    }

    /// The address of the next instruction in memory.
    pub(crate) const fn next(&self) -> Address {
        self.address.wrapping_add(self.length as u64)
    }

    /// The cycles that it occupies the processor with these operands.
    pub(crate) fn cycles(&self, operands: Operands) -> u32 {
        let second = self.amount.unwrap_or(operands.second);
        let operands = Operands { second, ..operands };
        self.duration.of(operands, self.signedness)
    }
}

const fn signedness(operation: Operation) -> Signedness {
    match operation {
        Operation::Divide(divide) | Operation::DivideWord(divide) if divide.is_signed() => {
            Signedness::Signed
        }
        _ => Signedness::Unsigned,
    }
}
