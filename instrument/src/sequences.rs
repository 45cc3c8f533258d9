//! Which instructions are inserted?
//!
//! A rewritten method has up to four more local variables:
//!
//! | variable | type | value |
//! |---|---|---|
//! | `cell` | `java/lang/VaridTree` | the thread's own cell, whose field `slot` is the address at which the next call is recorded |
//! | `caller` | `long` | the slot as it was at the method's entry, which is restored at its exit |
//! | `here` | `long` | the address of slot 0 of the method's node; 0 or negative: this call is not recorded |
//! | `bci` | `int` | with block counters: the bci of the last instruction that may have thrown |
//!
//! | place | what is inserted |
//! |---|---|
//! | entry | `cell = VaridTree.current(); caller = cell.slot; here = VaridTree.enter(cell, caller, method, bytes below, bytes above)` |
//! | before the call site `k` | `cell.slot = here - 8 * (k + 1)` |
//! | before an instruction by which the VM itself may call | `cell.slot = here`, if it can be another one |
//! | block with a counter | `VaridTree.count(here, offset)`; in the call order `VaridTree.countInOrder(cell, here, offset)` |
//! | before an instruction that can throw | `bci = ...`, with block counters |
//! | handler | `VaridTree.abort(here, bci)`, with block counters |
//! | return | `cell.slot = caller` |
//! | exception that leaves the method | `VaridTree.abort(here, bci)` with block counters; `cell.slot = caller`; `athrow` |
//!
//! The entry of the method to whose extent recording is restricted calls `enterWithin` instead of `enter`.
//!
//! A leaf's entry is `cell = VaridTree.current(); caller = cell.slot; cell.slot = LEAF`, and its exits are the same.

use crate::assembler::{Assembler, Local};
use crate::class::opcode;
use crate::error::Result;
use crate::frames::Added;
use crate::runtime::{
    ABORT, ABORT_TYPE, BEGIN, CLASS, COUNT, COUNT_IN_ORDER, COUNT_IN_ORDER_TYPE, COUNT_TYPE,
    CURRENT, CURRENT_TYPE, ENTER, ENTER_TYPE, ENTER_WITHIN, LEAF_SLOT, SLOT,
};
use crate::{Bci, MethodNumber, node};

/// The words of the operand stack that an inserted sequence takes at most: before a call site the cell and two longs. The entry, which finds the
/// stack empty, takes more.
pub(crate) const STACK: u16 = 5;
/// The words that the entry takes: the cell, a long, and three ints.
pub(crate) const ENTRY_STACK: u16 = 6;

/// The local variables that are added.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Locals {
    cell: Local,
    caller: Local,
    /// None: a leaf.
    here: Option<Local>,
    /// None: no block counters.
    bci: Option<Local>,
    /// The number of local variables, with these.
    pub(crate) max: u16,
}

impl Locals {
    /// Places them above the method's own. None: there is no room.
    pub(crate) fn above(max_locals: u16, leaf: bool, blocks: bool) -> Option<Self> {
        let mut max = max_locals;
        let mut add = |words: u16| {
            let local = Local(max);
            max = max.checked_add(words)?;
            Some(local)
        };
        let (cell, caller) = (add(1)?, add(2)?);
        let here = if leaf { None } else { Some(add(2)?) };
        let bci = if blocks && !leaf { Some(add(1)?) } else { None };
        Some(Self {
            cell,
            caller,
            here,
            bci,
            max,
        })
    }

    /// Returns their types in their order; `cell` is the constant of the runtime class.
    pub(crate) fn types(&self, cell: u16) -> Vec<Added> {
        let mut types = vec![Added::Object(cell), Added::Long];
        types.extend(self.here.map(|_| Added::Long));
        types.extend(self.bci.map(|_| Added::Int));
        types
    }
}

/// What the entry of a method needs to know of its node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeShape {
    pub(crate) method: MethodNumber,
    /// The number of call sites.
    pub(crate) sites: u16,
    /// The number of block counters. None: there are none, nor aborts.
    pub(crate) counters: Option<u16>,
}

impl NodeShape {
    fn bytes_below(self) -> i32 {
        i32::from(self.sites).saturating_add(1).saturating_mul(8)
    }

    fn bytes_above(self) -> i64 {
        match self.counters {
            Some(counters) => node::counter(u32::from(counters)),
            None => i64::from(node::WORDS).saturating_mul(8),
        }
    }
}

/// Appends the sequences to code.
pub(crate) struct Sequences<'a, 'c> {
    pub(crate) to: Assembler<'a, 'c>,
    locals: Locals,
}

impl<'a, 'c> Sequences<'a, 'c> {
    pub(crate) const fn new(to: Assembler<'a, 'c>, locals: Locals) -> Self {
        Self { to, locals }
    }

    /// `cell.slot = `, whose value `value` pushes.
    fn set_slot(&mut self, value: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.to.load_reference(self.locals.cell);
        value(self)?;
        self.to.field(opcode::PUTFIELD, CLASS, SLOT, "J")
    }

    fn load_here(&mut self) {
        if let Some(here) = self.locals.here {
            self.to.load_long(here);
        }
    }

    /// What precedes recording: the first call of this method begins it.
    pub(crate) fn begin(&mut self) -> Result<()> {
        self.to.call(opcode::INVOKESTATIC, CLASS, BEGIN, "()V")
    }

    /// `cell = VaridTree.current(); caller = cell.slot`.
    fn enter_frame(&mut self) -> Result<()> {
        self.to
            .call(opcode::INVOKESTATIC, CLASS, CURRENT, CURRENT_TYPE)?;
        self.to.op(opcode::DUP);
        self.to.store_reference(self.locals.cell);
        self.to.field(opcode::GETFIELD, CLASS, SLOT, "J")?;
        self.to.store_long(self.locals.caller);
        Ok(())
    }

    /// The entry of a method that is counted.
    pub(crate) fn entry(&mut self, node: NodeShape, is_extent: bool) -> Result<()> {
        self.enter_frame()?;
        self.to.load_reference(self.locals.cell);
        self.to.load_long(self.locals.caller);
        self.to
            .int(i32::try_from(node.method.get()).unwrap_or(i32::MAX))?;
        self.to.int(node.bytes_below())?;
        self.to
            .int(i32::try_from(node.bytes_above()).unwrap_or(i32::MAX))?;
        let enter = if is_extent { ENTER_WITHIN } else { ENTER };
        self.to
            .call(opcode::INVOKESTATIC, CLASS, enter, ENTER_TYPE)?;
        if let Some(here) = self.locals.here {
            self.to.store_long(here);
        }
        if let Some(bci) = self.locals.bci {
            self.to.int(0)?;
            self.to.store_int(bci);
        }
        Ok(())
    }

    /// The entry of a leaf.
    pub(crate) fn leaf_entry(&mut self) -> Result<()> {
        self.enter_frame()?;
        self.set_slot(|this| this.to.long(LEAF_SLOT))
    }

    /// What precedes the call site `site`.
    pub(crate) fn site(&mut self, site: u16) -> Result<()> {
        self.set_slot(|this| {
            this.load_here();
            this.to.long(
                i64::from(site)
                    .saturating_add(1)
                    .saturating_mul(node::WORD as i64),
            )?;
            this.to.op(opcode::LSUB);
            Ok(())
        })
    }

    /// What precedes an instruction by which the VM itself may call methods.
    pub(crate) fn implicit(&mut self) -> Result<()> {
        self.set_slot(|this| {
            this.load_here();
            Ok(())
        })
    }

    /// Counts a block.
    pub(crate) fn count(&mut self, counter: u16) -> Result<()> {
        self.load_counter(counter)?;
        self.to.call(opcode::INVOKESTATIC, CLASS, COUNT, COUNT_TYPE)
    }

    /// Counts a block whose executions are events of the call order.
    pub(crate) fn count_in_order(&mut self, counter: u16) -> Result<()> {
        self.to.load_reference(self.locals.cell);
        self.load_counter(counter)?;
        self.to.call(
            opcode::INVOKESTATIC,
            CLASS,
            COUNT_IN_ORDER,
            COUNT_IN_ORDER_TYPE,
        )
    }

    /// Pushes `here`, and the offset of a counter from it.
    fn load_counter(&mut self, counter: u16) -> Result<()> {
        self.load_here();
        // `here` is the address of slot 0, a word below the node.
        let offset = node::counter(u32::from(counter)).saturating_sub(node::slot(0));
        self.to.int(i32::try_from(offset).unwrap_or(i32::MAX))
    }

    /// Stores the bci of an instruction that can throw. Nothing without block counters.
    pub(crate) fn throws_at(&mut self, bci: Bci) -> Result<()> {
        if let Some(local) = self.locals.bci {
            self.to.int(i32::from(bci.0))?;
            self.to.store_int(local);
        }
        Ok(())
    }

    /// Records that an exception has left a block. Nothing without block counters.
    pub(crate) fn abort(&mut self) -> Result<()> {
        if let Some(bci) = self.locals.bci {
            self.load_here();
            self.to.load_int(bci);
            self.to
                .call(opcode::INVOKESTATIC, CLASS, ABORT, ABORT_TYPE)?;
        }
        Ok(())
    }

    /// What precedes a return.
    pub(crate) fn exit(&mut self) -> Result<()> {
        self.set_slot(|this| {
            this.to.load_long(this.locals.caller);
            Ok(())
        })
    }

    /// The handler of exceptions that leave the method.
    pub(crate) fn tail(&mut self) -> Result<()> {
        self.abort()?;
        self.exit()?;
        self.to.op(opcode::ATHROW);
        Ok(())
    }
}
