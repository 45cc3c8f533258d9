//! Writes the numbers of DWARF sections.

use super::machine::TargetMachine;
use crate::{Error, Result};

/// A section that is appended to: little-endian, in the 32-bit DWARF format.
#[derive(Debug, Default)]
pub(super) struct Bytes(pub(super) Vec<u8>);

/// The position of the length field of a part that is being written.
#[derive(Debug)]
#[must_use]
pub(super) struct Length(usize);

impl Bytes {
    pub(super) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(super) fn u16(&mut self, value: u16) {
        self.0.extend(value.to_le_bytes());
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    /// Appends an address or a size, as wide as the machine's addresses.
    pub(super) fn word(&mut self, machine: TargetMachine, value: u64) {
        let bytes = value.to_le_bytes();
        self.0.extend(bytes.iter().take(machine.address_size()));
    }

    pub(super) fn uleb(&mut self, mut value: u64) {
        while value > 0x7f {
            self.u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.u8(value as u8);
    }

    pub(super) fn sleb(&mut self, mut value: i64) {
        while !(-0x40..0x40).contains(&value) {
            self.u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.u8(value as u8 & 0x7f);
    }

    /// Appends a string, which must not contain NUL, and its terminator.
    pub(super) fn text(&mut self, text: &str) {
        self.0.extend(text.as_bytes());
        self.u8(0);
    }

    /// The offset of the next byte in a section that has `before` bytes before these.
    ///
    /// # Errors
    /// [`Error::Substitute`] beyond the limit of the 32-bit DWARF format.
    pub(super) fn offset(&self, before: usize) -> Result<u32> {
        small(self.0.len().saturating_add(before))
    }

    /// Begins a part that starts with its own length.
    pub(super) fn begin(&mut self) -> Length {
        let at = Length(self.0.len());
        self.u32(0);
        at
    }

    /// Ends the part and writes its length.
    pub(super) fn end(&mut self, length: Length) -> Result<()> {
        let from = length.0.saturating_add(4);
        let size = small(self.0.len().saturating_sub(from))?;
        if let Some(field) = self.0.get_mut(length.0..from) {
            field.copy_from_slice(&size.to_le_bytes());
        }
        Ok(())
    }
}

/// Converts an offset or a size, which must fit into 32 bits.
fn small(value: usize) -> Result<u32> {
    u32::try_from(value)
        .ok()
        // Higher values are escapes.
        .filter(|&value| value < 0xffff_fff0)
        .ok_or_else(|| Error::Substitute {
            problem: "more than 4 GB of debug information".to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gimli::{EndianSlice, LittleEndian, Reader};

    #[test]
    fn numbers_read_back() {
        let numbers = [0, 1, 63, 64, 127, 128, 0x3fff, 0x4000, u64::from(u32::MAX)];
        let mut bytes = Bytes::default();
        for number in numbers {
            bytes.uleb(number);
            bytes.sleb(number as i64);
            bytes.sleb(-(number as i64));
        }
        let mut reader = EndianSlice::new(&bytes.0, LittleEndian);
        for number in numbers {
            assert_eq!(reader.read_uleb128().unwrap(), number);
            assert_eq!(reader.read_sleb128().unwrap(), number as i64);
            assert_eq!(reader.read_sleb128().unwrap(), -(number as i64));
        }
        assert!(reader.is_empty());
    }

    #[test]
    fn a_part_starts_with_its_length() {
        let mut bytes = Bytes::default();
        bytes.u8(9);
        let part = bytes.begin();
        bytes.text("abc");
        bytes.end(part).unwrap();
        assert_eq!(bytes.0, b"\x09\x04\0\0\0abc\0");
    }
}
