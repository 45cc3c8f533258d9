//! Which instructions start basic blocks, and how are they reached?

use crate::class::{Code, Index, Instructions, opcode};

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
