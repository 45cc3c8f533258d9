//! Which instruction does a word that leads to code mean? Return addresses carry more than the address.
//!
//! On AArch64 a function may sign its return address: the signature (pointer authentication
//! code) stands in the bits that no user address needs, between the width of addresses
//! and bit 55, and above it where tags are not in use. On 32-bit ARM the lowest bit tells Thumb code from ARM's.

use varid_model::{Machine, Regs};

/// What of a word is a code address, in one sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CodeAddresses {
    mask: u64,
}

/// The narrowest user addresses that a kernel for AArch64 can be built with but for those of its
/// embedded configurations: Android's.
const NARROWEST: u32 = 39;

impl CodeAddresses {
    /// For a thread with these registers. A kernel puts stacks, libraries and position-independent
    /// programs into the upper half of the address space: the sampled stack pointer and
    /// instruction, neither of which is ever signed, tell how wide addresses are.
    pub(super) fn of(regs: &Regs) -> Self {
        let mask = match regs.machine() {
            Machine::X86_64 => u64::MAX,
            Machine::Aarch64 => {
                let known = regs.sp().unwrap_or(0) | regs.ip().unwrap_or(0);
                let width = u64::BITS
                    .saturating_sub(known.leading_zeros())
                    .max(NARROWEST);
                u64::MAX
                    .checked_shr(u64::BITS.saturating_sub(width))
                    .unwrap_or(u64::MAX)
            }
            Machine::X86 => 0xffff_ffff,
            Machine::Arm => 0xffff_fffe,
        };
        Self { mask }
    }

    /// The instruction that a word leads to.
    pub(super) fn address(self, word: u64) -> u64 {
        word & self.mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(machine: Machine, ip: u64, sp: u64) -> CodeAddresses {
        let mut regs = Regs::unknown(machine);
        regs.set_frame(ip, sp, 0);
        CodeAddresses::of(&regs)
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
            let code = of(Machine::Aarch64, ip, sp);
            let width = if sp > 1 << 40 || ip > 1 << 40 { 48 } else { 39 };
            for signature in 0..0x80u64 {
                let spread = signature.wrapping_mul(0x0204_0810_2040_8101);
                let signed = address | spread >> width << width & 0x007f_ffff_ffff_ffff;
                assert_eq!(code.address(signed), address, "{signed:#x}");
                // Without tags the top byte is a part of the signature.
                assert_eq!(code.address(signed | spread << 56), address);
            }
        }
    }

    #[test]
    fn a_tag_of_the_stack_pointer_does_not_widen_addresses() {
        let code = of(Machine::Aarch64, 0x7f_8c12_3450, 0xb400_007f_e4a0_1000);
        assert_eq!(code.address(0x0012_347f_8c55_6678), 0x7f_8c55_6678);
    }

    #[test]
    fn other_machines_sign_nothing() {
        let x86 = of(Machine::X86_64, 0x40_1000, 0x7fff_0000);
        assert_eq!(x86.address(0x7f12_3456_789b), 0x7f12_3456_789b);
        let arm = of(Machine::Arm, 0xb6f0_1000, 0xbeff_0000);
        assert_eq!(arm.address(0xb6f0_2341), 0xb6f0_2340);
        assert_eq!(arm.address(0xb6f0_2344), 0xb6f0_2344);
    }
}
