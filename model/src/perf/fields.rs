//! Reads the fields of a record.

use std::fmt;

/// A problem of a record, and its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed {
    /// Bytes after the record's header.
    pub at: usize,
    /// The problem.
    pub reason: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} bytes behind its header: {}", self.at, self.reason)
    }
}

impl std::error::Error for Malformed {}

/// The remaining fields of a record's body, all little-endian.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    rest: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    /// Makes the fields of a whole body, which is everything after a record's header.
    #[must_use]
    pub const fn new(body: &'a [u8]) -> Self {
        Self { rest: body, at: 0 }
    }

    /// The offset of the next field after the record's header, in bytes.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.at
    }

    /// Returns true if no byte is left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Makes an error at the next field.
    #[must_use]
    pub const fn malformed(&self, reason: &'static str) -> Malformed {
        Malformed {
            at: self.at,
            reason,
        }
    }

    /// Reads the next eight bytes.
    ///
    /// # Errors
    ///
    /// The record ends before that.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Reads the next four bytes.
    ///
    /// # Errors
    ///
    /// The record ends before that.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Reads the next two fields of four bytes each.
    ///
    /// # Errors
    ///
    /// The record ends before that.
    #[inline]
    pub fn pair(&mut self) -> Result<(u32, u32), Malformed> {
        Ok((self.u32()?, self.u32()?))
    }

    /// Reads the next `N` bytes.
    ///
    /// # Errors
    ///
    /// The record ends before that.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or_else(|| self.short())?;
        self.rest = rest;
        self.at = self.at.saturating_add(N);
        Ok(*taken)
    }

    /// Reads the next `len` bytes.
    ///
    /// # Errors
    ///
    /// The record ends before that.
    #[inline]
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or_else(|| self.short())?;
        self.rest = rest;
        self.at = self.at.saturating_add(len);
        Ok(taken)
    }

    /// Reads the next `count` words of eight bytes.
    ///
    /// # Errors
    ///
    /// The record ends before that.
    #[inline]
    pub fn words(&mut self, count: u64) -> Result<&'a [[u8; 8]], Malformed> {
        let len = usize::try_from(count)
            .ok()
            .and_then(|count| count.checked_mul(8));
        let (words, _) = self.bytes(len.ok_or_else(|| self.short())?)?.as_chunks();
        Ok(words)
    }

    /// Reads the text before the next NUL.
    ///
    /// # Errors
    ///
    /// There is no NUL.
    pub fn text(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.rest.iter().position(|byte| *byte == 0);
        let len = len.ok_or_else(|| self.malformed("a string without its end"))?;
        self.bytes(len)
    }

    /// Splits off the last `len` bytes.
    ///
    /// # Errors
    ///
    /// There are fewer bytes.
    pub fn split_end(self, len: usize) -> Result<(Self, Self), Malformed> {
        let before = self
            .rest
            .len()
            .checked_sub(len)
            .ok_or_else(|| self.short())?;
        let mut end = self;
        let before = Self {
            rest: end.bytes(before)?,
            at: self.at,
        };
        Ok((before, end))
    }

    const fn short(&self) -> Malformed {
        self.malformed("the record ends too early")
    }
}
