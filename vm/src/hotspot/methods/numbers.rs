//! Which numbers are in a compressed stream: debug information, a table of lines?

use crate::hotspot::unexported::Unsigned5;

/// The logarithm of the base of the digits: `UNSIGNED5::lg_H`.
const DIGIT_BITS: u32 = 6;
/// The most bytes of a number.
const MAX_BYTES: u32 = 5;

/// Reads numbers one after the other (utilities/unsigned5.hpp, code/compressedStream.hpp).
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers<'b> {
    rest: &'b [u8],
    encoding: Unsigned5,
}

impl<'b> Numbers<'b> {
    /// The numbers of these bytes.
    pub(super) const fn new(rest: &'b [u8], encoding: Unsigned5) -> Self {
        Self { rest, encoding }
    }

    /// Returns the next byte. None at the end.
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// Returns the next unsigned number. None if the bytes end, or are no number.
    pub(super) fn unsigned(&mut self) -> Option<u32> {
        // A byte below `end` is the last one of a number.
        let (excluded, end) = match self.encoding {
            Unsigned5::WithZero => (0, 192),
            Unsigned5::WithoutZero => (1, 192),
        };
        let mut sum: u32 = 0;
        for place in 0..MAX_BYTES {
            let byte = self.byte()?;
            let digit = byte.checked_sub(excluded)?;
            let shifted = u32::from(digit).wrapping_shl(place.wrapping_mul(DIGIT_BITS));
            sum = sum.wrapping_add(shifted);
            if byte < end {
                break;
            }
        }
        Some(sum)
    }

    /// Returns the next signed number, whose sign is its lowest bit.
    pub(super) fn signed(&mut self) -> Option<i32> {
        let number = self.unsigned()?;
        Some((number >> 1).cast_signed() ^ (number & 1).cast_signed().wrapping_neg())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Encodes a number, as HotSpot's writer does (`UNSIGNED5::write_uint`).
    pub(in crate::hotspot::methods) fn encode(number: u32, encoding: Unsigned5) -> Vec<u8> {
        let (excluded, low) = match encoding {
            Unsigned5::WithZero => (0, 192),
            Unsigned5::WithoutZero => (1, 191),
        };
        let mut sum = number;
        let mut bytes = Vec::new();
        while sum >= low && bytes.len() < 4 {
            sum -= low;
            bytes.push((excluded + low + (sum & 63)) as u8);
            sum >>= 6;
        }
        bytes.push((excluded + sum) as u8);
        bytes
    }

    const ENCODINGS: [Unsigned5; 2] = [Unsigned5::WithZero, Unsigned5::WithoutZero];

    #[test]
    fn numbers_are_those_that_were_written() {
        for encoding in ENCODINGS {
            for number in [
                0,
                1,
                190,
                191,
                192,
                193,
                12_479,
                12_480,
                1 << 20,
                u32::MAX / 2,
                u32::MAX - 1,
                u32::MAX,
            ] {
                let bytes = encode(number, encoding);
                let mut numbers = Numbers::new(&bytes, encoding);
                assert_eq!(numbers.unsigned(), Some(number), "{bytes:?}");
                assert_eq!(numbers.byte(), None);
            }
        }
    }

    #[test]
    fn known_bytes_are_known_numbers() {
        let read = |bytes: &[u8], encoding| Numbers::new(bytes, encoding).unsigned();
        assert_eq!(read(&[191], Unsigned5::WithZero), Some(191));
        assert_eq!(read(&[192, 0], Unsigned5::WithZero), Some(192));
        assert_eq!(read(&[255, 1], Unsigned5::WithZero), Some(255 + 64));
        assert_eq!(read(&[191], Unsigned5::WithoutZero), Some(190));
        assert_eq!(read(&[192, 1], Unsigned5::WithoutZero), Some(191));
        // A zero is no number there, and a number does not end with the bytes.
        assert_eq!(read(&[0], Unsigned5::WithoutZero), None);
        assert_eq!(read(&[200, 0], Unsigned5::WithoutZero), None);
        for encoding in ENCODINGS {
            assert_eq!(read(&[255, 255], encoding), None);
            // The fifth byte ends it.
            assert!(read(&[255; 5], encoding).is_some());
        }
    }

    #[test]
    fn the_lowest_bit_is_the_sign() {
        for (number, signed) in [(0, 0), (1, -1), (2, 1), (3, -2), (u32::MAX, i32::MIN)] {
            let bytes = encode(number, Unsigned5::WithZero);
            let mut numbers = Numbers::new(&bytes, Unsigned5::WithZero);
            assert_eq!(numbers.signed(), Some(signed));
        }
    }
}
