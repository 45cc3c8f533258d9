//! How does the runtime class append events to a thread's chunk?

use super::memory::Code;
use super::order::{
    APPEND, APPEND_TYPE, END, EVENT, EVENTS_LENGTH, NEW_CHUNK, NEW_CHUNK_TYPE, NEXT,
};
use super::tree::{RENEW, RENEW_TYPE, Tree};
use super::{CLASS, ROOT};
use crate::assembler::Local;
use crate::class::opcode;
use crate::error::Result;
use crate::node;

impl Tree {
    pub(super) fn count_in_order(self, code: &mut Code<'_, '_>) -> Result<()> {
        self.increment_counter(code, Local(1), Local(3), |code, at| {
            code.load_reference(Local(0));
            code.load_long(at);
            code.call(APPEND, APPEND_TYPE)
        })
    }

    pub(super) fn append(self, code: &mut Code<'_, '_>) -> Result<()> {
        let (cell, word) = (Local(0), Local(1));
        let next = code.long();
        let has_room = code.to.label();
        code.get_place(cell, NEXT)?;
        code.get_place(cell, END)?;
        code.op(opcode::LCMP);
        code.to.branch(opcode::IFLT, has_room);
        code.load_reference(cell);
        code.call(RENEW, RENEW_TYPE)?;
        code.to.place(has_room);
        code.get_place(cell, NEXT)?;
        code.store_long(next);
        code.write_int(next, |code| {
            code.address(word, self.address.wrapping_neg())?;
            code.int(node::WORD.trailing_zeros().cast_signed())?;
            code.op(opcode::LSHR);
            code.op(opcode::L2I);
            Ok(())
        })?;
        code.load_reference(cell);
        code.address(next, EVENT.cast_signed())?;
        code.field(opcode::PUTFIELD, CLASS, NEXT, "J")?;
        code.op(opcode::RETURN);
        Ok(())
    }

    pub(super) fn renew(self, code: &mut Code<'_, '_>) -> Result<()> {
        let cell = Local(0);
        let (next, root) = (code.long(), code.long());
        code.get_place(cell, ROOT)?;
        code.store_long(root);
        code.address(root, node::slot(0).wrapping_neg())?;
        code.get_place(cell, END)?;
        code.call(NEW_CHUNK, NEW_CHUNK_TYPE)?;
        code.store_long(next);
        code.load_reference(cell);
        code.address(next, EVENTS_LENGTH.cast_signed())?;
        code.field(opcode::PUTFIELD, CLASS, END, "J")?;
        code.load_reference(cell);
        code.load_long(next);
        code.field(opcode::PUTFIELD, CLASS, NEXT, "J")?;
        code.op(opcode::RETURN);
        Ok(())
    }
}
