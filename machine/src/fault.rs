//! Why a guest has stopped.

use varid_model::Address;
use varid_processor::Unsupported;
use varid_riscv::Illegal;

use crate::{memory::MemoryFault, system::UnknownCall};

/// Why execution has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The program has called exit with this status.
    Exit(i32),
    /// As many instructions were executed as the limit allows.
    Limit,
    /// An instruction cannot be executed.
    Fault(Fault),
}

/// An instruction that cannot be executed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{pc}: {cause}")]
pub struct Fault {
    /// The address of the instruction.
    pub pc: Address,
    /// Why.
    pub cause: Cause,
}

/// Why an instruction cannot be executed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// It uses memory that it must not use.
    #[error(transparent)]
    Memory(#[from] MemoryFault),
    /// It is not an instruction.
    #[error(transparent)]
    Illegal(#[from] Illegal),
    /// It needs what this machine does not have.
    #[error("this machine does not have {0}")]
    Unsupported(&'static str),
    /// The processor whose time is estimated does not have it.
    #[error(transparent)]
    Processor(#[from] Unsupported),
    /// It uses a control and status register that the machine does not have.
    #[error("this machine does not have the control and status register {0:#x}")]
    Csr(i32),
    /// It has called the environment for something that it does not have.
    #[error(transparent)]
    Call(#[from] UnknownCall),
    /// It is a breakpoint, with which programs end that have failed.
    #[error("a breakpoint: the program has ended itself")]
    Breakpoint,
    /// The program has more code, in more contexts, than is counted.
    #[error("there is more code, in more calling contexts, than can be counted")]
    TooMuchCode,
    /// The machine has lost the block that comes next: a defect of the machine.
    #[error("the next block is lost, which is a defect of varid")]
    Lost,
}
