//! How is an instruction written?

use crate::class::{Constants, opcode, tag};
use crate::error::Result;

/// A local variable, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Local(pub u16);

/// A constant that an instruction loads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Constant<'a> {
    /// An `int`.
    Int(i32),
    /// A `long`.
    Long(i64),
    /// A `float`.
    Float(f32),
    /// A `double`.
    Double(f64),
    /// A string in modified UTF-8.
    String(&'a str),
}

/// Appends instructions to code, and the constants that they need to a constant pool.
#[derive(Debug)]
pub struct Assembler<'a, 'c> {
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
    pub fn op(&mut self, opcode: u8) {
        self.code.push(opcode);
    }

    /// Appends an instruction with a constant's index.
    pub fn indexed(&mut self, opcode: u8, index: u16) {
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

    /// Pushes an `int` variable.
    pub fn load_int(&mut self, local: Local) {
        self.local(opcode::ILOAD, opcode::ILOAD_0, local);
    }

    /// Pushes a `long` variable.
    pub fn load_long(&mut self, local: Local) {
        self.local(opcode::LLOAD, opcode::LLOAD_0, local);
    }

    /// Pushes a reference variable.
    pub fn load_reference(&mut self, local: Local) {
        self.local(opcode::ALOAD, opcode::ALOAD_0, local);
    }

    /// Pops an `int` into a variable.
    pub fn store_int(&mut self, local: Local) {
        self.local(opcode::ISTORE, opcode::ISTORE_0, local);
    }

    /// Pops a `long` into a variable.
    pub fn store_long(&mut self, local: Local) {
        self.local(opcode::LSTORE, opcode::LSTORE_0, local);
    }

    /// Pops a reference into a variable.
    pub fn store_reference(&mut self, local: Local) {
        self.local(opcode::ASTORE, opcode::ASTORE_0, local);
    }

    /// Pushes an `int`.
    ///
    /// # Errors
    ///
    /// The constant pool is full.
    pub fn int(&mut self, value: i32) -> Result<()> {
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
    ///
    /// # Errors
    ///
    /// The constant pool is full.
    pub fn long(&mut self, value: i64) -> Result<()> {
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
    ///
    /// # Errors
    ///
    /// The constant pool is full.
    pub fn field(&mut self, opcode: u8, class: &str, name: &str, descriptor: &str) -> Result<()> {
        self.member(opcode, tag::FIELD, [class, name, descriptor])
    }

    /// Appends a call of a class's method.
    ///
    /// # Errors
    ///
    /// The constant pool is full.
    pub fn call(&mut self, opcode: u8, class: &str, name: &str, descriptor: &str) -> Result<()> {
        self.member(opcode, tag::METHOD, [class, name, descriptor])
    }

    /// Appends a call of an interface's method whose arguments, its object among them, take so many words.
    ///
    /// # Errors
    ///
    /// The constant pool is full.
    pub fn call_interface(
        &mut self,
        [class, name, descriptor]: [&str; 3],
        arguments: u8,
    ) -> Result<()> {
        let names = [class, name, descriptor];
        self.member(opcode::INVOKEINTERFACE, tag::INTERFACE_METHOD, names)?;
        self.code.extend([arguments, 0]);
        Ok(())
    }

    /// Appends an instruction with a class.
    ///
    /// # Errors
    ///
    /// The constant pool is full.
    pub fn class(&mut self, opcode: u8, name: &str) -> Result<()> {
        let index = self.constants.add_class(name.as_bytes())?;
        self.indexed(opcode, index);
        Ok(())
    }

    /// Adds a constant to the pool, and returns its index.
    ///
    /// # Errors
    ///
    /// The constant pool is full.
    pub fn constant(&mut self, value: Constant<'_>) -> Result<u16> {
        match value {
            Constant::Int(value) => self.constants.add_integer(value),
            Constant::Long(value) => self.constants.add_long(value),
            Constant::Float(value) => self.constants.add_float(value),
            Constant::Double(value) => self.constants.add_double(value),
            Constant::String(text) => self.constants.add_string(text),
        }
    }

    /// Appends bytes of code, such as an instruction with its operands.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.code.extend(bytes);
    }

    /// Returns the offset of the next instruction.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.code.len()
    }

    fn member(&mut self, opcode: u8, tag: u8, [class, name, descriptor]: [&str; 3]) -> Result<()> {
        let index = self.constants.add_member(tag, class, name, descriptor)?;
        self.indexed(opcode, index);
        Ok(())
    }
}
