//! Decodes what an instruction does to registers and memory, on any machine.
//!
//! The decoders distinguish only what leads to offsets in structures: loads, stores, moves, sums with constants, tests of bits, calls. For
//! every other instruction they report the registers that it overwrites. Registers have their DWARF numbers.

mod aarch64;
mod arm;
#[cfg(target_arch = "x86_64")]
mod x86_64;

use varid_model::Machine;

/// A register, by its DWARF number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Register(pub(super) u8);

/// The intermediate value of an instruction with a memory operand. No machine has a register with this number.
pub(super) const OPERAND: Register = Register(39);
/// The number of possible registers, including [`OPERAND`].
pub(super) const REGISTERS: usize = 40;

/// The base of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// A register's value.
    Register(Register),
    /// An address of the file.
    Absolute(u64),
    /// The thread pointer. Only x86 has such addresses.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    ThreadPointer,
    /// ART's `Thread` for the thread itself, if a segment register points to it. Only x86 has such addresses.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    Thread,
}

/// An address in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) base: Base,
    pub(super) offset: i64,
    /// Added to the address, perhaps scaled.
    pub(super) index: Option<Register>,
}

impl Place {
    /// The address at this offset in bytes from a register.
    pub(super) const fn at(register: Register, offset: i64) -> Self {
        Self {
            base: Base::Register(register),
            offset,
            index: None,
        }
    }
}

/// The value that is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Register(Register),
    Constant(u64),
    /// Another one, such as a vector register.
    Other,
}

/// One effect of an instruction. Effects are listed in the order in which they happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// `to` = the `size` bytes at a place. None: they are read, but not kept in a register that is followed.
    Load {
        to: Option<Register>,
        from: Place,
        size: u8,
    },
    /// The `size` bytes at a place = a value.
    Store { to: Place, from: Source, size: u8 },
    /// `to` = `from` + a constant.
    Move {
        to: Register,
        from: Register,
        add: i64,
    },
    /// `to` = a constant.
    Set { to: Register, value: u64 },
    /// `to` = one register + another one.
    Add {
        to: Register,
        left: Register,
        right: Register,
    },
    /// `to` = one register - another one.
    Subtract {
        to: Register,
        left: Register,
        right: Register,
    },
    /// Some bits of a register are tested.
    Test { register: Register, mask: u64 },
    /// `to` = the thread pointer.
    ThreadPointer { to: Register },
    /// The register gets a value that is not followed.
    Overwrite(Register),
}

/// Where execution continues after an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
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
    /// In the caller, or nowhere.
    Return,
}

/// An instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Instruction {
    /// Its size in bytes.
    pub(super) size: u8,
    pub(super) effects: Vec<Effect>,
    pub(super) flow: Flow,
}

impl Instruction {
    /// An instruction without relevant effects.
    const fn nothing(size: u8) -> Self {
        Self {
            size,
            effects: Vec::new(),
            flow: Flow::Next,
        }
    }
}

/// The instruction decoder of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decoder {
    Aarch64,
    Arm,
    #[cfg(target_arch = "x86_64")]
    X86_64,
}

impl Decoder {
    /// Returns the decoder of a machine, if its code is supported.
    pub(super) const fn of(machine: Machine) -> Option<Self> {
        match machine {
            Machine::Aarch64 => Some(Self::Aarch64),
            Machine::Arm => Some(Self::Arm),
            #[cfg(target_arch = "x86_64")]
            Machine::X86_64 => Some(Self::X86_64),
            #[cfg(not(target_arch = "x86_64"))]
            Machine::X86_64 => None,
            Machine::X86 => None,
        }
    }

    /// Decodes the instruction at the beginning of `code`, which is at an address of the file. None if there is none.
    pub(super) fn decode(self, code: &[u8], address: u64) -> Option<Instruction> {
        match self {
            Self::Aarch64 => aarch64::decode(word(code)?, address),
            Self::Arm => Some(arm::decode(word(code)?, address)),
            #[cfg(target_arch = "x86_64")]
            Self::X86_64 => x86_64::decode(code, address),
        }
    }

    /// Returns the registers of a function's first arguments.
    pub(super) const fn arguments(self) -> &'static [Register] {
        const AARCH64: &[Register] = &[
            Register(0),
            Register(1),
            Register(2),
            Register(3),
            Register(4),
            Register(5),
        ];
        const ARM: &[Register] = &[Register(0), Register(1), Register(2), Register(3)];
        match self {
            Self::Aarch64 => AARCH64,
            Self::Arm => ARM,
            #[cfg(target_arch = "x86_64")]
            Self::X86_64 => x86_64::ARGUMENTS,
        }
    }

    /// Returns the register of a function's result.
    pub(super) const fn result(self) -> Register {
        Register(0)
    }

    /// Returns true if a function may overwrite a register of its caller.
    pub(super) fn is_lost_in_calls(self, register: Register) -> bool {
        match self {
            Self::Aarch64 => register.0 <= 18 || register.0 == 30,
            Self::Arm => register.0 <= 3 || matches!(register.0, 12 | 14),
            #[cfg(target_arch = "x86_64")]
            Self::X86_64 => x86_64::is_lost_in_calls(register),
        }
    }

    /// The stack pointer.
    pub(super) const fn stack_pointer(self) -> Register {
        match self {
            Self::Aarch64 => Register(31),
            Self::Arm => Register(13),
            #[cfg(target_arch = "x86_64")]
            Self::X86_64 => Register(7),
        }
    }
}

/// Returns the first word of some code.
fn word(code: &[u8]) -> Option<u32> {
    code.first_chunk().map(|word| u32::from_le_bytes(*word))
}

/// Returns `bits` bits from bit `low` on.
fn field(word: u32, low: u32, bits: u32) -> u32 {
    let mask = u32::MAX
        .checked_shr(32u32.saturating_sub(bits))
        .unwrap_or(0);
    word.checked_shr(low).unwrap_or(0) & mask
}

/// Returns `bits` bits from bit `low` on, as a signed number.
fn signed(word: u32, low: u32, bits: u32) -> i64 {
    let up = 32u32.saturating_sub(low).saturating_sub(bits);
    let value = word.wrapping_shl(up).cast_signed();
    value.wrapping_shr(32u32.saturating_sub(bits)).into()
}

/// Returns the register whose number is in `bits` bits (5 or 4) from bit `low` on.
fn register(word: u32, low: u32, bits: u32) -> Register {
    Register(field(word, low, bits) as u8)
}
