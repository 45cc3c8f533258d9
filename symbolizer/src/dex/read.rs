//! Reading numbers from bytes that may lie.

use crate::{Error, Result};

/// An error about `field` at `offset`.
pub(super) fn bad(field: &'static str, offset: usize, problem: &'static str) -> Error {
    Error::Dex {
        field,
        offset: offset as u64,
        problem,
    }
}

fn array<const N: usize>(data: &[u8], offset: usize, field: &'static str) -> Result<[u8; N]> {
    data.get(offset..)
        .and_then(|rest| rest.first_chunk())
        .copied()
        .ok_or_else(|| bad(field, offset, "lies beyond the end of the file"))
}

/// The little-endian 16-bit number at `offset`.
pub(super) fn u16_at(data: &[u8], offset: usize, field: &'static str) -> Result<u16> {
    array(data, offset, field).map(u16::from_le_bytes)
}

/// The little-endian 32-bit number at `offset`.
pub(super) fn u32_at(data: &[u8], offset: usize, field: &'static str) -> Result<u32> {
    array(data, offset, field).map(u32::from_le_bytes)
}

/// The uleb128 number at `*offset`, which moves behind it.
///
/// As VMs do, the fifth byte's high bits are ignored; a sixth byte does not exist.
pub(super) fn uleb128(data: &[u8], offset: &mut usize, field: &'static str) -> Result<u32> {
    let mut value = 0u32;
    for shift in [0u32, 7, 14, 21, 28] {
        let [byte] = array(data, *offset, field)?;
        *offset = offset.saturating_add(1);
        value |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(bad(
        field,
        *offset,
        "a uleb128 number of more than five bytes",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uleb128_reads_as_the_format_says() {
        for (bytes, value) in [
            (&[0x00][..], 0),
            (&[0x7f], 0x7f),
            (&[0x80, 0x7f], 16256),
            (&[0xff, 0xff, 0xff, 0xff, 0x0f], u32::MAX),
        ] {
            let mut at = 0;
            assert_eq!(uleb128(bytes, &mut at, "x").unwrap(), value);
            assert_eq!(at, bytes.len());
        }
        assert!(uleb128(&[0x80; 9], &mut 0, "x").is_err());
        assert!(uleb128(&[0x80], &mut 0, "x").is_err());
        assert!(u32_at(&[0; 4], usize::MAX, "x").is_err());
    }
}
