//! The state of the guest's processor.

use varid_riscv::Register;

/// The registers of a hart of RV32, as the unprivileged specification names them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hart {
    /// The address of the next instruction.
    pub pc: u32,
    integer: [u32; 32],
    /// The bits of each floating-point register. A value of 32 bits has ones above it.
    float: [u64; 32],
    /// The floating-point control and status register: rounding mode and accrued exceptions.
    pub fcsr: u32,
    /// The address that `lr` has reserved.
    pub reservation: Option<u32>,
}

impl Hart {
    /// Reads an integer register.
    #[inline]
    #[must_use]
    pub fn get(&self, register: Register) -> u32 {
        self.integer
            .get(register.number())
            .copied()
            .unwrap_or_default()
    }

    /// Writes an integer register. `zero` stays 0.
    #[inline]
    pub fn set(&mut self, register: Register, value: u32) {
        if let Some(known) = self.integer.get_mut(register.number())
            && register.number() != 0
        {
            *known = value;
        }
    }

    /// Reads the bits of a floating-point register.
    #[inline]
    #[must_use]
    pub fn float(&self, register: Register) -> u64 {
        self.float
            .get(register.number())
            .copied()
            .unwrap_or_default()
    }

    /// Writes the bits of a floating-point register.
    #[inline]
    pub fn set_float(&mut self, register: Register, bits: u64) {
        if let Some(known) = self.float.get_mut(register.number()) {
            *known = bits;
        }
    }
}
