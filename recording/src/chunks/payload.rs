//! The fields of a chunk's payload: numbers in LEB128, differences in zigzag encoding, texts with their length.

use varid_model::Tid;

/// The maximum size of a text in bytes. Longer ones are cut when they are written.
pub const MAX_TEXT: usize = 4 << 10;

/// Appends a number, seven bits per byte, the lowest first.
pub fn put_number(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends the difference between two numbers, modulo 2^64. Small differences in either direction are short.
pub fn put_difference(out: &mut Vec<u8>, from: u64, to: u64) {
    let difference = to.wrapping_sub(from).cast_signed();
    put_number(
        out,
        ((difference << 1) ^ (difference >> 63)).cast_unsigned(),
    );
}

/// Appends 1 plus a thread's id, or 0 for all threads.
pub fn put_thread(out: &mut Vec<u8>, tid: Option<Tid>) {
    let tid = tid.map(|tid| u64::from(tid.get()));
    put_number(out, tid.map_or(0, |tid| tid.saturating_add(1)));
}

/// Appends a text, cut to [`MAX_TEXT`] bytes.
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    let text = text.get(..end).unwrap_or_default();
    put_number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// A payload during reading. Its bytes are not trusted.
#[derive(Debug)]
pub struct Payload<'a> {
    bytes: &'a [u8],
    taken: usize,
}

impl<'a> Payload<'a> {
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, taken: 0 }
    }

    /// Returns the number of bytes that have been read.
    pub const fn taken(&self) -> usize {
        self.taken
    }

    pub const fn is_empty(&self) -> bool {
        self.taken >= self.bytes.len()
    }

    pub fn byte(&mut self) -> Result<u8, &'static str> {
        self.bytes(1)?.first().copied().ok_or(CUT)
    }

    /// Reads this number of bytes.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], &'static str> {
        let end = self.taken.checked_add(count).ok_or(CUT)?;
        let bytes = self.bytes.get(self.taken..end).ok_or(CUT)?;
        self.taken = end;
        Ok(bytes)
    }

    pub fn number(&mut self) -> Result<u64, &'static str> {
        let mut value = 0;
        for shift in (0..64u32).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has room for one bit.
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits.wrapping_shl(shift);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("a number above 64 bits")
    }

    pub fn small(&mut self) -> Result<u32, &'static str> {
        u32::try_from(self.number()?).map_err(|_| TOO_LARGE)
    }

    /// Reads a difference, and returns the number that differs from `from` by it.
    pub fn difference(&mut self, from: u64) -> Result<u64, &'static str> {
        let zigzag = self.number()?;
        let sign = (zigzag & 1).wrapping_neg();
        Ok(from.wrapping_add((zigzag >> 1) ^ sign))
    }

    pub fn small_difference(&mut self, from: u32) -> Result<u32, &'static str> {
        u32::try_from(self.difference(u64::from(from))?).map_err(|_| TOO_LARGE)
    }

    /// Reads a thread, or None for all threads.
    pub fn thread(&mut self) -> Result<Option<Tid>, &'static str> {
        let tid = self.number()?.checked_sub(1).map(u32::try_from);
        let tid = tid.transpose().map_err(|_| TOO_LARGE)?;
        Ok(tid.map(Tid::new))
    }

    pub fn text(&mut self) -> Result<&'a str, &'static str> {
        let length = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        if length > MAX_TEXT {
            return Err("a text of more than 4096 bytes");
        }
        str::from_utf8(self.bytes(length)?).map_err(|_| "a text that is not UTF-8")
    }
}

const CUT: &str = "a chunk that ends within one of its records";
const TOO_LARGE: &str = "a number above 32 bits";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};

    #[test]
    fn numbers_take_a_byte_for_seven_bits() {
        for (number, length) in [(0, 1), (0x7f, 1), (0x80, 2), (0x3fff, 2), (u64::MAX, 10)] {
            let mut bytes = Vec::new();
            put_number(&mut bytes, number);
            assert_eq!(bytes.len(), length);
            assert_eq!(Payload::new(&bytes).number(), Ok(number));
        }
        for (from, to, length) in [(5, 5, 1), (5, 68, 1), (68, 5, 1), (u64::MAX, 0, 1)] {
            let mut bytes = Vec::new();
            put_difference(&mut bytes, from, to);
            assert_eq!(bytes.len(), length);
            assert_eq!(Payload::new(&bytes).difference(from), Ok(to));
        }
    }

    #[test]
    fn a_number_that_is_too_large_is_an_error() {
        let number = |bytes: &[u8]| Payload::new(bytes).number();
        let mut bytes = [0xff; 10];
        assert_eq!(number(&bytes), Err("a number above 64 bits"));
        bytes[9] = 2;
        assert_eq!(number(&bytes), Err("a number above 64 bits"));
        bytes[9] = 1;
        assert_eq!(number(&bytes), Ok(u64::MAX));
        assert_eq!(Payload::new(&bytes).small(), Err(TOO_LARGE));
        assert_eq!(number(&bytes[..9]), Err(CUT));
        assert_eq!(number(&[0x80, 0x80, 0]), Ok(0));
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let mut bytes = Vec::new();
        put_text(&mut bytes, &format!("x{}", "ä".repeat(MAX_TEXT)));
        let text = Payload::new(&bytes).text().unwrap();
        assert_eq!(text.len(), MAX_TEXT - 1);
        assert!(text.ends_with('ä'));
        assert!(Payload::new(&[2, b'x']).text().is_err());
        assert!(Payload::new(&[1, 0xff]).text().is_err());
        assert!(Payload::new(&[0x81, 0x20, b'x']).text().is_err());
    }

    proptest! {
        #[test]
        fn numbers_and_differences_come_back(numbers in vec((any::<u64>(), 0..64u32), 1..50)) {
            let numbers: Vec<u64> = numbers.into_iter().map(|(number, shift)| number >> shift).collect();
            let mut bytes = Vec::new();
            let mut last = 0;
            for number in &numbers {
                put_number(&mut bytes, *number);
                put_difference(&mut bytes, last, *number);
                last = *number;
            }
            let mut payload = Payload::new(&bytes);
            last = 0;
            for number in &numbers {
                prop_assert_eq!(payload.number(), Ok(*number));
                last = payload.difference(last).unwrap();
                prop_assert_eq!(last, *number);
            }
            prop_assert!(payload.is_empty());
        }
    }
}
