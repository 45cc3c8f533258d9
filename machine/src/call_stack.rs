//! The calls that have not returned, as the contexts follow them.

use crate::{
    context::{ContextId, Contexts},
    counts::CellId,
};

/// A call that has not returned.
///
/// Translated code writes calls, too, so the layout is that of C.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Call {
    /// Where it returns to.
    pub return_to: u32,
    /// The stack pointer at the call.
    pub stack_pointer: u32,
    /// The calling context.
    pub context: ContextId,
    /// The cell that ends with the call.
    pub cell: CellId,
    /// A number by which an engine finds its code for `return_to`. 0: it has none.
    pub entry: u32,
    /// 1 if the instruction at `return_to` lies in two words of memory, else 0. An engine that does not know `entry` does not need it.
    pub straddles: u32,
}

/// The calls that have not returned, outermost first.
#[derive(Debug, Clone, Default)]
pub struct CallStack {
    /// The calls, and behind them rows that are free.
    rows: Vec<Call>,
    len: usize,
}

/// The most calls that are kept. Of deeper recursion the older half is forgotten: its returns are taken for jumps.
const MAX_CALLS: usize = 1 << 20;

impl CallStack {
    /// Adds a call.
    #[inline]
    pub fn push(&mut self, call: Call) {
        if self.len >= MAX_CALLS {
            self.rows.drain(..MAX_CALLS / 2);
            self.len = self.len.saturating_sub(MAX_CALLS / 2);
        }
        if self.len >= self.rows.len() {
            let more = self.len.saturating_mul(2).clamp(64, MAX_CALLS);
            self.rows.resize(more, Call::default());
        }
        if let Some(row) = self.rows.get_mut(self.len) {
            *row = call;
            self.len = self.len.saturating_add(1);
        }
    }

    /// Removes the innermost call if it returns to this address.
    #[inline]
    pub fn pop(&mut self, to: u32) -> Option<Call> {
        self.pop_if(|call| call.return_to == to)
    }

    #[inline]
    fn pop_if(&mut self, matches: impl Fn(&Call) -> bool) -> Option<Call> {
        let last = *self.calls().last()?;
        if !matches(&last) {
            return None;
        }
        self.len = self.len.saturating_sub(1);
        Some(last)
    }

    /// The calls, outermost first.
    #[must_use]
    pub fn calls(&self) -> &[Call] {
        self.rows.get(..self.len).unwrap_or_default()
    }

    /// The calls, outermost first.
    pub fn calls_mut(&mut self) -> &mut [Call] {
        self.rows.get_mut(..self.len).unwrap_or_default()
    }

    /// The calls, and behind them rows that are free.
    pub fn rows_mut(&mut self) -> &mut [Call] {
        &mut self.rows
    }

    /// Says how many of the rows are calls.
    pub fn set_len(&mut self, len: usize) {
        self.len = len.min(self.rows.len());
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
        let is_dead = |call: &Call| call.stack_pointer < stack_pointer;
        let mut left = None;
        while let Some(call) = self.pop_if(is_dead) {
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
        let mut calls = self.calls().iter();
        let found = calls.rposition(|call| contexts.function(call.context) == function)?;
        let call = self.calls().get(found).copied()?;
        self.len = found;
        Some(call.context)
    }
}
