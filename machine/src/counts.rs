//! What was executed: how often each block, by calling context.

use std::collections::HashMap;

use crate::{
    block::Block,
    context::{ContextId, Contexts},
};

/// A block, by its row in [`Counts::blocks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(pub u32);

/// A cell, by its row in [`Counts::cells`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(transparent)]
pub struct CellId(pub u32);

/// A block in a calling context, with its counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// The block.
    pub block: BlockId,
    /// The context.
    pub context: ContextId,
    /// How often it was executed.
    pub executions: u64,
    /// How often its branch was taken, if it ends with one.
    pub taken: u64,
    /// The cell that is executed behind it if its branch is not taken, its call returns, or it does not jump.
    pub fall_through: Option<CellId>,
    /// The cell to which its jump last led.
    pub jump: Option<CellId>,
}

/// What was executed.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// The blocks.
    pub blocks: Vec<Block>,
    /// The blocks in contexts.
    pub cells: Vec<Cell>,
    /// The contexts.
    pub contexts: Contexts,
    /// All instructions.
    pub instructions: u64,
    known: HashMap<(ContextId, BlockId), CellId>,
}

impl Counts {
    /// Begins in a function.
    #[must_use]
    pub fn new(function: u32) -> Self {
        Self {
            contexts: Contexts::new(function),
            ..Self::default()
        }
    }

    /// Returns a block.
    #[inline]
    #[must_use]
    pub fn block(&self, id: BlockId) -> Option<&Block> {
        self.blocks.get(id.0 as usize)
    }

    /// Returns a cell.
    #[inline]
    #[must_use]
    pub fn cell(&self, id: CellId) -> Option<&Cell> {
        self.cells.get(id.0 as usize)
    }

    /// Returns a cell, to count in it.
    #[inline]
    pub fn cell_mut(&mut self, id: CellId) -> Option<&mut Cell> {
        self.cells.get_mut(id.0 as usize)
    }

    /// Iterates over the cells with their ids.
    pub fn numbered_cells(&self) -> impl Iterator<Item = (CellId, &Cell)> {
        (0..).map(CellId).zip(&self.cells)
    }

    /// Returns the block of a cell.
    #[inline]
    #[must_use]
    pub fn block_of(&self, id: CellId) -> Option<&Block> {
        self.block(self.cell(id)?.block)
    }

    /// Adds a block.
    pub fn add_block(&mut self, block: Block) -> BlockId {
        let id = BlockId(self.blocks.len() as u32);
        self.blocks.push(block);
        id
    }

    /// Returns the cell of a block in a context, which is added if it is new.
    pub fn cell_of(&mut self, context: ContextId, block: BlockId) -> CellId {
        let cells = &mut self.cells;
        *self.known.entry((context, block)).or_insert_with(|| {
            let id = CellId(cells.len() as u32);
            cells.push(Cell {
                block,
                context,
                executions: 0,
                taken: 0,
                fall_through: None,
                jump: None,
            });
            id
        })
    }

    /// Forgets which cell follows which.
    pub fn unlink(&mut self) {
        for cell in &mut self.cells {
            cell.fall_through = None;
            cell.jump = None;
        }
    }
}
