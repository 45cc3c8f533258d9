//! Reads the words of a tree's file. The file may claim any size, so only parts that are asked for take memory.

use std::{
    fs::File,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use varid_instrument::node::WORD;

use crate::error::{Error, Result};

/// Bytes of a part of the file that is read at once.
const PART: u64 = 64 << 10;
/// The largest file. A VM has room for a tree of this size and more, but a reader does not.
const MAX_FILE: u64 = 64 << 30;

/// The words of a file.
#[derive(Debug)]
pub(crate) struct Words {
    path: PathBuf,
    file: File,
    length: u64,
    /// The parts that were read.
    parts: Vec<Option<Box<[u8]>>>,
}

impl Words {
    /// Opens a file.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(Error::io("open", path))?;
        let length = file.metadata().map_err(Error::io("read", path))?.len();
        let words = Self {
            path: path.to_owned(),
            file,
            length,
            parts: Vec::new(),
        };
        match length <= MAX_FILE {
            true => Ok(words),
            false => Err(words.error(0, "the file is too large")),
        }
    }

    /// Frees the memory of what was read.
    pub(crate) fn forget(&mut self) {
        self.parts = Vec::new();
    }

    /// Returns the file's length in bytes.
    pub(crate) const fn length(&self) -> u64 {
        self.length
    }

    /// Returns the word at an offset.
    pub(crate) fn at(&mut self, offset: u64) -> Result<u64> {
        if !offset.is_multiple_of(WORD) {
            return Err(self.error(offset, "a word is not aligned"));
        }
        // Both are constants above 0.
        let (number, within) = (offset / PART, offset % PART);
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let within = usize::try_from(within).unwrap_or(usize::MAX);
        if self.parts.get(number).is_none_or(Option::is_none) {
            self.read(number)?;
        }
        let part = self.parts.get(number).and_then(Option::as_ref);
        let word = part.and_then(|part| part.get(within..)?.first_chunk());
        match word {
            Some(word) => Ok(u64::from_le_bytes(*word)),
            None => Err(self.error(offset, "the file ends before this word")),
        }
    }

    /// Reads a part of the file.
    fn read(&mut self, number: usize) -> Result<()> {
        let start = (number as u64).saturating_mul(PART);
        let length = self.length.saturating_sub(start).min(PART);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        self.file
            .read_exact_at(&mut bytes, start)
            .map_err(Error::io("read", &self.path))?;
        if !bytes.is_empty() {
            if self.parts.len() <= number {
                self.parts.resize(number.saturating_add(1), None);
            }
            if let Some(part) = self.parts.get_mut(number) {
                *part = Some(bytes.into());
            }
        }
        Ok(())
    }

    /// Makes an error of a place in the file.
    pub(crate) fn error(&self, offset: u64, problem: &'static str) -> Error {
        Error::Tree {
            path: self.path.clone(),
            offset,
            problem,
        }
    }
}
