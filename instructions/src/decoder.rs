//! The decoders of the machines, and which registers functions of a machine use.

use crate::bits::word;
#[cfg(target_arch = "x86_64")]
use crate::x86::{self, Width};
use crate::{Instruction, Register, aarch64, arm};
use varid_model::Machine;

/// The instruction decoder of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoder {
    /// AArch64.
    Aarch64,
    /// ARM, not Thumb.
    Arm,
    /// x86-64. Only an x86-64 build of varid has this decoder.
    #[cfg(target_arch = "x86_64")]
    X86_64,
    /// 32-bit x86. Only an x86-64 build of varid has this decoder.
    #[cfg(target_arch = "x86_64")]
    X86,
}

impl Decoder {
    /// Returns the decoder of a machine, if this build of varid has one.
    pub const fn of(machine: Machine) -> Option<Self> {
        match machine {
            Machine::Aarch64 => Some(Self::Aarch64),
            Machine::Arm => Some(Self::Arm),
            #[cfg(target_arch = "x86_64")]
            Machine::X86_64 => Some(Self::X86_64),
            #[cfg(target_arch = "x86_64")]
            Machine::X86 => Some(Self::X86),
            #[cfg(not(target_arch = "x86_64"))]
            Machine::X86_64 | Machine::X86 => None,
        }
    }

    /// Decodes the instruction at the beginning of `code`, which is at an address. None if there is none.
    pub fn decode(self, code: &[u8], address: u64) -> Option<Instruction> {
        match self {
            Self::Aarch64 => aarch64::decode(word(code)?, address),
            Self::Arm => Some(arm::decode(word(code)?, address)),
            #[cfg(target_arch = "x86_64")]
            Self::X86_64 => x86::decode(code, address, Width::Bits64),
            #[cfg(target_arch = "x86_64")]
            Self::X86 => x86::decode(code, address, Width::Bits32),
        }
    }

    /// Decodes code from its first byte on, and returns each instruction with its offset. `code` is at `address`. Bytes that are no
    /// instruction, such as constants between functions, are skipped.
    pub fn sweep(self, code: &[u8], address: u64) -> impl Iterator<Item = (usize, Instruction)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            loop {
                let rest = code.get(at..).filter(|rest| !rest.is_empty())?;
                let offset = at;
                match self.decode(rest, address.wrapping_add(offset as u64)) {
                    Some(instruction) => {
                        at = at.saturating_add(instruction.size.into());
                        return Some((offset, instruction));
                    }
                    None => at = at.saturating_add(self.alignment()),
                }
            }
        })
    }

    /// The distance between places where instructions may begin, in bytes.
    const fn alignment(self) -> usize {
        match self {
            Self::Aarch64 | Self::Arm => 4,
            #[cfg(target_arch = "x86_64")]
            Self::X86_64 | Self::X86 => 1,
        }
    }

    /// Returns the registers of a function's first arguments. 32-bit x86 passes them on the stack.
    pub const fn arguments(self) -> &'static [Register] {
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
            Self::X86_64 => x86::ARGUMENTS,
            #[cfg(target_arch = "x86_64")]
            Self::X86 => &[],
        }
    }

    /// Returns the register of a function's result.
    pub const fn result(self) -> Register {
        Register(0)
    }

    /// Returns true if a function may overwrite a register of its caller.
    pub fn is_lost_in_calls(self, register: Register) -> bool {
        match self {
            Self::Aarch64 => register.0 <= 18 || register.0 == 30,
            Self::Arm => register.0 <= 3 || matches!(register.0, 12 | 14),
            // System V ABI, figure 3.4.
            #[cfg(target_arch = "x86_64")]
            Self::X86_64 => matches!(register.0, 0 | 1 | 2 | 4 | 5 | 8..=11),
            #[cfg(target_arch = "x86_64")]
            Self::X86 => register.0 <= 2,
        }
    }

    /// The stack pointer.
    pub const fn stack_pointer(self) -> Register {
        match self {
            Self::Aarch64 => Register(31),
            Self::Arm => Register(13),
            #[cfg(target_arch = "x86_64")]
            Self::X86_64 => Register(7),
            #[cfg(target_arch = "x86_64")]
            Self::X86 => Register(4),
        }
    }
}
