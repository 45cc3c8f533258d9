//! Which pages of a copy of a stack are missing?

use crate::Address;

/// Bytes of a page of a copy: what the sampler copies at once (`VARID_PAGE`).
const PAGE: u64 = 4096;

/// Pages of a copy of a stack that were not in memory: most likely parts of a buffer that nothing has been stored in yet. The copy has
/// zeros there, which are no values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Holes(u16);

impl Holes {
    /// Bit `n` is the page `n` of a copy, counted from the one that it begins in.
    #[must_use]
    pub const fn of_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// Whether the byte at an address is in one, of a copy that begins at `start`.
    #[inline]
    #[must_use]
    pub const fn have(self, start: Address, address: Address) -> bool {
        if self.0 == 0 {
            return false;
        }
        let Some(page) = (address.get() / PAGE).checked_sub(start.get() / PAGE) else {
            return false;
        };
        page < u16::BITS as u64 && self.0 & 1 << page != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_count_from_the_first_one_of_a_copy() {
        let holes = Holes::of_bits(0b1010);
        let have = |address| holes.have(Address::new(0x1ff0), Address::new(address));
        let found = [0x1ff0, 0x2000, 0x2fff, 0x3000, 0x4000, 0x1_1000, 0x1000, 0].map(have);
        assert_eq!(found, [false, true, true, false, true, false, false, false]);
        assert!(!Holes::default().have(Address::new(0), Address::new(0)));
    }
}
