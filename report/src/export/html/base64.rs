//! How are bytes written as text that no name can break out of?

use std::io::{self, Write};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Writes what it gets as base64 of RFC 4648, in one line.
#[derive(Debug)]
pub struct Base64<W> {
    out: W,
    /// Bytes that are not written yet: fewer than three.
    rest: Vec<u8>,
}

impl<W: Write> Base64<W> {
    pub const fn new(out: W) -> Self {
        Self {
            out,
            rest: Vec::new(),
        }
    }

    /// Writes what is left.
    pub fn finish(mut self) -> io::Result<W> {
        if !self.rest.is_empty() {
            self.out.write_all(&digits(&self.rest))?;
        }
        Ok(self.out)
    }
}

impl<W: Write> Write for Base64<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend_from_slice(bytes);
        let len = self.rest.len();
        let whole = len.saturating_sub(len % 3);
        let text: Vec<u8> = self.rest.drain(..whole).collect();
        let text: Vec<u8> = text.chunks_exact(3).flat_map(digits).collect();
        self.out.write_all(&text)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Up to three bytes as four digits.
fn digits(bytes: &[u8]) -> [u8; 4] {
    let byte = |place: usize| u32::from(bytes.get(place).copied().unwrap_or_default());
    let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
    let digit = |place: usize, shift: u32| {
        let index = usize::try_from(bits >> shift & 63).unwrap_or_default();
        match ALPHABET.get(index) {
            Some(digit) if place <= bytes.len() => *digit,
            _ => b'=',
        }
    };
    [digit(0, 18), digit(1, 12), digit(2, 6), digit(3, 0)]
}

/// Bytes as base64.
pub fn base64(bytes: &[u8]) -> String {
    let digits = bytes.chunks(3).flat_map(digits);
    digits.map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::{Base64, base64};
    use std::io::Write;

    #[test]
    fn text_is_that_of_the_rfc_however_it_is_cut() {
        for (bytes, expected) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), expected);
            for size in 1..=4 {
                let mut writer = Base64::new(Vec::new());
                for chunk in bytes.as_bytes().chunks(size) {
                    writer.write_all(chunk).unwrap();
                }
                assert_eq!(writer.finish().unwrap(), expected.as_bytes());
            }
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xbf]), "+/+/");
    }
}
