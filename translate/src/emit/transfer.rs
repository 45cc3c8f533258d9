//! How a function is left for another context: calls, returns, and jumps to other functions.

use std::mem::{offset_of, size_of};

use cranelift_codegen::ir::{InstBuilder, Value, condcodes::IntCC, types};
use varid_machine::Call;
use varid_riscv::Register;

use super::{
    counters::{counter, counter_offset},
    function::{End, FunctionEmitter, constant, own, signature, small},
    values::Destination,
};
use crate::{
    plan::{CounterId, Return},
    state::{ContextRow, Passage, State},
};

const CALL: i32 = small(size_of::<Call>());

impl FunctionEmitter<'_> {
    /// Leaves a block for another context: to a known address, or to a target in a register, whose row of passages is taken. A call notes
    /// where it returns to.
    pub fn pass(
        &mut self,
        end: &End<'_>,
        passage: CounterId,
        row: usize,
        target: Option<Value>,
        call: Option<Return>,
    ) {
        let counters = match target {
            Some(target) => self.row_of_target(passage, target),
            None => self.values.counters,
        };
        let at = counter_offset(passage);
        let field = |emitter: &mut Self, offset: usize| {
            let offset = at.wrapping_add(small(offset));
            let instructions = emitter.builder.ins();
            instructions.load(types::I32, counter(), counters, offset)
        };
        let entry = field(self, offset_of!(Passage, entry));
        let none = self.constant(0);
        let mut is_known = self.builder.ins().icmp(IntCC::NotEqual, entry, none);
        if let Some(target) = target {
            let known = field(self, offset_of!(Passage, target));
            let is_same = self.builder.ins().icmp(IntCC::Equal, known, target);
            is_known = self.builder.ins().band(is_known, is_same);
        }
        self.check(is_known, end.place);
        if let Some(returns) = call {
            let cell = field(self, offset_of!(Passage, cell));
            self.push(end, returns, cell);
        }
        let context = field(self, offset_of!(Passage, context));
        let straddles = match target {
            None => {
                self.count(end, row);
                None
            }
            Some(_) => {
                let straddles = field(self, offset_of!(Passage, straddles));
                self.count_by(end, straddles);
                Some(straddles)
            }
        };
        self.link(end);
        let callee = self.row_of(context);
        if call.is_some() {
            let calls = small(offset_of!(ContextRow, calls));
            let one = self.builder.ins().iconst(types::I64, 1);
            self.add_at(callee, calls, own(), one);
        }
        self.settle_caches(end, row, straddles, Destination::Entry { context, entry });
        self.continue_in(end, callee, entry);
    }

    /// Where the counters would begin if the passages began with the row of a target.
    fn row_of_target(&mut self, passages: CounterId, target: Value) -> Value {
        let spread = self.constant(Passage::SPREAD);
        let spread = self.builder.ins().imul(target, spread);
        let bits = u32::BITS.saturating_sub(Passage::ROW_BITS);
        let row = self.builder.ins().ushr_imm(spread, i64::from(bits));
        let one = self.constant(1);
        let other = self.builder.ins().bxor(row, one);
        let [first, second] = [row, other].map(|row| {
            let row = self.builder.ins().uextend(types::I64, row);
            let size = size_of::<Passage>() as i64;
            let offset = self.builder.ins().imul_imm(row, size);
            self.builder.ins().iadd(self.values.counters, offset)
        });
        let known = counter_offset(passages).wrapping_add(small(offset_of!(Passage, target)));
        let known = self.builder.ins().load(types::I32, counter(), first, known);
        let is_first = self.builder.ins().icmp(IntCC::Equal, known, target);
        self.builder.ins().select(is_first, first, second)
    }

    /// Notes a call.
    fn push(&mut self, end: &End<'_>, returns: Return, cell: Value) {
        let top = self.load_state(types::I64, offset_of!(State, calls_top));
        let limit = self.load_state(types::I64, offset_of!(State, calls_end));
        let has_room = self.builder.ins().icmp(IntCC::NotEqual, top, limit);
        self.check(has_room, end.place);
        let id = small(offset_of!(ContextRow, id));
        let context = self
            .builder
            .ins()
            .load(types::I32, constant(), self.values.row, id);
        let fields = [
            (
                offset_of!(Call, return_to),
                self.constant(end.version.block.end),
            ),
            (offset_of!(Call, stack_pointer), self.get(Register::SP)),
            (offset_of!(Call, context), context),
            (offset_of!(Call, cell), cell),
            (offset_of!(Call, entry), self.constant(returns.entry)),
            (
                offset_of!(Call, straddles),
                self.constant(returns.straddles.into()),
            ),
        ];
        for (offset, value) in fields {
            self.builder.ins().store(own(), value, top, small(offset));
        }
        let top = self.builder.ins().iadd_imm(top, i64::from(CALL));
        self.store_state(top, offset_of!(State, calls_top));
    }

    /// Returns to the caller, if it is the innermost call that returns there.
    pub fn return_to(&mut self, end: &End<'_>) {
        let target = self.jump_target(end);
        let top = self.load_state(types::I64, offset_of!(State, calls_top));
        let bottom = self.load_state(types::I64, offset_of!(State, calls));
        let has_call = self.builder.ins().icmp(IntCC::NotEqual, top, bottom);
        self.check(has_call, end.place);
        let top = self
            .builder
            .ins()
            .iadd_imm(top, i64::from(CALL).wrapping_neg());
        let mut field = |offset| {
            let offset = small(offset);
            self.builder.ins().load(types::I32, own(), top, offset)
        };
        let return_to = field(offset_of!(Call, return_to));
        let entry = field(offset_of!(Call, entry));
        let context = field(offset_of!(Call, context));
        let straddles = field(offset_of!(Call, straddles));
        let is_same = self.builder.ins().icmp(IntCC::Equal, return_to, target);
        let none = self.constant(0);
        let is_known = self.builder.ins().icmp(IntCC::NotEqual, entry, none);
        let is_known = self.builder.ins().band(is_same, is_known);
        self.check(is_known, end.place);
        self.store_state(top, offset_of!(State, calls_top));
        self.count_by(end, straddles);
        self.link(end);
        self.settle_caches(
            end,
            0,
            Some(straddles),
            Destination::Entry { context, entry },
        );
        let row = self.row_of(context);
        self.continue_in(end, row, entry);
    }

    fn row_of(&mut self, context: Value) -> Value {
        let contexts = self.load_state(types::I64, offset_of!(State, contexts));
        let context = self.builder.ins().uextend(types::I64, context);
        let size = size_of::<ContextRow>() as i64;
        let offset = self.builder.ins().imul_imm(context, size);
        self.builder.ins().iadd(contexts, offset)
    }

    /// Continues in the code of a context.
    fn continue_in(&mut self, end: &End<'_>, row: Value, entry: Value) {
        self.leave_loop(end.place.version, None);
        self.note_from(end.place.version);
        self.write_registers(self.written_behind(end));
        let code = small(offset_of!(ContextRow, code));
        let code = self.builder.ins().load(types::I64, own(), row, code);
        let callee = self.builder.import_signature(signature());
        let arguments = [self.values.state, row, entry];
        let arguments = arguments.as_slice();
        self.builder
            .ins()
            .return_call_indirect(callee, code, arguments);
    }
}
