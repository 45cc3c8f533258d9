//! Reads numbers from untrusted bytes.

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

/// The byte at `offset`.
pub(super) fn u8_at(data: &[u8], offset: usize, field: &'static str) -> Result<u8> {
    array(data, offset, field).map(|[byte]| byte)
}

/// The little-endian 16-bit number at `offset`.
pub(super) fn u16_at(data: &[u8], offset: usize, field: &'static str) -> Result<u16> {
    array(data, offset, field).map(u16::from_le_bytes)
}

/// The little-endian 32-bit number at `offset`.
pub(super) fn u32_at(data: &[u8], offset: usize, field: &'static str) -> Result<u32> {
    array(data, offset, field).map(u32::from_le_bytes)
}

/// Reads the uleb128 number at `*offset` and advances the offset.
///
/// As in VMs, the high bits of the fifth byte are ignored. A sixth byte is an error.
pub(super) fn uleb128(data: &[u8], offset: &mut usize, field: &'static str) -> Result<u32> {
    let mut value = 0u32;
    for shift in [0u32, 7, 14, 21, 28] {
        let byte = u8_at(data, *offset, field)?;
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

/// Reads the uleb128p1 number at `*offset` and advances the offset. None stands for -1.
pub(super) fn uleb128p1(
    data: &[u8],
    offset: &mut usize,
    field: &'static str,
) -> Result<Option<u32>> {
    uleb128(data, offset, field).map(|value| value.checked_sub(1))
}

/// Reads the sleb128 number at `*offset` and advances the offset. The limits are those of [`uleb128`].
pub(super) fn sleb128(data: &[u8], offset: &mut usize, field: &'static str) -> Result<i32> {
    let start = *offset;
    let value = uleb128(data, offset, field)?;
    let bits = offset.saturating_sub(start).saturating_mul(7);
    // The highest bit that is present is the sign.
    let unused = 32usize.saturating_sub(bits);
    Ok((value << unused).cast_signed() >> unused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleb128_reads_as_the_format_says() {
        for (bytes, value) in [
            (&[0x00][..], 0),
            (&[0x01], 1),
            (&[0x7f], -1),
            (&[0x80, 0x7f], -128),
            (&[0xff, 0x00], 127),
            (&[0x80, 0x80, 0x80, 0x80, 0x78], i32::MIN),
            (&[0xff, 0xff, 0xff, 0xff, 0x07], i32::MAX),
        ] {
            let mut at = 0;
            assert_eq!(sleb128(bytes, &mut at, "x").unwrap(), value);
            assert_eq!(at, bytes.len());
        }
        assert_eq!(uleb128p1(&[0], &mut 0, "x").unwrap(), None);
        assert_eq!(uleb128p1(&[1], &mut 0, "x").unwrap(), Some(0));
    }

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
