//! How does the runtime class access the tree?

use super::{CELL_TYPE, CLASS};
use crate::assembler::Local;
use crate::class::opcode;
use crate::class_builder::{CodeBuilder, Label};
use crate::error::Result;

pub(super) const UNSAFE: &str = "jdk/internal/misc/Unsafe";
pub(super) const UNSAFE_TYPE: &str = "Ljdk/internal/misc/Unsafe;";
/// The static field with the instance of `Unsafe`.
pub(super) const MEMORY: &str = "memory";

/// Where a word is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Address {
    /// At the value of a local variable.
    Variable(Local),
    /// At a fixed place.
    Constant(i64),
}

/// The code of a method of the runtime class.
pub(super) struct Code<'b, 'a> {
    pub(super) to: &'b mut CodeBuilder<'a>,
    /// The next free local variable.
    next: u16,
}

impl<'b, 'a> Code<'b, 'a> {
    /// Starts a method whose arguments take so many local variables.
    pub(super) const fn new(to: &'b mut CodeBuilder<'a>, arguments: u16) -> Self {
        Self {
            to,
            next: arguments,
        }
    }

    /// Returns a new local variable for a `long`.
    pub(super) const fn long(&mut self) -> Local {
        let local = Local(self.next);
        self.next = self.next.saturating_add(2);
        local
    }

    pub(super) fn op(&mut self, opcode: u8) {
        self.to.to.op(opcode);
    }

    pub(super) fn load_int(&mut self, local: Local) {
        self.to.to.load_int(local);
    }

    pub(super) fn load_long(&mut self, local: Local) {
        self.to.to.load_long(local);
    }

    pub(super) fn store_long(&mut self, local: Local) {
        self.to.to.store_long(local);
    }

    pub(super) fn load_reference(&mut self, local: Local) {
        self.to.to.load_reference(local);
    }

    pub(super) fn store_reference(&mut self, local: Local) {
        self.to.to.store_reference(local);
    }

    /// Pushes an `int`.
    pub(super) fn int(&mut self, value: i32) -> Result<()> {
        self.to.to.int(value)
    }

    /// Pushes a `long`.
    pub(super) fn constant(&mut self, value: i64) -> Result<()> {
        self.to.to.long(value)
    }

    pub(super) fn field(
        &mut self,
        opcode: u8,
        class: &str,
        name: &str,
        descriptor: &str,
    ) -> Result<()> {
        self.to.to.field(opcode, class, name, descriptor)
    }

    /// Stores the `long` on the stack, and leaves it there.
    pub(super) fn keep_long(&mut self, local: Local) {
        self.store_long(local);
        self.load_long(local);
    }

    pub(super) fn load_int_as_long(&mut self, local: Local) {
        self.load_int(local);
        self.op(opcode::I2L);
    }

    /// Branches if the word at `base + offset` is the value of an `int`.
    pub(super) fn branch_if_word_is(
        &mut self,
        base: Local,
        offset: i64,
        value: Local,
        to: Label,
    ) -> Result<()> {
        self.read(base, offset)?;
        self.load_int_as_long(value);
        self.op(opcode::LCMP);
        self.to.branch(opcode::IFEQ, to);
        Ok(())
    }

    /// Calls a method of the runtime class.
    pub(super) fn call(&mut self, name: &str, descriptor: &str) -> Result<()> {
        self.to
            .to
            .call(opcode::INVOKESTATIC, CLASS, name, descriptor)
    }

    /// Pushes a static field of the runtime class.
    pub(super) fn get_static(&mut self, name: &str, descriptor: &str) -> Result<()> {
        self.field(opcode::GETSTATIC, CLASS, name, descriptor)
    }

    /// `cell = new VaridTree()`.
    pub(super) fn new_cell(&mut self, cell: Local) -> Result<()> {
        let class = self.to.to.constants.add_class(CLASS.as_bytes())?;
        self.to.to.indexed(opcode::NEW, class);
        self.op(opcode::DUP);
        self.to
            .to
            .call(opcode::INVOKESPECIAL, CLASS, "<init>", "()V")?;
        self.store_reference(cell);
        Ok(())
    }

    /// Pushes the third to last argument of `enter` and `find`: the method and the shape of its node.
    pub(super) fn load_shape(&mut self) {
        for argument in 3..=5 {
            self.load_int(Local(argument));
        }
    }

    /// Pushes the sum of a variable and a constant.
    pub(super) fn address(&mut self, base: Local, offset: i64) -> Result<()> {
        self.load_long(base);
        if offset != 0 {
            self.constant(offset)?;
            self.op(opcode::LADD);
        }
        Ok(())
    }

    fn push(&mut self, address: Address) -> Result<()> {
        match address {
            Address::Variable(local) => {
                self.load_long(local);
                Ok(())
            }
            Address::Constant(value) => self.constant(value),
        }
    }

    /// Pushes the receiver and the null object of an access by absolute address.
    fn memory(&mut self) -> Result<()> {
        self.get_static(MEMORY, UNSAFE_TYPE)?;
        self.op(opcode::ACONST_NULL);
        Ok(())
    }

    fn native(&mut self, name: &str, descriptor: &str) -> Result<()> {
        self.to
            .to
            .call(opcode::INVOKEVIRTUAL, UNSAFE, name, descriptor)
    }

    /// Pushes the word at `base + offset`.
    pub(super) fn read(&mut self, base: Local, offset: i64) -> Result<()> {
        self.memory()?;
        self.address(base, offset)?;
        self.native("getLong", "(Ljava/lang/Object;J)J")
    }

    /// Pushes a word, with volatile semantics.
    pub(super) fn read_volatile(&mut self, address: Address) -> Result<()> {
        self.memory()?;
        self.push(address)?;
        self.native("getLongVolatile", "(Ljava/lang/Object;J)J")
    }

    /// Stores what `value` pushes at `base + offset`.
    pub(super) fn write(
        &mut self,
        base: Local,
        offset: i64,
        value: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.memory()?;
        self.address(base, offset)?;
        value(self)?;
        self.native("putLong", "(Ljava/lang/Object;JJ)V")
    }

    /// Stores the `int` that `value` pushes at the address in a variable.
    pub(super) fn write_int(
        &mut self,
        at: Local,
        value: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.memory()?;
        self.load_long(at);
        value(self)?;
        self.native("putInt", "(Ljava/lang/Object;JI)V")
    }

    /// Pushes a field of a cell that is a `long`.
    pub(super) fn get_place(&mut self, cell: Local, name: &str) -> Result<()> {
        self.load_reference(cell);
        self.field(opcode::GETFIELD, CLASS, name, "J")
    }

    /// Stores a variable at the address in another one, with volatile semantics.
    pub(super) fn write_volatile(&mut self, at: Local, value: Local) -> Result<()> {
        self.memory()?;
        self.load_long(at);
        self.load_long(value);
        self.native("putLongVolatile", "(Ljava/lang/Object;JJ)V")
    }

    /// Increments the word at `base + offset`, which no other thread writes.
    pub(super) fn increment(&mut self, base: Local, offset: i64) -> Result<()> {
        self.write(base, offset, |code| {
            code.read(base, offset)?;
            code.op(opcode::LCONST_1);
            code.op(opcode::LADD);
            Ok(())
        })
    }

    /// Stores what `value` pushes if the word is still `expected`; pushes whether it was.
    pub(super) fn compare_and_set(
        &mut self,
        address: Address,
        expected: Local,
        value: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.memory()?;
        self.push(address)?;
        self.load_long(expected);
        value(self)?;
        self.native("compareAndSetLong", "(Ljava/lang/Object;JJJ)Z")
    }

    /// Pushes a field of `Thread` or of a cell of the runtime class's own type.
    pub(super) fn get_cell(&mut self, class: &str, name: &str) -> Result<()> {
        self.field(opcode::GETFIELD, class, name, CELL_TYPE)
    }
}
