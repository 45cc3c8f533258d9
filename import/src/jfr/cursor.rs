//! Reads numbers and texts of a recording.

use std::rc::Rc;

use crate::limits::{MAX_NAME, cut};

/// How a chunk has its integers, by a feature in its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Integers {
    /// As LEB128, with all eight bits of a ninth byte.
    Compressed,
    /// With all their bytes, the most significant one first.
    Fixed,
}

/// A text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Text {
    Own(Rc<str>),
    /// The number of a constant of `java.lang.String`.
    Constant(i64),
}

/// A position in the bytes of a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    integers: Integers,
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(bytes: &'a [u8], integers: Integers) -> Self {
        Self { bytes, integers }
    }

    pub(super) const fn remaining(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.bytes(1)?.first().copied()
    }

    /// Reads an integer whose fixed form has this many bytes.
    fn integer(&mut self, size: usize) -> Option<i64> {
        match self.integers {
            Integers::Compressed => self.compressed(),
            Integers::Fixed => {
                let bytes = self.bytes(size)?.iter();
                let value = bytes.fold(0u64, |value, byte| value << 8 | u64::from(*byte));
                Some(value.cast_signed())
            }
        }
    }

    fn compressed(&mut self) -> Option<i64> {
        let mut value = 0u64;
        for shift in (0..56).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(value.cast_signed());
            }
        }
        let last = u64::from(self.byte()?);
        Some((value | last << 56).cast_signed())
    }

    pub(super) fn long(&mut self) -> Option<i64> {
        self.integer(8)
    }

    /// Reads an `int`. A negative one has four bytes or, compressed, as many as it needs without its sign.
    pub(super) fn int(&mut self) -> Option<i32> {
        self.integer(4).map(|value| value as i32)
    }

    pub(super) fn short(&mut self) -> Option<i16> {
        self.integer(2).map(|value| value as i16)
    }

    /// Reads a number of things, each of which takes a byte at least.
    pub(super) fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.int()?).ok()?;
        (count <= self.remaining()).then_some(count)
    }

    /// Reads a text, by the encodings of `RecordingInput.java`. It is cut at the limit of a name.
    pub(super) fn text(&mut self) -> Option<Text> {
        let text = match self.byte()? {
            // Null, or empty.
            0 | 1 => String::new(),
            2 => return self.long().map(Text::Constant),
            3 => {
                let count = self.count()?;
                String::from_utf8_lossy(self.bytes(count)?).into_owned()
            }
            4 => {
                let count = self.count()?;
                let units = (0..count).map(|_| self.short().map(i16::cast_unsigned));
                let units = units.collect::<Option<Vec<u16>>>()?;
                String::from_utf16_lossy(&units)
            }
            5 => {
                let count = self.count()?;
                let latin = self.bytes(count)?.iter();
                latin.map(|byte| char::from(*byte)).collect()
            }
            _ => return None,
        };
        Some(Text::Own(cut(&text, MAX_NAME).into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_numbers_have_up_to_nine_bytes() {
        for (bytes, expected) in [
            (&[0x85, 0xb0, 0x03][..], Some(55_301)),
            (&[0], Some(0)),
            (&[0xff; 9], Some(-1)),
            (&[0xff, 0xff, 0xff, 0xff, 0x0f], Some(i64::from(u32::MAX))),
            (&[0x80, 0x80], None),
            (&[], None),
        ] {
            let mut cursor = Cursor::new(bytes, Integers::Compressed);
            assert_eq!(cursor.long(), expected, "{bytes:x?}");
        }
        let mut negative = Cursor::new(&[0xff, 0xff, 0xff, 0xff, 0x0f], Integers::Compressed);
        assert_eq!(negative.int(), Some(-1));
        let mut fixed = Cursor::new(&[0, 0, 1, 2, 0xff, 0xfe], Integers::Fixed);
        assert_eq!((fixed.int(), fixed.short()), (Some(0x102), Some(-2)));
        assert_eq!(fixed.long(), None);
    }

    #[test]
    fn texts_have_five_encodings() {
        let own = |text: &str| Some(Text::Own(text.into()));
        for (bytes, expected) in [
            (&b"\0"[..], own("")),
            (b"\x01", own("")),
            (b"\x02\x07", Some(Text::Constant(7))),
            (b"\x03\x03caf\xc3", own("caf")),
            (b"\x04\x02\xe9\x01b", own("\u{e9}b")),
            (b"\x05\x02\xe9b", own("\u{e9}b")),
            (b"\x03\x04caf", None),
            (b"\x04\xff\xff\xff\xff\x0f", None),
            (b"\x06", None),
        ] {
            let mut cursor = Cursor::new(bytes, Integers::Compressed);
            assert_eq!(cursor.text(), expected, "{bytes:x?}");
        }
    }
}
