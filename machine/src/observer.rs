//! What is told to a model of the processor while a program runs.

use varid_processor::{Cycles, Unsupported};
use varid_riscv::Instruction;

use crate::{
    block::Block,
    counts::{BlockId, CellId},
    hart::Hart,
};

/// A model of the processor's time.
pub trait Observer {
    /// The block of a cell begins.
    ///
    /// # Errors
    ///
    /// The processor does not have one of its instructions.
    fn enter(&mut self, cell: CellId, id: BlockId, block: &Block) -> Result<(), Unsupported>;

    /// An instruction of the block is about to be executed. Its operands are in the registers.
    fn instruction(&mut self, index: usize, instruction: &Instruction, hart: &Hart);

    /// The cycles until now.
    fn cycles(&self) -> Cycles;
}

/// No model: a cycle for each instruction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InstructionClock {
    instructions: u64,
}

impl Observer for InstructionClock {
    #[inline]
    fn enter(&mut self, _: CellId, _: BlockId, _: &Block) -> Result<(), Unsupported> {
        Ok(())
    }

    #[inline]
    fn instruction(&mut self, _: usize, _: &Instruction, _: &Hart) {
        self.instructions = self.instructions.wrapping_add(1);
    }

    fn cycles(&self) -> Cycles {
        Cycles(self.instructions)
    }
}
