//! The registers.

use std::fmt;

/// A register, by its DWARF number: 0 to 31 are the integer registers `x0` to `x31`, 32 to 63 the floating-point registers `f0` to `f31`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Register(u8);

/// The number of registers.
pub const REGISTERS: usize = 64;

/// The names of the calling convention, by number (RISC-V ELF psABI, "Register Convention").
const NAMES: [&str; REGISTERS] = [
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4",
    "a5", "a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4",
    "t5", "t6", "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "fs0", "fs1", "fa0", "fa1",
    "fa2", "fa3", "fa4", "fa5", "fa6", "fa7", "fs2", "fs3", "fs4", "fs5", "fs6", "fs7", "fs8",
    "fs9", "fs10", "fs11", "ft8", "ft9", "ft10", "ft11",
];

impl Register {
    /// All registers, by ascending number.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..REGISTERS as u8).map(Self)
    }

    /// `x0`, which is always 0.
    pub const ZERO: Self = Self(0);
    /// `x1`, the return address.
    pub const RA: Self = Self(1);
    /// `x2`, the stack pointer.
    pub const SP: Self = Self(2);
    /// `x3`, the global pointer.
    pub const GP: Self = Self(3);
    /// `x5`, the return address of functions that save registers for others.
    pub const T0: Self = Self(5);
    /// `x10`, the first argument and the result.
    pub const A0: Self = Self(10);
    /// `x17`, the number of a system call.
    pub const A7: Self = Self(17);

    /// Makes the integer register with the lowest five bits of a number.
    #[must_use]
    pub const fn integer(number: u32) -> Self {
        Self((number & 31) as u8)
    }

    /// Makes the floating-point register with the lowest five bits of a number.
    #[must_use]
    pub const fn float(number: u32) -> Self {
        Self((number & 31) as u8 | 32)
    }

    /// Its DWARF number, less than [`REGISTERS`].
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Its number within the integer or the floating-point registers, less than 32.
    #[must_use]
    pub const fn number(self) -> usize {
        (self.0 & 31) as usize
    }

    /// Returns true for a floating-point register.
    #[must_use]
    pub const fn is_float(self) -> bool {
        self.0 >= 32
    }

    /// Returns true for the registers that hold return addresses: `ra` and `t0` (unprivileged specification, "Return-address stack
    /// prediction hints").
    #[must_use]
    pub const fn is_link(self) -> bool {
        matches!(self, Self::RA | Self::T0)
    }

    /// Its name in the calling convention: `a0`.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.get(self.index()).copied().unwrap_or_default()
    }
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
