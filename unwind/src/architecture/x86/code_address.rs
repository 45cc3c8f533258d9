//! The bits of a word that form a code address on x86: all of them.

use varid_model::{Machine, Regs};

/// Returns the bits of a word that form a code address.
pub(super) fn mask(regs: &Regs) -> u64 {
    match regs.machine() {
        Machine::X86 => u64::from(u32::MAX),
        _ => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_the_whole_word() {
        let mut regs = Regs::unknown(Machine::X86_64);
        regs.set_frame(0x40_1000, 0x7fff_0000, 0);
        assert_eq!(0x7f12_3456_789b & mask(&regs), 0x7f12_3456_789b);
        assert_eq!(mask(&Regs::unknown(Machine::X86)), 0xffff_ffff);
    }
}
