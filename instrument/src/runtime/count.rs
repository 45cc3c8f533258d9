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
        code.to.to.store_long(used);
        code.to.to.load_long(used);
        code.to.to.load_int(bytes);
        code.op(opcode::I2L);
        code.op(opcode::LADD);
        code.to.to.store_long(end);
        code.to.to.load_long(end);
        code.read_volatile(Address::Constant(self.word(header::ARENA_LENGTH)))?;
        code.op(opcode::LCMP);
        code.to.branch(opcode::IFGT, full);
        code.compare_and_set(allocated, used, |code| {
            code.to.to.load_long(end);
            Ok(())
        })?;
        code.to.branch(opcode::IFEQ, again);
        code.to.to.long(self.word(node::HEADER))?;
        code.to.to.load_long(used);
        code.op(opcode::LADD);
        code.op(opcode::LRETURN);
        code.to.place(full);
        code.to.to.long(0)?;
        code.op(opcode::LRETURN);
        Ok(())
    }

    pub(super) fn add(self, code: &mut Code<'_, '_>) -> Result<()> {
        let at = Local(0);
        let value = code.long();
        let again = code.to.label();
        code.to.place(again);
        code.read_volatile(Address::Variable(at))?;
        code.to.to.store_long(value);
        code.compare_and_set(Address::Variable(at), value, |code| code.address(value, 1))?;
        code.to.branch(opcode::IFEQ, again);
        code.op(opcode::RETURN);
        Ok(())
    }

    pub(super) fn count(self, code: &mut Code<'_, '_>) -> Result<()> {
        let (here, offset) = (Local(0), Local(2));
        let at = code.long();
        let idle = code.to.label();
        code.to.to.load_long(here);
        code.to.branch_by_sign(opcode::IFLE, idle);
        code.to.to.load_long(here);
        code.to.to.load_int(offset);
        code.op(opcode::I2L);
        code.op(opcode::LADD);
        code.to.to.store_long(at);
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
        code.to.to.load_long(here);
        code.to.branch_by_sign(opcode::IFLE, idle);
        code.address(here, node::ABORTS.wrapping_sub(node::slot(0)))?;
        code.to.to.store_long(at);
        code.to.place(next);
        code.read(at, 0)?;
        code.to.to.store_long(record);
        code.to.to.load_long(record);
        code.to.branch_by_sign(opcode::IFEQ, new);
        code.read(record, abort::BCI)?;
        code.to.to.load_int(bci);
        code.op(opcode::I2L);
        code.op(opcode::LCMP);
        code.to.branch(opcode::IFEQ, found);
        code.address(record, abort::NEXT)?;
        code.to.to.store_long(at);
        code.to.branch(opcode::GOTO, next);
        code.to.place(found);
        code.increment(record, abort::COUNT)?;
        code.op(opcode::RETURN);
        code.to.place(new);
        code.to
            .to
            .int(i32::try_from(abort::LENGTH).unwrap_or(i32::MAX))?;
        code.call(ALLOCATE, ALLOCATE_TYPE)?;
        code.to.to.store_long(record);
        code.to.to.load_long(record);
        code.to.branch_by_sign(opcode::IFEQ, full);
        code.write(record, abort::BCI, |code| {
            code.to.to.load_int(bci);
            code.op(opcode::I2L);
            Ok(())
        })?;
        code.write(record, abort::COUNT, |code| code.to.to.long(1))?;
        code.write_volatile(at, record)?;
        code.op(opcode::RETURN);
        code.to.place(full);
        code.to.to.long(self.word(header::LOST_ABORTS))?;
        code.call(ADD, ADD_TYPE)?;
        code.to.place(idle);
        code.op(opcode::RETURN);
        Ok(())
    }
}
