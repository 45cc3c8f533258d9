//! The calls that have not returned, as the contexts follow them.

use crate::{
    context::{ContextId, Contexts},
    counts::CellId,
};

/// A call that has not returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Where it returns to.
    pub return_to: u32,
    /// The stack pointer at the call.
    pub stack_pointer: u32,
    /// The calling context.
    pub context: ContextId,
    /// The cell that ends with the call.
    pub cell: CellId,
}

/// The calls that have not returned, outermost first.
#[derive(Debug, Clone, Default)]
pub struct CallStack {
    calls: Vec<Call>,
}

/// The most calls that are kept. Of deeper recursion the older half is forgotten: its returns are taken for jumps.
const MAX_CALLS: usize = 1 << 20;

impl CallStack {
    /// Adds a call.
    #[inline]
    pub fn push(&mut self, call: Call) {
        if self.calls.len() >= MAX_CALLS {
            self.calls.drain(..MAX_CALLS / 2);
        }
        self.calls.push(call);
    }

    /// Removes the innermost call if it returns to this address.
    #[inline]
    pub fn pop(&mut self, to: u32) -> Option<Call> {
        self.calls.pop_if(|call| call.return_to == to)
    }

    /// Returns where a return leads that is not that of the innermost call: a longjmp, a switch of stacks, a jump through a register that
    /// also holds return addresses. Calls that are left thereby are removed. None: the target belongs to no known call.
    pub fn unwind(
        &mut self,
        to: u32,
        stack_pointer: u32,
        function: Option<u32>,
        current: ContextId,
        contexts: &Contexts,
    ) -> Option<ContextId> {
        // The frames of callers lie above the stack pointer: those below it are no more.
        let is_dead = |call: &mut Call| call.stack_pointer < stack_pointer;
        let mut left = None;
        while let Some(call) = self.calls.pop_if(is_dead) {
            left = Some(call);
        }
        if let Some(call) = self.pop(to) {
            return Some(call.context);
        }
        let function = function?;
        let current = left.map_or(current, |call| call.context);
        if contexts.function(current) == function {
            return Some(current);
        }
        let mut calls = self.calls.iter();
        let found = calls.rposition(|call| contexts.function(call.context) == function)?;
        let call = self.calls.get(found).copied()?;
        self.calls.truncate(found);
        Some(call.context)
    }
}
