//! The pages that are missing in a copy of a stack.

use crate::Address;

/// Size in bytes of the pages of a copy, which the sampler copies at once (`VARID_PAGE`).
const PAGE: u64 = 4096;

/// Pages of a copy of a stack that were not resident, most likely because they belong to a buffer that has not been written yet. The copy
/// has zeros there, which are not values of the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Holes(u16);

impl Holes {
    /// Bit `n` stands for page `n` of a copy. Page 0 contains the start of the copy.
    #[must_use]
    pub const fn of_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// Returns the bytes of a copy from an address up to the next hole. `start` is the address of the copy. None if the copy does not
    /// contain the address, or the address is in a hole.
    #[inline]
    #[must_use]
    pub fn bytes_from(self, start: Address, bytes: &[u8], address: Address) -> Option<&[u8]> {
        let from = usize::try_from(address.offset_from(start)?).ok()?;
        let bytes = bytes.get(from..)?;
        let there = self.before_next(start, address, bytes.len());
        let is_end = bytes.is_empty();
        bytes
            .get(..there)
            .filter(|there| is_end || !there.is_empty())
    }

    /// Returns how many of the `len` bytes at an address are present up to the next hole. `start` is the address of the copy.
    #[inline]
    #[must_use]
    fn before_next(self, start: Address, address: Address, len: usize) -> usize {
        if self.0 == 0 {
            return len;
        }
        let (first, page) = (start.get() / PAGE, address.get() / PAGE);
        let is_hole = |page: &u64| {
            let bit = page.checked_sub(first).and_then(|n| u32::try_from(n).ok());
            bit.and_then(|bit| 1u16.checked_shl(bit))
                .is_some_and(|bit| self.0 & bit != 0)
        };
        let last = first.saturating_add(u16::BITS.into());
        let Some(hole) = (page..last).find(is_hole) else {
            return len;
        };
        let there = hole.saturating_mul(PAGE).saturating_sub(address.get());
        usize::try_from(there).map_or(len, |there| there.min(len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_count_from_the_first_one_of_a_copy() {
        let holes = Holes::of_bits(0b1010);
        let before = |address| holes.before_next(Address::new(0x1ff0), Address::new(address), 64);
        let found = [
            0x1ff0, 0x1fc0, 0x2000, 0x2fff, 0x3000, 0x3ff8, 0x4000, 0x5000,
        ]
        .map(before);
        assert_eq!(found, [16, 64, 0, 0, 64, 8, 0, 64]);
        assert_eq!([0, 0x1_1000, u64::MAX].map(before), [64; 3]);
        assert_eq!(
            Holes::default().before_next(Address::new(0), Address::new(0), 8),
            8
        );
    }
}
