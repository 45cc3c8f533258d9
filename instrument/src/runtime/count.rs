//! How does the runtime class allocate memory, and how does it count blocks and aborts?

use super::memory::{Address, Code};
use super::tree::{ADD, ADD_TYPE, ALLOCATE, ALLOCATE_TYPE, Tree};
use crate::assembler::Local;
use crate::class::opcode;
use crate::error::Result;
use crate::node::{self, abort, header};

impl Tree {
    pub(super) fn allocate(self, code: &mut Code<'_, '_>) -> Result<()> {
        let bytes = Local(0);
        let (used, end) = (code.long(), code.long());
        let (again, full) = (code.to.label(), code.to.label());
        let allocated = Address::Constant(self.word(header::ALLOCATED));
        code.to.place(again);
        code.read_volatile(allocated)?;
        code.keep_long(used);
        code.load_int_as_long(bytes);
        code.op(opcode::LADD);
        code.keep_long(end);
        code.read_volatile(Address::Constant(self.word(header::ARENA_LENGTH)))?;
        code.op(opcode::LCMP);
        code.to.branch(opcode::IFGT, full);
        code.compare_and_set(allocated, used, |code| {
            code.load_long(end);
            Ok(())
        })?;
        code.to.branch(opcode::IFEQ, again);
        code.constant(self.word(node::HEADER))?;
        code.load_long(used);
        code.op(opcode::LADD);
        code.op(opcode::LRETURN);
        code.to.place(full);
        code.constant(0)?;
        code.op(opcode::LRETURN);
        Ok(())
    }

    pub(super) fn add(self, code: &mut Code<'_, '_>) -> Result<()> {
        let at = Local(0);
        let value = code.long();
        let again = code.to.label();
        code.to.place(again);
        code.read_volatile(Address::Variable(at))?;
        code.store_long(value);
        code.compare_and_set(Address::Variable(at), value, |code| code.address(value, 1))?;
        code.to.branch(opcode::IFEQ, again);
        code.op(opcode::RETURN);
        Ok(())
    }

    pub(super) fn count(self, code: &mut Code<'_, '_>) -> Result<()> {
        self.increment_counter(code, Local(0), Local(2), |_, _| Ok(()))
    }

    /// Increments the counter at a distance from a thread's place, if the thread is counted, after code for which its address is in a variable.
    /// Then it returns.
    pub(super) fn increment_counter(
        self,
        code: &mut Code<'_, '_>,
        here: Local,
        offset: Local,
        before: impl FnOnce(&mut Code<'_, '_>, Local) -> Result<()>,
    ) -> Result<()> {
        let at = code.long();
        let idle = code.to.label();
        code.load_long(here);
        code.to.branch_by_sign(opcode::IFLE, idle);
        self.branch_if_off(code, idle)?;
        code.load_long(here);
        code.load_int_as_long(offset);
        code.op(opcode::LADD);
        code.store_long(at);
        before(code, at)?;
        code.increment(at, 0)?;
        code.to.place(idle);
        code.op(opcode::RETURN);
        Ok(())
    }

    pub(super) fn abort(self, code: &mut Code<'_, '_>) -> Result<()> {
        let (here, bci) = (Local(0), Local(2));
        let (at, record) = (code.long(), code.long());
        let (next, new, found, full, idle) = (
            code.to.label(),
            code.to.label(),
            code.to.label(),
            code.to.label(),
            code.to.label(),
        );
        code.load_long(here);
        code.to.branch_by_sign(opcode::IFLE, idle);
        self.branch_if_off(code, idle)?;
        code.address(here, node::ABORTS.wrapping_sub(node::slot(0)))?;
        code.store_long(at);
        code.to.place(next);
        code.read(at, 0)?;
        code.keep_long(record);
        code.to.branch_by_sign(opcode::IFEQ, new);
        code.branch_if_word_is(record, abort::BCI, bci, found)?;
        code.address(record, abort::NEXT)?;
        code.store_long(at);
        code.to.branch(opcode::GOTO, next);
        code.to.place(found);
        code.increment(record, abort::COUNT)?;
        code.op(opcode::RETURN);
        code.to.place(new);
        code.int(i32::try_from(abort::LENGTH).unwrap_or(i32::MAX))?;
        code.call(ALLOCATE, ALLOCATE_TYPE)?;
        code.keep_long(record);
        code.to.branch_by_sign(opcode::IFEQ, full);
        code.write(record, abort::BCI, |code| {
            code.load_int_as_long(bci);
            Ok(())
        })?;
        code.write(record, abort::COUNT, |code| code.constant(1))?;
        code.write_volatile(at, record)?;
        code.op(opcode::RETURN);
        code.to.place(full);
        code.constant(self.word(header::LOST_ABORTS))?;
        code.call(ADD, ADD_TYPE)?;
        code.to.place(idle);
        code.op(opcode::RETURN);
        Ok(())
    }
}
