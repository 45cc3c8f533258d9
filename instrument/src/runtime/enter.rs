//! How does the runtime class find the node of a call?

use super::memory::{Address, Code};
use super::order::{APPEND, APPEND_TYPE};
use super::tree::{
    ADD, ADD_TYPE, ALLOCATE, ALLOCATE_TYPE, COMMON, ELSEWHERE, FIND, FIND_TYPE, RECORDING,
    ROOT_TYPE, Tree,
};
use super::{CELL_TYPE, CLASS, ENTER, ENTER_TYPE, FOLDED_SLOT, LEAF_SLOT, ROOT, SLOT};
use crate::assembler::Local;
use crate::class::opcode;
use crate::error::Result;
use crate::node::{self, header};

/// A slot below this is one of [`FOLDED_SLOT`] or [`LEAF_SLOT`].
const NOTHING_BELOW: i64 = -(1 << 39);
/// A slot below this is one of [`LEAF_SLOT`].
const LEAF_BELOW: i64 = FOLDED_SLOT.midpoint(LEAF_SLOT);
/// Slot 0 of a root and its words.
const ROOT_BYTES: i32 = 8 + 8 * node::WORDS as i32;

impl Tree {
    pub(super) fn enter(self, code: &mut Code<'_, '_>) -> Result<()> {
        let (cell, slot, method) = (Local(0), Local(1), Local(3));
        let node = code.long();
        let (elsewhere, find, hit) = (code.to.label(), code.to.label(), code.to.label());
        code.load_long(slot);
        code.to.branch_by_sign(opcode::IFLE, elsewhere);
        code.read(slot, 0)?;
        code.keep_long(node);
        code.to.branch_by_sign(opcode::IFEQ, find);
        code.branch_if_word_is(node, node::METHOD, method, hit)?;
        code.to.place(find);
        code.load_long(slot);
        code.load_shape();
        code.call(FIND, FIND_TYPE)?;
        code.keep_long(node);
        code.to.branch_by_sign(opcode::IFGT, hit);
        self.fold(code)?;
        code.to.place(hit);
        let counted = code.to.label();
        self.branch_if_off(code, counted)?;
        if self.has_order() {
            code.load_reference(cell);
            code.address(node, node::CALLS)?;
            code.call(APPEND, APPEND_TYPE)?;
        }
        code.increment(node, node::CALLS)?;
        code.to.place(counted);
        code.load_reference(cell);
        code.address(node, node::slot(0))?;
        code.field(opcode::PUTFIELD, CLASS, SLOT, "J")?;
        code.address(node, node::slot(0))?;
        code.op(opcode::LRETURN);
        code.to.place(elsewhere);
        code.load_reference(cell);
        code.load_long(slot);
        code.load_shape();
        code.call(ELSEWHERE, ENTER_TYPE)?;
        code.op(opcode::LRETURN);
        Ok(())
    }

    /// Counts a call for which there is no room, and returns from `enter` or `elsewhere`.
    fn fold(self, code: &mut Code<'_, '_>) -> Result<()> {
        let counted = code.to.label();
        self.branch_if_off(code, counted)?;
        code.constant(self.word(header::FOLDED))?;
        code.call(ADD, ADD_TYPE)?;
        code.to.place(counted);
        code.load_reference(Local(0));
        code.constant(FOLDED_SLOT)?;
        code.field(opcode::PUTFIELD, CLASS, SLOT, "J")?;
        code.constant(FOLDED_SLOT)?;
        code.op(opcode::LRETURN);
        Ok(())
    }

    pub(super) fn elsewhere(self, code: &mut Code<'_, '_>) -> Result<()> {
        let slot = Local(1);
        let (no_leaf, outside) = (code.to.label(), code.to.label());
        code.load_long(slot);
        code.constant(LEAF_BELOW)?;
        code.op(opcode::LCMP);
        code.to.branch(opcode::IFGE, no_leaf);
        code.constant(LEAF_SLOT)?;
        code.op(opcode::LRETURN);
        code.to.place(no_leaf);
        code.load_long(slot);
        code.constant(NOTHING_BELOW)?;
        code.op(opcode::LCMP);
        code.to.branch(opcode::IFGE, outside);
        self.fold(code)?;
        code.to.place(outside);
        match self.is_restricted {
            true => {
                code.constant(0)?;
                code.op(opcode::LRETURN);
                Ok(())
            }
            false => self.enter_below_root(code),
        }
    }

    pub(super) fn within(self, code: &mut Code<'_, '_>) -> Result<()> {
        let (cell, slot) = (Local(0), Local(1));
        let (known, outside) = (code.to.label(), code.to.label());
        code.load_long(slot);
        code.to.branch_by_sign(opcode::IFGT, known);
        code.load_long(slot);
        code.constant(NOTHING_BELOW)?;
        code.op(opcode::LCMP);
        code.to.branch(opcode::IFGE, outside);
        code.to.place(known);
        code.load_reference(cell);
        code.load_long(slot);
        code.load_shape();
        code.call(ENTER, ENTER_TYPE)?;
        code.op(opcode::LRETURN);
        code.to.place(outside);
        self.enter_below_root(code)
    }

    /// Enters a method that the thread's root calls, and returns from `elsewhere` or `within`.
    fn enter_below_root(self, code: &mut Code<'_, '_>) -> Result<()> {
        let (cell, slot) = (Local(0), Local(1));
        let (idle, full) = (code.to.label(), code.to.label());
        code.get_static(RECORDING, "Z")?;
        code.to.branch(opcode::IFEQ, idle);
        code.load_reference(cell);
        code.get_static(COMMON, CELL_TYPE)?;
        code.to.branch(opcode::IF_ACMPEQ, idle);
        code.load_reference(cell);
        code.call(ROOT, ROOT_TYPE)?;
        code.keep_long(slot);
        code.to.branch_by_sign(opcode::IFEQ, full);
        code.load_reference(cell);
        code.load_long(slot);
        code.load_shape();
        code.call(ENTER, ENTER_TYPE)?;
        code.op(opcode::LRETURN);
        code.to.place(full);
        self.fold(code)?;
        code.to.place(idle);
        code.constant(0)?;
        code.op(opcode::LRETURN);
        Ok(())
    }

    pub(super) fn root(self, code: &mut Code<'_, '_>) -> Result<()> {
        let cell = Local(0);
        let (slot, last) = (code.long(), code.long());
        let (new, again, full) = (code.to.label(), code.to.label(), code.to.label());
        code.load_reference(cell);
        code.field(opcode::GETFIELD, CLASS, ROOT, "J")?;
        code.keep_long(slot);
        code.to.branch_by_sign(opcode::IFEQ, new);
        code.load_long(slot);
        code.op(opcode::LRETURN);
        code.to.place(new);
        code.int(ROOT_BYTES)?;
        code.call(ALLOCATE, ALLOCATE_TYPE)?;
        code.keep_long(slot);
        code.to.branch_by_sign(opcode::IFEQ, full);
        code.to.place(again);
        code.read_volatile(Address::Constant(self.word(header::ROOTS)))?;
        code.store_long(last);
        code.write(slot, node::NEXT.wrapping_sub(node::slot(0)), |code| {
            code.load_long(last);
            Ok(())
        })?;
        code.compare_and_set(Address::Constant(self.word(header::ROOTS)), last, |code| {
            code.address(slot, node::slot(0).wrapping_neg())
        })?;
        code.to.branch(opcode::IFEQ, again);
        code.load_reference(cell);
        code.load_long(slot);
        code.field(opcode::PUTFIELD, CLASS, ROOT, "J")?;
        code.to.place(full);
        code.load_long(slot);
        code.op(opcode::LRETURN);
        Ok(())
    }

    pub(super) fn find(self, code: &mut Code<'_, '_>) -> Result<()> {
        let (slot, method, below, above) = (Local(0), Local(2), Local(3), Local(4));
        let (at, node) = (code.long(), code.long());
        let (next, new, found) = (code.to.label(), code.to.label(), code.to.label());
        code.load_long(slot);
        code.store_long(at);
        code.to.place(next);
        code.read(at, 0)?;
        code.keep_long(node);
        code.to.branch_by_sign(opcode::IFEQ, new);
        code.branch_if_word_is(node, node::METHOD, method, found)?;
        code.address(node, node::NEXT)?;
        code.store_long(at);
        code.to.branch(opcode::GOTO, next);
        code.to.place(new);
        code.load_int(below);
        code.load_int(above);
        code.op(opcode::IADD);
        code.call(ALLOCATE, ALLOCATE_TYPE)?;
        code.keep_long(node);
        code.to.branch_by_sign(opcode::IFEQ, found);
        code.load_long(node);
        code.load_int_as_long(below);
        code.op(opcode::LADD);
        code.store_long(node);
        code.write(node, node::METHOD, |code| {
            code.load_int_as_long(method);
            Ok(())
        })?;
        code.write(node, node::PARENT_SLOT, |code| {
            code.load_long(slot);
            Ok(())
        })?;
        code.write_volatile(at, node)?;
        code.to.place(found);
        code.load_long(node);
        code.op(opcode::LRETURN);
        Ok(())
    }
}
