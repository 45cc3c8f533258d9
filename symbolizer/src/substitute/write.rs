//! Writes a substitute to its file.

use std::path::Path;

use super::dwarf::Dwarf;
use super::places::Spare;
use super::sparse::Sparse;
use super::table::Substitute;
use super::{atomic, elf};
use crate::{Error, Result};

impl Substitute {
    /// Writes the file as a sparse one. An existing file of that name is replaced only when the new one is complete.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be written, [`Error::Substitute`] if it would not be a valid ELF file.
    pub fn write(&self, path: &Path) -> Result<()> {
        let dwarf = Dwarf::encode(self)?;
        atomic::write(path, |file| {
            let mut sparse = Sparse::new(file);
            elf::write(self, &dwarf, Spare::None, &mut sparse)?;
            sparse.finish().map_err(Error::io("write", path))
        })
    }

    /// The bytes of the file.
    ///
    /// # Errors
    /// [`Error::Substitute`] if it would not be a valid ELF file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        elf::write(self, &Dwarf::encode(self)?, Spare::None, &mut bytes)?;
        Ok(bytes)
    }
}
