//! Floating-point operations.

use varid_riscv::{Float, Instruction, Precision};

use crate::{fault::Cause, hart::Hart};

/// A value of 32 bits in a register of 64: with ones above it.
pub fn boxed(bits: u32) -> u64 {
    u64::from(bits) | 0xffff_ffff_0000_0000
}

pub fn execute(
    _hart: &mut Hart,
    _instruction: &Instruction,
    _op: Float,
    _precision: Precision,
) -> Result<(), Cause> {
    Err(Cause::Unsupported("floating-point operations"))
}
