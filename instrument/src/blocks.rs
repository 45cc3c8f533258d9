//! Which instructions start basic blocks, and how are they reached?

use crate::class::{Code, Index, Instruction, Instructions, opcode};
use crate::{Bci, Block, Executions};

/// How an instruction is reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Reached {
    /// It is the first one of a basic block.
    pub(crate) leads: bool,
    /// A branch leads to it.
    pub(crate) branch: bool,
    /// It is an exception handler.
    pub(crate) handler: bool,
    /// It can follow the instruction before it.
    pub(crate) falls: bool,
}

/// Returns how each instruction is reached. None: an exception table or the end of the code is not valid.
pub(crate) fn reached(code: &Code<'_>, instructions: &Instructions<'_>) -> Option<Vec<Reached>> {
    let mut all = vec![Reached::default(); instructions.list.len()];
    for instruction in &instructions.list {
        for target in instruction.targets() {
            all.get_mut(usize::from(target))?.branch = true;
        }
    }
    for handler in &code.handlers {
        let (start, end) = range(handler.start, handler.end, instructions)?;
        if start >= end {
            return None;
        }
        let target = instructions.at(usize::from(handler.handler))?;
        all.get_mut(usize::from(target))?.handler = true;
    }
    // The first instruction follows the entry sequence.
    let (mut falls, mut leads) = (true, true);
    for (reached, instruction) in all.iter_mut().zip(&instructions.list) {
        reached.falls = falls;
        reached.leads = leads || reached.branch || reached.handler;
        falls = opcode::falls_through(instruction.operation());
        leads = !falls || instruction.targets().next().is_some();
    }
    (!falls).then_some(all)
}

/// Returns the instructions of a range of bcis, the end exclusive.
pub(crate) fn range(
    start: u16,
    end: u16,
    instructions: &Instructions<'_>,
) -> Option<(Index, Index)> {
    let start = instructions.at(usize::from(start))?;
    let end = instructions.at(usize::from(end))?;
    Some((start, end))
}

/// Returns the basic blocks of a method whose code has this length. The executions of blocks with an ordered instruction are events.
pub(crate) fn basic_blocks(
    instructions: &Instructions<'_>,
    reached: &[Reached],
    length: usize,
    is_ordered: impl Fn(&Instruction<'_>) -> bool,
) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut counters = 0_u16;
    let end = Bci(u16::try_from(length).unwrap_or(u16::MAX));
    for (instruction, reached) in instructions.list.iter().zip(reached) {
        if !reached.leads {
            order(blocks.last_mut().filter(|_| is_ordered(instruction)));
            continue;
        }
        let start = Bci(instruction.bci);
        let executions = if blocks.is_empty() && !reached.branch && !reached.handler {
            Executions::Calls
        } else {
            counters = counters.saturating_add(1);
            Executions::Counter(counters.saturating_sub(1))
        };
        if let Some(before) = blocks.last_mut() {
            before.end = start;
        }
        blocks.push(Block {
            start,
            end,
            executions,
        });
        order(blocks.last_mut().filter(|_| is_ordered(instruction)));
    }
    blocks
}

/// Makes the executions of a block events. Those of a method's first block are, if its calls count them.
fn order(block: Option<&mut Block>) {
    if let Some(block) = block
        && let Executions::Counter(counter) = block.executions
    {
        block.executions = Executions::Ordered(counter);
    }
}

/// Returns the number of counters of blocks.
pub(crate) fn counters(blocks: &[Block]) -> u16 {
    let counted = |block: &&Block| block.executions.counter().is_some();
    u16::try_from(blocks.iter().filter(counted).count()).unwrap_or(u16::MAX)
}
