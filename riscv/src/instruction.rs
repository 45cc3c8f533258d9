//! An instruction, the registers that it uses, and where execution continues.

use varid_model::Address;

use crate::{CsrAccess, Float, Operation, Register};

/// The width of the integer registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Xlen {
    /// RV32.
    Rv32,
    /// RV64.
    Rv64,
}

/// The size of an instruction's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Length {
    /// 2 bytes: a compressed instruction.
    Two,
    /// 4 bytes.
    Four,
}

impl Length {
    /// Its number of bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Two => 2,
            Self::Four => 4,
        }
    }
}

/// An instruction. The fields that its operation does not use are register `zero` and 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// What it computes.
    pub operation: Operation,
    /// The register of the result.
    pub rd: Register,
    /// The first operand.
    pub rs1: Register,
    /// The second operand.
    pub rs2: Register,
    /// The third operand, of fused floating-point operations only.
    pub rs3: Register,
    /// The constant, sign-extended. [`Operation`] says what it is.
    pub immediate: i32,
    /// The size of its code.
    pub length: Length,
}

/// Where execution continues after an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flow {
    /// At the next instruction.
    Next,
    /// At an address or at the next instruction.
    Branch(Address),
    /// At an address.
    Jump(Address),
    /// In the function at an address, and then at the next instruction.
    Call(Address),
    /// At an address in a register: a switch or a tail call.
    JumpRegister,
    /// In the function whose address is in a register, and then at the next instruction.
    CallRegister,
    /// In the caller: a jump to `ra` or `t0` that does not link.
    Return,
    /// In the environment: `ecall`, `ebreak`, or a return from a trap.
    Environment,
}

impl Instruction {
    /// The registers that it reads, without `zero`.
    #[must_use]
    pub fn reads(&self) -> [Option<Register>; 3] {
        let uses_rs1 = !matches!(self.operation, Operation::CsrImmediate(_));
        let kept = |register: Register, is_read: bool| {
            Some(register).filter(|register| is_read && *register != Register::ZERO)
        };
        [
            kept(self.rs1, uses_rs1),
            kept(self.rs2, true),
            kept(self.rs3, true),
        ]
    }

    /// The register that it writes. None: none, or `zero`.
    #[must_use]
    pub fn writes(&self) -> Option<Register> {
        Some(self.rd).filter(|register| *register != Register::ZERO)
    }

    /// Returns true if it changes a control and status register.
    #[must_use]
    pub fn writes_csr(&self) -> bool {
        match self.operation {
            Operation::Csr(CsrAccess::Write) | Operation::CsrImmediate(CsrAccess::Write) => true,
            Operation::Csr(_) | Operation::CsrImmediate(_) => self.rs1.number() != 0,
            _ => false,
        }
    }

    /// The address of the next instruction, if this one is at `address`.
    #[must_use]
    pub const fn next(&self, address: Address) -> Address {
        address.wrapping_add(self.length.bytes())
    }

    /// Where execution continues, if the instruction is at `address`.
    #[must_use]
    pub fn flow(&self, address: Address) -> Flow {
        let target = || address.wrapping_add_signed(self.immediate.into());
        match self.operation {
            Operation::Branch(_) => Flow::Branch(target()),
            Operation::Jal if self.rd.is_link() => Flow::Call(target()),
            Operation::Jal => Flow::Jump(target()),
            Operation::Jalr if self.rd.is_link() => Flow::CallRegister,
            Operation::Jalr if self.rs1.is_link() && self.rd == Register::ZERO => Flow::Return,
            Operation::Jalr => Flow::JumpRegister,
            Operation::Ecall | Operation::Ebreak | Operation::TrapReturn => Flow::Environment,
            _ => Flow::Next,
        }
    }

    /// Returns true if it reads memory. Atomic operations do both.
    #[must_use]
    pub const fn is_load(&self) -> bool {
        matches!(
            self.operation,
            Operation::Load(..)
                | Operation::LoadFloat(_)
                | Operation::LoadReserved(_)
                | Operation::Atomic(..)
        )
    }

    /// Returns true if it writes memory. Atomic operations do both.
    #[must_use]
    pub const fn is_store(&self) -> bool {
        matches!(
            self.operation,
            Operation::Store(_)
                | Operation::StoreFloat(_)
                | Operation::StoreConditional(_)
                | Operation::Atomic(..)
        )
    }

    /// Returns true if it may change the flow of control without the environment.
    #[must_use]
    pub const fn is_transfer(&self) -> bool {
        matches!(
            self.operation,
            Operation::Branch(_) | Operation::Jal | Operation::Jalr
        )
    }
}

impl Float {
    /// Returns true if the result is an integer register.
    #[must_use]
    pub const fn writes_integer(self) -> bool {
        matches!(
            self,
            Self::Equal
                | Self::Less
                | Self::LessOrEqual
                | Self::Classify
                | Self::ToInteger(_)
                | Self::BitsToInteger
        )
    }

    /// Returns true if the operand is an integer register.
    #[must_use]
    pub const fn reads_integer(self) -> bool {
        matches!(self, Self::FromInteger(_) | Self::BitsFromInteger)
    }
}
