//! Which functions, inlined ones among them, and which source lines are at an address of a library?

use std::fs::File;
use std::path::Path;
use std::sync::OnceLock;

use super::debug_files::{DebugFiles, has_debug};
use super::dwarf::DebugFile;
use super::image::Image;
use super::load;
use super::symbols::{ElfSymbols, Origin};
use crate::{Frame, Result};

/// An ELF file with its debug information.
///
/// Holds what it has read: the file may change or go away afterwards. Debug information is
/// read at the first question that needs it, of a unit that is asked for.
#[derive(Debug)]
pub struct ElfSource {
    symbols: ElfSymbols,
    /// The file that has the debug information: itself, or a separate one.
    image: Image<'static>,
    /// The file that it shares parts with.
    shared: Option<Image<'static>>,
    debug: OnceLock<DebugFile>,
    /// The file's path.
    name: String,
    debug_files: DebugFiles,
}

impl ElfSource {
    /// Opens a file, and the files with its debug information.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read, [`Error::Elf`] if it is not a usable ELF file.
    pub fn open(path: &Path, debug_files: &DebugFiles) -> Result<Self> {
        Self::new(Image::open(path)?, debug_files)
    }

    /// As [`ElfSource::open`], for a file that is already open. `name` is its path, or what
    /// it is called.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read, [`Error::Elf`] if it is not a usable ELF file.
    pub fn from_file(file: File, name: &str, debug_files: &DebugFiles) -> Result<Self> {
        Self::new(Image::from_file(file, name)?, debug_files)
    }

    /// As [`ElfSource::open`], for a file's bytes: those of the vdso, say.
    ///
    /// # Errors
    /// [`Error::Elf`] if it is not a usable ELF file.
    pub fn from_bytes(bytes: Vec<u8>, name: &str, debug_files: &DebugFiles) -> Result<Self> {
        Self::new(Image::from_bytes(bytes, name)?, debug_files)
    }

    fn new(image: Image<'static>, debug_files: &DebugFiles) -> Result<Self> {
        let separate = match has_debug(&image) {
            true => None,
            false => debug_files.of(&image),
        };
        let symbols = load::load(&image, separate.as_ref())?;
        let name = image.name.clone();
        let image = separate.unwrap_or(image);
        Ok(Self {
            symbols,
            shared: debug_files.shared_by(&image),
            image,
            debug: OnceLock::new(),
            name,
            debug_files: debug_files.clone(),
        })
    }

    /// The functions at `address`, innermost first; none if nothing is known of it.
    ///
    /// The outermost one is named by the symbol at the address if there is one, or else by
    /// its debug information, or else by its place, as [`ElfSymbols::lookup`] does.
    #[must_use]
    pub fn frames(&self, address: u64) -> Vec<Frame<'_>> {
        let mut frames = self.debug().frames(address);
        let symbol = self.symbols.lookup(address);
        match (frames.last_mut(), symbol) {
            (Some(outermost), Some(symbol)) => {
                if symbol.origin != Origin::Unnamed || outermost.function.is_empty() {
                    outermost.function = symbol.into_name();
                }
            }
            (None, Some(symbol)) => frames.push(Frame {
                function: symbol.into_name(),
                location: None,
            }),
            (_, None) => {}
        }
        frames
    }

    /// The functions at an offset of the file, as a mapping has it.
    #[must_use]
    pub fn frames_at_offset(&self, offset: u64) -> Vec<Frame<'_>> {
        self.symbols
            .vaddr(offset)
            .map(|address| self.frames(address))
            .unwrap_or_default()
    }

    /// The file's symbols.
    #[must_use]
    pub fn symbols(&self) -> &ElfSymbols {
        &self.symbols
    }

    fn debug(&self) -> &DebugFile {
        self.debug.get_or_init(|| {
            DebugFile::read(
                &self.name,
                &self.image,
                self.shared.as_ref(),
                &self.debug_files,
            )
        })
    }
}
