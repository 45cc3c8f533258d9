//! What an instruction does.

/// A register, by its DWARF number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Register(
    /// The number. On AArch64, 31 is the stack pointer.
    pub u8,
);

/// The intermediate value of an instruction, such as its operand in memory, or a result that is not kept. No machine has a register with
/// this number.
pub const OPERAND: Register = Register(39);
/// The number of possible registers, including [`OPERAND`].
pub const REGISTERS: usize = 40;

/// The base of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// A register's value.
    Register(Register),
    /// An address of the code's file or process.
    Absolute(u64),
    /// The thread pointer. Only x86 has such addresses: those of the segment fs.
    ThreadPointer,
    /// The base of the segment gs. Only x86 has such addresses.
    Gs,
}

/// An address in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// What `offset` is added to.
    pub base: Base,
    /// In bytes.
    pub offset: i64,
    /// Added to the address, perhaps scaled.
    pub index: Option<Register>,
}

impl Place {
    /// The address at this offset in bytes from a register.
    pub const fn at(register: Register, offset: i64) -> Self {
        Self {
            base: Base::Register(register),
            offset,
            index: None,
        }
    }
}

/// The value that is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// That of a register.
    Register(Register),
    /// A constant.
    Constant(u64),
    /// Another one, such as a vector register.
    Other,
}

/// One effect of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// `to` = the `size` bytes at a place.
    Load {
        /// None: they are read, but not kept in a register that is followed.
        to: Option<Register>,
        /// Where they are.
        from: Place,
        /// In bytes.
        size: u8,
    },
    /// The `size` bytes at a place = a value.
    Store {
        /// Where they are.
        to: Place,
        /// Their value.
        from: Source,
        /// In bytes.
        size: u8,
    },
    /// `to` = `from` + a constant.
    Move {
        /// The result.
        to: Register,
        /// The first operand.
        from: Register,
        /// The constant.
        add: i64,
    },
    /// `to` = a constant.
    Set {
        /// The result.
        to: Register,
        /// The constant.
        value: u64,
    },
    /// Some bits of `to` = those of a constant. The others are unchanged.
    Insert {
        /// The register.
        to: Register,
        /// The constant.
        value: u64,
        /// The bits.
        mask: u64,
    },
    /// `to` = `left` + `right`.
    Add {
        /// The result.
        to: Register,
        /// The first operand.
        left: Register,
        /// The second operand.
        right: Register,
    },
    /// `to` = `left` + another register, which is shifted or extended.
    AddScaled {
        /// The result.
        to: Register,
        /// The first operand.
        left: Register,
    },
    /// `to` = `left` - `right`. In a comparison, `to` is [`OPERAND`].
    Subtract {
        /// The result.
        to: Register,
        /// The first operand.
        left: Register,
        /// The second operand.
        right: Register,
    },
    /// Some bits of a register are tested.
    Test {
        /// The register.
        register: Register,
        /// The bits.
        mask: u64,
    },
    /// `to` = the thread pointer.
    ThreadPointer {
        /// The result.
        to: Register,
    },
    /// The register gets a value that is not followed.
    Overwrite(Register),
}

impl Effect {
    /// Returns the register that the effect changes.
    pub const fn changed(&self) -> Option<Register> {
        match *self {
            Self::Load { to, .. } => to,
            Self::Move { to, .. }
            | Self::Set { to, .. }
            | Self::Insert { to, .. }
            | Self::Add { to, .. }
            | Self::AddScaled { to, .. }
            | Self::Subtract { to, .. }
            | Self::ThreadPointer { to }
            | Self::Overwrite(to) => Some(to),
            Self::Store { .. } | Self::Test { .. } => None,
        }
    }
}

/// Where execution continues after an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// At the next instruction.
    Next,
    /// At an address.
    Jump(u64),
    /// At an address or at the next instruction.
    Branch(u64),
    /// In the function at an address, and then at the next instruction.
    Call(u64),
    /// In the function whose address is in a register, and then at the next instruction.
    CallRegister(Register),
    /// At an address in a register or in memory: an interpreter's handler, or a tail call.
    JumpIndirect,
    /// In the caller. On x86, the return address is popped, which is no effect of its own.
    Return,
    /// Nowhere: the instruction traps.
    Trap,
}

/// An instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// Its size in bytes.
    pub size: u8,
    /// What it does, in this order.
    pub effects: Vec<Effect>,
    /// Where execution continues.
    pub flow: Flow,
}

impl Instruction {
    /// An instruction without relevant effects.
    pub(crate) const fn nothing(size: u8) -> Self {
        Self {
            size,
            effects: Vec::new(),
            flow: Flow::Next,
        }
    }

    /// Returns the register that the instruction loads from the top of the stack of `stack_pointer`, if it pops it and does nothing else.
    pub fn popped(&self, stack_pointer: Register) -> Option<Register> {
        match *self.effects {
            [
                Effect::Load {
                    to: Some(to),
                    from,
                    size,
                },
                Effect::Move {
                    to: moved,
                    from: sp,
                    add,
                },
            ] if from == Place::at(stack_pointer, 0)
                && (moved, sp, add) == (stack_pointer, stack_pointer, size.into()) =>
            {
                Some(to)
            }
            _ => None,
        }
    }

    /// Returns the register that the instruction pushes on the stack of `stack_pointer`, if it does nothing else.
    pub fn pushed(&self, stack_pointer: Register) -> Option<Register> {
        match *self.effects {
            [
                Effect::Move {
                    to: moved,
                    from: sp,
                    add,
                },
                Effect::Store {
                    to,
                    from: Source::Register(from),
                    size,
                },
            ] if to == Place::at(stack_pointer, 0)
                && (moved, sp, add.wrapping_neg())
                    == (stack_pointer, stack_pointer, size.into()) =>
            {
                Some(from)
            }
            _ => None,
        }
    }
}
