//! The bits of a word that form a code address on AArch64.
//!
//! A function may sign its return address. The signature (pointer authentication code) is in the bits that user addresses do not use: those
//! between the address width and bit 55, and those above if tags are not in use.

use varid_model::Regs;

/// The smallest user address width that kernels other than embedded configurations are built with: Android's.
const NARROWEST: u32 = 39;

/// Returns the bits of a word that form a code address, in a thread with these registers.
///
/// A kernel maps stacks, libraries and position-independent programs into the upper half of the address space. So the sampled stack pointer
/// and instruction pointer, which are never signed, show the address width.
pub(super) fn mask(regs: &Regs) -> u64 {
    let known = regs.sp().unwrap_or(0) | regs.ip().unwrap_or(0);
    let width = u64::BITS
        .saturating_sub(known.leading_zeros())
        .max(NARROWEST);
    u64::MAX
        .checked_shr(u64::BITS.saturating_sub(width))
        .unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use varid_model::Machine;

    fn mask_of(ip: u64, sp: u64) -> u64 {
        let mut regs = Regs::unknown(Machine::Aarch64);
        regs.set_frame(ip, sp, 0);
        mask(&regs)
    }

    #[test]
    fn a_signature_is_no_part_of_a_return_address() {
        for (ip, sp, address) in [
            // 48 bits: a library; a program that is not position-independent.
            (0xffff_8c12_3450, 0xffff_e4a0_1000, 0xffff_8c55_6678),
            (0x40_1000, 0xffff_e4a0_1000, 0xaaaa_c000_1234),
            (0xaaaa_c000_1234, 0x20_0000_0000, 0xffff_8c55_6678),
            // 39 bits.
            (0x7f_8c12_3450, 0x7f_e4a0_1000, 0x7f_8c55_6678),
            (0x40_1000, 0x7f_e4a0_1000, 0x55_5555_6678),
        ] {
            let mask = mask_of(ip, sp);
            let width = if sp > 1 << 40 || ip > 1 << 40 { 48 } else { 39 };
            for signature in 0..0x80u64 {
                let spread = signature.wrapping_mul(0x0204_0810_2040_8101);
                let signed = address | spread >> width << width & 0x007f_ffff_ffff_ffff;
                assert_eq!(signed & mask, address, "{signed:#x}");
                // Without tags the top byte is a part of the signature.
                assert_eq!((signed | spread << 56) & mask, address);
            }
        }
    }

    #[test]
    fn a_tag_of_the_stack_pointer_does_not_widen_addresses() {
        let mask = mask_of(0x7f_8c12_3450, 0xb400_007f_e4a0_1000);
        assert_eq!(0x0012_347f_8c55_6678 & mask, 0x7f_8c55_6678);
    }
}
