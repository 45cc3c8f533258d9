//! The bits of a word that form a code address on 32-bit ARM. The lowest bit distinguishes Thumb code from ARM code.

use varid_model::Regs;

/// Returns the bits of a word that form a code address.
pub(super) fn mask(_: &Regs) -> u64 {
    0xffff_fffe
}

#[cfg(test)]
mod tests {
    use super::*;
    use varid_model::Machine;

    #[test]
    fn the_bit_that_tells_thumb_code_is_no_part_of_an_address() {
        let mut regs = Regs::unknown(Machine::Arm);
        regs.set_frame(0xb6f0_1000, 0xbeff_0000, 0);
        assert_eq!(0xb6f0_2341 & mask(&regs), 0xb6f0_2340);
        assert_eq!(0xb6f0_2344 & mask(&regs), 0xb6f0_2344);
    }
}
