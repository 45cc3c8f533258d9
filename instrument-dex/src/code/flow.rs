//! Follows the control flow of a method: blocks, held monitors, and where the next call is recorded.

use super::instruction::{Instruction, Operand, opcode};
use super::item::CodeItem;

/// ART's limit of monitors that a method holds.
const MAX_DEPTH: u8 = 32;

/// What is known before an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct State {
    /// Monitors that are held.
    pub(crate) depth: u8,
    /// Whether a call before it may have left a slot other than the one for calls by the VM.
    pub(crate) after_call: bool,
}

/// The control flow of a method.
#[derive(Debug)]
pub(crate) struct Flow {
    /// The state before each instruction. None: it is never executed.
    states: Vec<Option<State>>,
    /// Whether each instruction begins a block.
    leaders: Vec<bool>,
    /// Whether a branch or a handler leads to the first instruction.
    pub(crate) loops_to_start: bool,
    /// The monitors that are held where an exception leads to handlers, by their index. None: no instruction throws to them.
    handler_depths: Vec<Option<u8>>,
}

impl Flow {
    /// Follows the instructions of a method.
    pub(crate) fn new(item: &CodeItem, instructions: &[Instruction]) -> Self {
        let mut flow = Self {
            states: vec![None; instructions.len()],
            leaders: vec![false; instructions.len()],
            loops_to_start: false,
            handler_depths: vec![None; item.handlers.len()],
        };
        flow.find_leaders(item, instructions);
        flow.find_states(item, instructions);
        flow
    }

    /// Returns the state before an instruction. None: it is never executed.
    pub(crate) fn state(&self, index: usize) -> Option<State> {
        self.states.get(index).copied().flatten()
    }

    /// Returns true if an instruction begins a block.
    pub(crate) fn is_leader(&self, index: usize) -> bool {
        self.leaders.get(index).copied().unwrap_or(false)
    }

    /// Returns how many monitors are held where exceptions lead to these handlers. None: nothing throws to them.
    pub(crate) fn handler_depth(&self, handlers: usize) -> Option<u8> {
        self.handler_depths.get(handlers).copied().flatten()
    }

    fn find_leaders(&mut self, item: &CodeItem, instructions: &[Instruction]) {
        let leaders = &mut self.leaders;
        let mut lead = |index: usize| {
            if let Some(leader) = leaders.get_mut(index) {
                *leader = true;
            }
            index == 0
        };
        let mut loops = false;
        lead(0);
        for (index, instruction) in instructions.iter().enumerate() {
            let next = index.saturating_add(1);
            match &instruction.operand {
                Operand::Branch(target) => {
                    loops |= lead(*target);
                    lead(next);
                }
                Operand::Switch { targets, .. } => {
                    for target in targets {
                        loops |= lead(*target);
                    }
                    lead(next);
                }
                Operand::None | Operand::Data(_) => {
                    if !instruction.falls_through() {
                        lead(next);
                    }
                }
            }
        }
        for target in item.handlers.iter().flat_map(|one| one.targets()) {
            if let Some(index) = index_of(instructions, target) {
                loops |= lead(index);
            }
        }
        self.loops_to_start = loops;
    }

    fn find_states(&mut self, item: &CodeItem, instructions: &[Instruction]) {
        let mut open = Vec::new();
        let start = State {
            depth: 0,
            after_call: false,
        };
        self.merge(0, start, &mut open);
        while let Some(index) = open.pop() {
            let (Some(state), Some(instruction)) = (self.state(index), instructions.get(index))
            else {
                continue;
            };
            if instruction.throws()
                && let Some(handlers) = item.handlers_at(instruction.pc)
                && let Some(known) = self.handler_depths.get_mut(handlers)
                && known.is_none_or(|known| known < state.depth)
            {
                *known = Some(state.depth);
                // The handler's first inserted instruction restores the slot.
                let caught = State {
                    depth: state.depth,
                    after_call: false,
                };
                let targets = item.handlers.get(handlers).into_iter();
                for target in targets.flat_map(|one| one.targets()) {
                    if let Some(target) = index_of(instructions, target) {
                        self.merge(target, caught, &mut open);
                    }
                }
            }
            let after = after(instruction, state);
            match &instruction.operand {
                Operand::Branch(target) => self.merge(*target, after, &mut open),
                Operand::Switch { targets, .. } => {
                    for target in targets {
                        self.merge(*target, after, &mut open);
                    }
                }
                Operand::None | Operand::Data(_) => {}
            }
            if instruction.falls_through() {
                self.merge(index.saturating_add(1), after, &mut open);
            }
        }
    }

    /// Adds what is known before an instruction. If that is new, the instruction is open.
    fn merge(&mut self, index: usize, state: State, open: &mut Vec<usize>) {
        if let Some(known) = self.states.get_mut(index) {
            let merged = known.map_or(state, |known| State {
                depth: known.depth.max(state.depth),
                after_call: known.after_call || state.after_call,
            });
            if *known != Some(merged) {
                *known = Some(merged);
                open.push(index);
            }
        }
    }
}

/// Returns what is known after an instruction.
fn after(instruction: &Instruction, before: State) -> State {
    State {
        depth: match instruction.code {
            opcode::MONITOR_ENTER => before.depth.saturating_add(1).min(MAX_DEPTH),
            opcode::MONITOR_EXIT => before.depth.saturating_sub(1),
            _ => before.depth,
        },
        after_call: match instruction.is_invoke() {
            true => true,
            // The slot is restored before it.
            false => before.after_call && !instruction.may_load(),
        },
    }
}

/// Returns the index of the instruction at a code unit.
pub(crate) fn index_of(instructions: &[Instruction], pc: u32) -> Option<usize> {
    instructions.binary_search_by_key(&pc, |one| one.pc).ok()
}
