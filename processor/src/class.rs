//! The classes of instructions that a processor distinguishes.

use varid_riscv::{Alu, Divide, Instruction, Multiply, Operation};

/// A class of instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Operations with a constant, `lui` and `auipc`.
    Alu,
    /// Operations of two registers.
    AluRegister,
    /// Shifts by a constant.
    Shift,
    /// Shifts by a register.
    ShiftRegister,
    /// `mul`.
    Multiply,
    /// `mulh`, `mulhsu`, `mulhu`.
    MultiplyHigh,
    /// `div`, `divu`.
    Divide,
    /// `rem`, `remu`.
    Remainder,
    /// Loads.
    Load,
    /// Stores.
    Store,
    /// Conditional branches.
    Branch,
    /// `jal`.
    Jump,
    /// `jalr`.
    JumpRegister,
    /// Accesses of control and status registers.
    Csr,
    /// `fence`.
    Fence,
    /// `fence.i`.
    FenceI,
    /// `ecall`, `ebreak`, returns from traps, `wfi`.
    System,
    /// Extension A.
    Atomic,
    /// Extensions F and D, without loads and stores.
    Float,
}

impl Class {
    /// All classes, in the order of the variants.
    pub const ALL: [Self; 19] = [
        Self::Alu,
        Self::AluRegister,
        Self::Shift,
        Self::ShiftRegister,
        Self::Multiply,
        Self::MultiplyHigh,
        Self::Divide,
        Self::Remainder,
        Self::Load,
        Self::Store,
        Self::Branch,
        Self::Jump,
        Self::JumpRegister,
        Self::Csr,
        Self::Fence,
        Self::FenceI,
        Self::System,
        Self::Atomic,
        Self::Float,
    ];

    /// Returns the class of an instruction.
    #[must_use]
    pub const fn of(instruction: &Instruction) -> Self {
        match instruction.operation {
            Operation::Lui | Operation::Auipc => Self::Alu,
            Operation::AluImmediate(alu) | Operation::AluImmediateWord(alu) => {
                match is_shift(alu) {
                    true => Self::Shift,
                    false => Self::Alu,
                }
            }
            Operation::Alu(alu) | Operation::AluWord(alu) => match is_shift(alu) {
                true => Self::ShiftRegister,
                false => Self::AluRegister,
            },
            Operation::Multiply(Multiply::Low) | Operation::MultiplyWord => Self::Multiply,
            Operation::Multiply(_) => Self::MultiplyHigh,
            Operation::Divide(divide) | Operation::DivideWord(divide) => match divide {
                Divide::Quotient | Divide::QuotientUnsigned => Self::Divide,
                Divide::Remainder | Divide::RemainderUnsigned => Self::Remainder,
            },
            Operation::Load(..) | Operation::LoadFloat(_) => Self::Load,
            Operation::Store(_) | Operation::StoreFloat(_) => Self::Store,
            Operation::Branch(_) => Self::Branch,
            Operation::Jal => Self::Jump,
            Operation::Jalr => Self::JumpRegister,
            Operation::Csr(_) | Operation::CsrImmediate(_) => Self::Csr,
            Operation::Fence => Self::Fence,
            Operation::FenceI => Self::FenceI,
            Operation::Ecall
            | Operation::Ebreak
            | Operation::TrapReturn
            | Operation::WaitForInterrupt => Self::System,
            Operation::LoadReserved(_) | Operation::StoreConditional(_) | Operation::Atomic(..) => {
                Self::Atomic
            }
            Operation::Float(..) => Self::Float,
        }
    }

    /// Its key in a description's tables.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Alu => "alu",
            Self::AluRegister => "alu_register",
            Self::Shift => "shift",
            Self::ShiftRegister => "shift_register",
            Self::Multiply => "mul",
            Self::MultiplyHigh => "mulh",
            Self::Divide => "div",
            Self::Remainder => "rem",
            Self::Load => "load",
            Self::Store => "store",
            Self::Branch => "branch",
            Self::Jump => "jump",
            Self::JumpRegister => "jump_register",
            Self::Csr => "csr",
            Self::Fence => "fence",
            Self::FenceI => "fence_i",
            Self::System => "system",
            Self::Atomic => "atomic",
            Self::Float => "float",
        }
    }

    /// The class whose value stands for this one's if a description has none. None: the processor has no such instruction.
    #[must_use]
    pub const fn like(self) -> Option<Self> {
        match self {
            Self::AluRegister | Self::Shift | Self::System => Some(Self::Alu),
            Self::ShiftRegister => Some(Self::AluRegister),
            Self::MultiplyHigh => Some(Self::Multiply),
            Self::Remainder => Some(Self::Divide),
            Self::JumpRegister => Some(Self::Jump),
            Self::Csr | Self::Fence => Some(Self::Alu),
            Self::FenceI => Some(Self::Jump),
            _ => None,
        }
    }

    /// Its number in [`Class::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

const fn is_shift(alu: Alu) -> bool {
    matches!(alu, Alu::Sll | Alu::Srl | Alu::Sra)
}

/// A value for each class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByClass<T>([T; Class::ALL.len()]);

impl<T: Copy> ByClass<T> {
    /// Makes the values by a function.
    pub fn of(value: impl FnMut(Class) -> T) -> Self {
        Self(Class::ALL.map(value))
    }

    /// The value of a class.
    #[must_use]
    pub fn get(&self, class: Class) -> Option<T> {
        self.0.get(class.index()).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_found_by_its_number() {
        for (index, class) in Class::ALL.into_iter().enumerate() {
            assert_eq!(class.index(), index, "{class:?}");
        }
        let keys = ByClass::of(Class::key);
        assert_eq!(keys.get(Class::Float), Some("float"));
    }
}
