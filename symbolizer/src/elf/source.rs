//! Which functions, inlined ones among them, and which source lines are at an address of a library?

use std::fs::File;
use std::path::Path;
use std::sync::OnceLock;

use super::debug_files::{DebugFiles, has_debug};
use super::dwarf::DebugFile;
use super::image::Image;
use super::symbols::{ElfSymbols, Origin};
use crate::{Error, Frame, Result};

/// An ELF file with its debug information.
///
/// Holds what it has read: the file may change or go away afterwards. Debug information is
/// read at the first question that needs it, of a unit that is asked for.
#[derive(Debug)]
pub struct ElfSource {
    symbols: ElfSymbols,
    /// The file that has the debug information, and the one that it shares parts with.
    debug_images: Option<(Image<'static>, Option<Image<'static>>)>,
    debug: OnceLock<DebugFile>,
}

impl ElfSource {
    /// Opens a file, and the files with its debug information.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read, [`Error::Elf`] if it is not a usable ELF file.
    pub fn open(path: &Path, debug_files: &DebugFiles) -> Result<Self> {
        let file = File::open(path).map_err(Error::io("open", path))?;
        Self::from_file(file, &path.display().to_string(), debug_files)
    }

    /// As [`ElfSource::open`], for a file that is already open. `name` is its path, or what
    /// it is called.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read, [`Error::Elf`] if it is not a usable ELF file.
    pub fn from_file(file: File, name: &str, debug_files: &DebugFiles) -> Result<Self> {
        let symbols = ElfSymbols::from_file(&file, name)?;
        let image = Image::from_file(file, name)?;
        Ok(Self::new(symbols, image, debug_files))
    }

    /// As [`ElfSource::open`], for a file's bytes: those of the vdso, say.
    ///
    /// # Errors
    /// [`Error::Elf`] if it is not a usable ELF file.
    pub fn from_bytes(bytes: Vec<u8>, name: &str, debug_files: &DebugFiles) -> Result<Self> {
        let symbols = ElfSymbols::from_bytes(&bytes, name)?;
        let image = Image::from_bytes(bytes, name)?;
        Ok(Self::new(symbols, image, debug_files))
    }

    fn new(symbols: ElfSymbols, image: Image<'static>, debug_files: &DebugFiles) -> Self {
        let debug = match has_debug(&image) {
            true => Some(image),
            false => debug_files.of(&image),
        };
        Self {
            symbols,
            debug_images: debug.map(|debug| {
                let shared = debug_files.shared_by(&debug);
                (debug, shared)
            }),
            debug: OnceLock::new(),
        }
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
        self.debug.get_or_init(|| match &self.debug_images {
            Some((image, shared)) => DebugFile::read(image, shared.as_ref()),
            None => DebugFile::default(),
        })
    }
}
