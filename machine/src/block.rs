//! Decoded blocks of the guest's code.

use varid_riscv::{Instruction, Length, Operation};

/// The most instructions of a block.
pub const MAX_LENGTH: usize = 256;

/// A block: it is entered at its first instruction only, and left behind its last one.
///
/// Blocks may overlap: a jump into the middle of one makes another that begins there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The address of the first instruction.
    pub start: u32,
    /// The instructions.
    pub instructions: Vec<Instruction>,
    /// The address behind the last instruction.
    pub end: u32,
    /// How it is left.
    pub exit: Exit,
    /// The length of the instruction that follows the block in memory. None: what follows is no instruction.
    pub following: Option<Length>,
}

/// How a block is left, by its last instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// To the next instruction: it has the most instructions that blocks have, was cut, or what follows is not code.
    Next,
    /// A branch.
    Branch {
        /// Where it leads to if it is taken.
        target: u32,
    },
    /// A jump to a known address.
    Jump {
        /// That address.
        target: u32,
        /// Whether it links.
        link: Link,
    },
    /// A jump to an address in a register.
    JumpRegister {
        /// Whether it links, or returns.
        link: Link,
    },
    /// The environment decides: `ecall`, `ebreak`, a control and status register.
    Environment,
}

/// What a jump does to the return address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// It stores one: a call.
    Call,
    /// It jumps to one: a return.
    Return,
    /// Neither.
    None,
}

impl Block {
    /// Returns the address of an instruction.
    #[must_use]
    pub fn address(&self, index: usize) -> u32 {
        let before = self.instructions.iter().take(index);
        let bytes = before.map(|one| one.length.bytes() as u32);
        bytes.fold(self.start, u32::wrapping_add)
    }
}

impl Exit {
    /// Returns how an instruction at `pc` ends a block. None: the block goes on.
    #[must_use]
    pub fn of(instruction: &Instruction, pc: u32) -> Option<Self> {
        let target = || pc.wrapping_add_signed(instruction.immediate);
        Some(match instruction.operation {
            Operation::Branch(_) => Self::Branch { target: target() },
            Operation::Jal => Self::Jump {
                target: target(),
                link: link(instruction),
            },
            Operation::Jalr => Self::JumpRegister {
                link: link(instruction),
            },
            Operation::Ecall
            | Operation::Ebreak
            | Operation::TrapReturn
            | Operation::WaitForInterrupt
            | Operation::FenceI
            | Operation::Csr(_)
            | Operation::CsrImmediate(_) => Self::Environment,
            _ => return None,
        })
    }
}

/// The specification's hints for return-address stacks: `ra` and `t0` hold return addresses.
fn link(instruction: &Instruction) -> Link {
    match (instruction.rd.is_link(), instruction.rs1.is_link()) {
        (true, _) => Link::Call,
        (false, true) => Link::Return,
        (false, false) => Link::None,
    }
}
