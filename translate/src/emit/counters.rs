//! How ways out of blocks are counted: in memory, or in a register of the host while a loop runs.

use cranelift_codegen::ir::{AliasRegion, InstBuilder, MemFlags, Value, types};

use super::function::{End, FunctionEmitter};
use crate::{
    flow::WayId,
    plan::{CounterId, VersionId},
};

pub fn counter() -> MemFlags {
    MemFlags::trusted().with_alias_region(Some(AliasRegion::Table))
}

/// There are not as many counters as an offset has bits.
pub const fn counter_offset(counter: CounterId) -> i32 {
    (counter.0 as i32).wrapping_mul(8)
}

impl FunctionEmitter<'_> {
    /// Counts an execution of a block that is left by the way in this row.
    pub fn count(&mut self, end: &End<'_>, row: usize) {
        let way = WayId {
            from: end.place.version,
            row,
        };
        if !self.planned.flow.is_derived(way) {
            let one = self.builder.ins().iconst(types::I64, 1);
            self.add(end.version.counter.plus(row), one);
        }
        self.count_left(end);
    }

    /// Counts an execution of a block whose way is 1 if the target lies in two words, else 0.
    pub fn count_by(&mut self, end: &End<'_>, straddles: Value) {
        let wide = self.builder.ins().uextend(types::I64, straddles);
        let offset = self.builder.ins().ishl_imm(wide, 3);
        let at = self.builder.ins().iadd(self.values.counters, offset);
        let one = self.builder.ins().iconst(types::I64, 1);
        self.add_at(at, counter_offset(end.version.counter), counter(), one);
        self.count_left(end);
    }

    fn count_left(&mut self, end: &End<'_>) {
        if self.target.is_limited {
            let count = end.version.block.instructions.len();
            let count = self.builder.ins().iconst(types::I64, count as i64);
            let left = self.builder.use_var(self.left);
            let left = self.builder.ins().isub(left, count);
            self.builder.def_var(self.left, left);
        }
    }

    /// Adds to a counter.
    pub fn add(&mut self, counter_id: CounterId, more: Value) {
        if let Some(variable) = self.held.by_counter.get(&counter_id.0).copied() {
            let old = self.builder.use_var(variable);
            let new = self.builder.ins().iadd(old, more);
            self.builder.def_var(variable, new);
            return;
        }
        let (at, offset) = (self.values.counters, counter_offset(counter_id));
        self.add_at(at, offset, counter(), more);
    }

    pub fn add_at(&mut self, at: Value, offset: i32, flags: MemFlags, more: Value) {
        let old = self.builder.ins().load(types::I64, flags, at, offset);
        let new = self.builder.ins().iadd(old, more);
        self.builder.ins().store(flags, new, at, offset);
    }

    /// Begins to hold the counters of the loop that a block is in, unless control comes from this loop.
    pub fn enter_loop(&mut self, from: Option<VersionId>, to: VersionId) {
        let entered = self.planned.held.loop_of(to);
        if from.and_then(|from| self.planned.held.loop_of(from)) == entered {
            return;
        }
        for (_, variable) in self.held.of_loop(entered) {
            let zero = self.builder.ins().iconst(types::I64, 0);
            self.builder.def_var(variable, zero);
        }
    }

    /// Writes the counters of the loop that a block is in to memory, unless control goes on in this loop.
    pub fn leave_loop(&mut self, from: VersionId, to: Option<VersionId>) {
        let left = self.planned.held.loop_of(from);
        if to.and_then(|to| self.planned.held.loop_of(to)) == left {
            return;
        }
        for (counter_id, variable) in self.held.of_loop(left) {
            let more = self.builder.use_var(variable);
            let (at, offset) = (self.values.counters, counter_offset(counter_id));
            self.add_at(at, offset, counter(), more);
        }
    }
}
