//! Formats of bytecode files.

use std::fmt;
use varid_symbolizer::bytecode::BytecodeImage;
use varid_symbolizer::dex::{DexBytecode, DexFile};

/// A format of bytecode files.
pub trait BytecodeFormat: fmt::Debug + Sync {
    /// Returns true if a file with this beginning has the format.
    fn is_image(&self, head: &[u8; 8]) -> bool;

    /// Parses a file's bytes.
    ///
    /// # Errors
    ///
    /// Where and how they violate the format.
    fn parse(&self, bytes: Vec<u8>) -> varid_symbolizer::Result<Box<dyn BytecodeImage>>;
}

/// Dex files.
#[derive(Debug)]
pub(crate) struct Dex;

impl BytecodeFormat for Dex {
    fn is_image(&self, head: &[u8; 8]) -> bool {
        head.starts_with(b"dex\n") && head.ends_with(b"\0")
    }

    fn parse(&self, bytes: Vec<u8>) -> varid_symbolizer::Result<Box<dyn BytecodeImage>> {
        Ok(Box::new(DexBytecode::new(DexFile::from_vec(bytes)?)?))
    }
}

/// The formats that are recognised in addition to dex.
pub type Formats = Vec<&'static dyn BytecodeFormat>;
