//! Reads numbers and extents of dex files from an untrusted file.

use crate::{Error, Result};
use object::ReadRef;

/// The bytes of a dex header that are needed for its extent.
const DEX_HEADER: u64 = 0x70;

/// A file that is being read, with its name for errors.
#[derive(Clone, Copy)]
pub(super) struct Input<'f, R> {
    pub(super) file: &'f str,
    pub(super) data: R,
}

impl<'d, R: ReadRef<'d>> Input<'_, R> {
    /// An error about `field` at `offset`.
    pub(super) fn bad(
        &self,
        field: &'static str,
        offset: u64,
        problem: impl Into<String>,
    ) -> Error {
        Error::Container {
            file: self.file.to_owned(),
            field,
            offset,
            problem: problem.into(),
        }
    }

    /// Size of the file in bytes.
    pub(super) fn len(&self) -> u64 {
        self.data.len().unwrap_or(0)
    }

    /// The `len` bytes at `offset`.
    pub(super) fn bytes(&self, field: &'static str, offset: u64, len: u64) -> Result<&'d [u8]> {
        // Check first: a reader of files would allocate whatever size the file claims.
        offset
            .checked_add(len)
            .filter(|end| *end <= self.len())
            .and_then(|_| self.data.read_bytes_at(offset, len).ok())
            .ok_or_else(|| self.bad(field, offset, "lies beyond the end of the file"))
    }

    /// The little-endian 32-bit number at `offset`.
    pub(super) fn u32(&self, field: &'static str, offset: u64) -> Result<u32> {
        let bytes = self.bytes(field, offset, 4)?;
        Ok(bytes
            .first_chunk()
            .map_or(0, |bytes| u32::from_le_bytes(*bytes)))
    }

    /// Reads a version: three decimal digits and a zero byte at `offset`.
    pub(super) fn version(&self, field: &'static str, offset: u64) -> Result<u32> {
        match self.bytes(field, offset, 4)? {
            [digits @ .., 0] if digits.iter().all(u8::is_ascii_digit) => {
                Ok(digits.iter().fold(0u32, |number, digit| {
                    number
                        .saturating_mul(10)
                        .saturating_add(u32::from(digit & 0xf))
                }))
            }
            _ => Err(self.bad(field, offset, "is not three digits and a zero")),
        }
    }

    /// The extent that the dex file at `offset` claims. It is an error if it reaches beyond `limit`.
    pub(super) fn dex(&self, offset: u64, limit: u64) -> Result<Extent> {
        let at = |field_offset: u64| offset.saturating_add(field_offset);
        let number = |name, field_offset| self.u32(name, at(field_offset)).map(u64::from);
        let header = self.bytes("dex header", offset, DEX_HEADER)?;
        let file_size = number("file_size", 0x20)?;
        let (name, field_offset, own, whole) = match header.first_chunk::<8>() {
            // A container of several dex files, of which this must be the first.
            Some([b'd', b'e', b'x', b'\n', b'0', b'4', b'1'..=b'9', 0]) => {
                if number("header_offset", 0x74)? != 0 {
                    return Err(self.bad(
                        "header_offset",
                        at(0x74),
                        "is not the first dex file of its container",
                    ));
                }
                let size = number("container_size", 0x70)?;
                ("container_size", 0x70, size, size)
            }
            Some([b'd', b'e', b'x', b'\n', _, _, _, 0]) => {
                ("file_size", 0x20, file_size, file_size)
            }
            // Its data may be elsewhere, shared with the other files of the same container.
            Some([b'c', b'd', b'e', b'x', _, _, _, 0]) => {
                let (size, data) = (number("data_size", 0x68)?, number("data_off", 0x6c)?);
                let reach = data.saturating_add(size).max(file_size);
                ("data_off", 0x6c, file_size, reach)
            }
            _ => return Err(self.bad("dex magic", offset, "there is no dex file here")),
        };
        if own < DEX_HEADER {
            return Err(self.bad(name, at(field_offset), "is smaller than a dex header"));
        }
        if at(whole) > limit.min(self.len()) {
            return Err(self.bad(
                name,
                at(field_offset),
                format!("reaches {whole:#x} bytes, beyond the end of what holds the dex file"),
            ));
        }
        Ok(Extent { own, whole })
    }
}

/// The size of a dex file.
pub(super) struct Extent {
    /// Bytes up to where the next dex file may begin.
    pub(super) own: u64,
    /// Bytes up to the end of its data.
    pub(super) whole: u64,
}
