//! How is an instruction written?

use crate::class::{Constants, opcode, tag};
use crate::error::Result;

/// A local variable, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Local(pub(crate) u16);

/// Appends instructions to code, and the constants that they need to a constant pool.
#[derive(Debug)]
pub(crate) struct Assembler<'a, 'c> {
    /// The constants.
    pub(crate) constants: &'a mut Constants<'c>,
    /// The code.
    pub(crate) code: Vec<u8>,
}

impl<'a, 'c> Assembler<'a, 'c> {
    /// Starts with no code.
    pub(crate) const fn new(constants: &'a mut Constants<'c>) -> Self {
        Self {
            constants,
            code: Vec::new(),
        }
    }

    /// Appends an instruction without operands.
    pub(crate) fn op(&mut self, opcode: u8) {
        self.code.push(opcode);
    }

    /// Appends an instruction with a constant's index.
    pub(crate) fn indexed(&mut self, opcode: u8, index: u16) {
        self.code.push(opcode);
        self.code.extend(index.to_be_bytes());
    }

    /// Appends a load or store in its shortest form. `short` is the opcode of the form for local variable 0.
    fn local(&mut self, opcode: u8, short: u8, local: Local) {
        let [high, low] = local.0.to_be_bytes();
        match (high, low) {
            (0, 0..=3) => self.code.push(short.saturating_add(low)),
            (0, _) => self.code.extend([opcode, low]),
            _ => self.code.extend([opcode::WIDE, opcode, high, low]),
        }
    }

    pub(crate) fn load_int(&mut self, local: Local) {
        self.local(opcode::ILOAD, opcode::ILOAD_0, local);
    }

    pub(crate) fn load_long(&mut self, local: Local) {
        self.local(opcode::LLOAD, opcode::LLOAD_0, local);
    }

    pub(crate) fn load_reference(&mut self, local: Local) {
        self.local(opcode::ALOAD, opcode::ALOAD_0, local);
    }

    pub(crate) fn store_int(&mut self, local: Local) {
        self.local(opcode::ISTORE, opcode::ISTORE_0, local);
    }

    pub(crate) fn store_long(&mut self, local: Local) {
        self.local(opcode::LSTORE, opcode::LSTORE_0, local);
    }

    pub(crate) fn store_reference(&mut self, local: Local) {
        self.local(opcode::ASTORE, opcode::ASTORE_0, local);
    }

    /// Pushes an `int`.
    pub(crate) fn int(&mut self, value: i32) -> Result<()> {
        if let Ok(byte) = i8::try_from(value) {
            match value {
                0..=5 => self.op(opcode::ICONST_0.saturating_add(byte.unsigned_abs())),
                _ => self.code.extend([opcode::BIPUSH, byte.to_be_bytes()[0]]),
            }
        } else if let Ok(short) = i16::try_from(value) {
            let [high, low] = short.to_be_bytes();
            self.code.extend([opcode::SIPUSH, high, low]);
        } else {
            let index = self.constants.add_integer(value)?;
            self.indexed(opcode::LDC_W, index);
        }
        Ok(())
    }

    /// Pushes a `long`.
    pub(crate) fn long(&mut self, value: i64) -> Result<()> {
        match i32::try_from(value) {
            Ok(int @ -0x8000..=0x7fff) => {
                self.int(int)?;
                self.op(opcode::I2L);
            }
            _ => {
                let index = self.constants.add_long(value)?;
                self.indexed(opcode::LDC2_W, index);
            }
        }
        Ok(())
    }

    /// Appends an access to a field.
    pub(crate) fn field(
        &mut self,
        opcode: u8,
        class: &str,
        name: &str,
        descriptor: &str,
    ) -> Result<()> {
        self.member(opcode, tag::FIELD, [class, name, descriptor])
    }

    /// Appends a call of a class's method.
    pub(crate) fn call(
        &mut self,
        opcode: u8,
        class: &str,
        name: &str,
        descriptor: &str,
    ) -> Result<()> {
        self.member(opcode, tag::METHOD, [class, name, descriptor])
    }

    fn member(&mut self, opcode: u8, tag: u8, [class, name, descriptor]: [&str; 3]) -> Result<()> {
        let index = self.constants.add_member(tag, class, name, descriptor)?;
        self.indexed(opcode, index);
        Ok(())
    }
}
