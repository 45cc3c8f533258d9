//! Reads numbers from untrusted bytes.

use crate::error::{NotRewritten, Result, invalid};

/// A place in a dex file from which numbers are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'d> {
    data: &'d [u8],
    at: usize,
    /// What is read, for errors.
    field: &'static str,
}

impl<'d> Cursor<'d> {
    pub(crate) const fn new(data: &'d [u8], offset: u32, field: &'static str) -> Self {
        Self {
            data,
            at: offset as usize,
            field,
        }
    }

    /// Returns the file offset of what is read next.
    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    /// Makes an error about what is read next.
    pub(crate) const fn error(&self, problem: &'static str) -> NotRewritten {
        invalid(self.field, self.at, problem)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let rest = self.data.get(self.at..).unwrap_or_default();
        let array = rest
            .first_chunk()
            .ok_or_else(|| self.error("lies beyond the end of the file"))?;
        self.at = self.at.saturating_add(N);
        Ok(*array)
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'d [u8]> {
        let rest = self.data.get(self.at..).unwrap_or_default();
        let bytes = rest
            .get(..count)
            .ok_or_else(|| self.error("reaches beyond the end of the file"))?;
        self.at = self.at.saturating_add(count);
        Ok(bytes)
    }

    /// Reads a uleb128 number. As in VMs, the high bits of the fifth byte are ignored.
    pub(crate) fn uleb(&mut self) -> Result<u32> {
        let mut value = 0_u32;
        for shift in [0_u32, 7, 14, 21, 28] {
            let byte = self.u8()?;
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.error("a number of more than five bytes"))
    }

    /// Reads a uleb128p1 number. None stands for -1.
    pub(crate) fn uleb_p1(&mut self) -> Result<Option<u32>> {
        Ok(self.uleb()?.checked_sub(1))
    }

    /// Reads an sleb128 number.
    pub(crate) fn sleb(&mut self) -> Result<i32> {
        let start = self.at;
        let value = self.uleb()?;
        let bits = self.at.saturating_sub(start).saturating_mul(7);
        let unused = 32_usize.saturating_sub(bits);
        Ok((value << unused).cast_signed() >> unused)
    }
}
