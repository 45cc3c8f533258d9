//! How is the order of calls recorded?
//!
//! An event is the increment of a word of the tree: of the calls of a node, or of the counter of a block that is [ordered](crate::Executions).
//! It is recorded just before the increment. Events of a thread are in chunks of its own, which have this layout, aligned to 8 bytes:
//!
//! ```text
//! chunk:  c + 0             address of the chunk that was made before, or 0
//!         c + 8             address of the root of the thread whose events follow, or 0: it has none
//!         c + 16            number of this filling, from 1: no other filling in the VM has it
//!         c + 24 + 4 * k    event k: the number of the word in the tree's file, counted from 0; 0: there is no event here, nor behind
//! ```
//!
//! When a chunk is full, or the thread has none, the runtime class calls its native method [`NEW_CHUNK`] with the address of the thread's root
//! and the value of [`END`]. The agent keeps the events elsewhere, and returns the address of event 0 of a chunk that has none. The VM looks for that method's function in the libraries of
//! agents, by methods that are rewritten themselves: `begin` calls it once, with 0, before anything is recorded. So the events of a
//! process that is killed are those that the agent has kept, and behind them those in the thread's chunk.

use super::memory::Code;
use super::tree::{RENEW, RENEW_TYPE, Tree};
use super::{CLASS, ROOT};
use crate::assembler::Local;
use crate::class::opcode;
use crate::error::Result;
use crate::node;

/// Instance field of the runtime class, of type `long`: the address of the thread's next event; 0: it has no chunk.
pub const NEXT: &str = "next";
/// Instance field of the runtime class, of type `long`: the end of the thread's chunk.
pub const END: &str = "end";
/// Native static method of the runtime class.
pub const NEW_CHUNK: &str = "newChunk";
/// Its descriptor.
pub const NEW_CHUNK_TYPE: &str = "(JJ)J";

/// Byte offset of the address of the chunk that was made before.
pub const BEFORE: u64 = 0;
/// Byte offset of the address of the thread's root.
pub const THREAD: u64 = 8;
/// Byte offset of the number of the filling.
pub const FILLING: u64 = 16;
/// Byte offset of event 0.
pub const EVENTS: u64 = 24;
/// Length of a chunk's events in bytes.
pub const EVENTS_LENGTH: u64 = (16 << 10) - EVENTS;
/// Length of an event in bytes.
pub const EVENT: u64 = 4;

pub(super) const APPEND: &str = "append";
pub(super) const APPEND_TYPE: &str = "(Ljava/lang/VaridTree;J)V";

impl Tree {
    pub(super) fn count_in_order(self, code: &mut Code<'_, '_>) -> Result<()> {
        let (cell, here, offset) = (Local(0), Local(1), Local(3));
        let at = code.long();
        let idle = code.to.label();
        code.load_long(here);
        code.to.branch_by_sign(opcode::IFLE, idle);
        code.load_long(here);
        code.load_int_as_long(offset);
        code.op(opcode::LADD);
        code.store_long(at);
        code.load_reference(cell);
        code.load_long(at);
        code.call(APPEND, APPEND_TYPE)?;
        code.increment(at, 0)?;
        code.to.place(idle);
        code.op(opcode::RETURN);
        Ok(())
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
