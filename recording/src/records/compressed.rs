//! The records of a compressed record.

use super::unpacked::Unpacked;
use crate::compression::{self, Expansion};

/// The records of the last compressed record.
#[derive(Debug, Default)]
pub struct CompressedRecords {
    pub unpacked: Unpacked,
    /// The bytes since the first record.
    expansion: Expansion,
}

impl CompressedRecords {
    /// Opens a compressed record at a file offset. The error is what is wrong with it.
    pub fn open(&mut self, at: u64, body: &[u8]) -> Result<(), &'static str> {
        let expansion = &mut self.expansion;
        self.unpacked.replace(at, |records| {
            compression::decompress(body, records)?;
            expansion.add(body, records)
        })
    }
}
