//! What does an instruction do to registers and memory, whatever the machine?
//!
//! Only what leads to offsets in structures is told apart: loads, stores, moves, sums with constants, tests of bits, calls. Of every
//! other instruction the decoders say which registers it overwrites. Registers have their DWARF numbers.

mod aarch64;
mod arm;
#[cfg(target_arch = "x86_64")]
mod x86_64;

use varid_model::Machine;

/// A register, by its DWARF number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Register(pub(super) u8);

/// What an instruction with a memory operand computes with: no register of a machine has this number.
pub(super) const OPERAND: Register = Register(39);
/// Registers that there may be, [`OPERAND`] among them.
pub(super) const REGISTERS: usize = 40;

/// What an address begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// A register's value.
    Register(Register),
    /// An address of the file.
    Absolute(u64),
    /// The thread pointer; only x86 has such addresses.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    ThreadPointer,
    /// ART's `Thread` of the thread itself, where a segment register of its own leads to it; only x86 has such addresses.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    Thread,
}

/// An address in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) base: Base,
    pub(super) offset: i64,
    /// Added to it, perhaps scaled.
    pub(super) index: Option<Register>,
}

impl Place {
    /// So many bytes from a register.
    pub(super) const fn at(register: Register, offset: i64) -> Self {
        Self {
            base: Base::Register(register),
            offset,
            index: None,
        }
    }
}

/// What is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Register(Register),
    Constant(u64),
    /// A vector register, say.
    Other,
}

/// A part of what an instruction does, in the order in which it does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// `to` = the `size` bytes at a place; None: they are read and not kept in a register that is followed.
    Load {
        to: Option<Register>,
        from: Place,
        size: u8,
    },
    /// The `size` bytes at a place = what is stored.
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
    /// The register has another value than before, which is not followed.
    Overwrite(Register),
}

/// Where an instruction leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// To the one behind it.
    Next,
    /// To an address.
    Jump(u64),
    /// To an address or to the one behind it.
    Branch(u64),
    /// To the function at an address, and back.
    Call(u64),
    /// To the function whose address a register holds, and back.
    CallRegister(Register),
    /// To where a register or memory says; an interpreter's handler, a tail call.
    JumpIndirect,
    /// To the caller, or nowhere.
    Return,
}

/// An instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Instruction {
    /// Its bytes.
    pub(super) size: u8,
    pub(super) effects: Vec<Effect>,
    pub(super) flow: Flow,
}

impl Instruction {
    /// One that does nothing of interest.
    const fn nothing(size: u8) -> Self {
        Self {
            size,
            effects: Vec::new(),
            flow: Flow::Next,
        }
    }
}

/// The instructions of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decoder {
    Aarch64,
    Arm,
    #[cfg(target_arch = "x86_64")]
    X86_64,
}

impl Decoder {
    /// That of a machine, if its code is understood here.
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

    /// The instruction that some bytes, at an address of the file, begin with; None: there is none.
    pub(super) fn decode(self, code: &[u8], address: u64) -> Option<Instruction> {
        match self {
            Self::Aarch64 => aarch64::decode(word(code)?, address),
            Self::Arm => Some(arm::decode(word(code)?, address)),
            #[cfg(target_arch = "x86_64")]
            Self::X86_64 => x86_64::decode(code, address),
        }
    }

    /// The registers that hold a function's first arguments.
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

    /// The register that holds what a function returns.
    pub(super) const fn result(self) -> Register {
        Register(0)
    }

    /// Whether a function may overwrite a register for its caller.
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

/// The word that some code begins with.
fn word(code: &[u8]) -> Option<u32> {
    code.first_chunk().map(|word| u32::from_le_bytes(*word))
}

/// `bits` bits from bit `low` on.
fn field(word: u32, low: u32, bits: u32) -> u32 {
    let mask = u32::MAX
        .checked_shr(32u32.saturating_sub(bits))
        .unwrap_or(0);
    word.checked_shr(low).unwrap_or(0) & mask
}

/// `bits` bits from bit `low` on, as a number with a sign.
fn signed(word: u32, low: u32, bits: u32) -> i64 {
    let up = 32u32.saturating_sub(low).saturating_sub(bits);
    let value = word.wrapping_shl(up).cast_signed();
    value.wrapping_shr(32u32.saturating_sub(bits)).into()
}

/// The register whose number `5` or `4` bits say.
fn register(word: u32, low: u32, bits: u32) -> Register {
    Register(field(word, low, bits) as u8)
}
