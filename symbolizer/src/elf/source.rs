//! Finds the functions at an address of a library, inlined ones included, and the source lines.

use std::borrow::Cow;
use std::fs::File;
use std::path::Path;
use std::sync::OnceLock;

use super::debug_files::{DebugFiles, has_debug};
use super::dwarf::{DebugFile, FrameDetail};
use super::name::Name;
use super::reader::ElfReader;
use super::symbols::{ElfSymbols, SymbolOrigin};
use super::{load, package};
use crate::{Frame, Result};

/// An ELF file with its debug information.
///
/// Keeps what it has read, and keeps files open that it may still read. Debug information is read on demand: the list of units at the first
/// lookup, and each unit's functions and lines at the first lookup of an address in it that has them. Results borrow from these tables, so that a lookup is two binary
/// searches.
#[derive(Debug)]
pub struct ElfSource {
    symbols: ElfSymbols,
    /// The names of the symbols, by index.
    names: Vec<OnceLock<Name>>,
    /// The file with the debug information: the file itself, or a separate one.
    image: ElfReader<'static>,
    /// The supplementary file that it shares parts with.
    shared: Option<ElfReader<'static>>,
    debug: OnceLock<DebugFile>,
    /// The file's path.
    path: String,
    debug_files: DebugFiles,
}

impl ElfSource {
    /// Opens a file, and the files with its debug information.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if it cannot be read,
    /// [`Error::Elf`](crate::Error::Elf) if it is not a usable ELF file.
    pub fn open(path: &Path, debug_files: &DebugFiles) -> Result<Self> {
        Self::new(ElfReader::open(path)?, debug_files)
    }

    /// Like [`ElfSource::open`], for a file whose byte at `offset` is mapped. If it is an archive (an APK), opens the library in it that
    /// contains the byte.
    ///
    /// # Errors
    /// As for [`ElfSource::open`], and if the archive has no library there.
    pub fn open_at(path: &Path, offset: u64, debug_files: &DebugFiles) -> Result<Self> {
        Self::new(package::open_at(path, offset)?, debug_files)
    }

    /// Like [`ElfSource::open`], for a library by its name in an archive (an APK). Offsets count from the start of the library. If the file
    /// is not an archive, opens the file itself.
    ///
    /// # Errors
    /// As for [`ElfSource::open`], and if the archive has no such uncompressed library.
    pub fn open_entry(path: &Path, entry: &str, debug_files: &DebugFiles) -> Result<Self> {
        Self::new(package::open_entry(path, entry)?, debug_files)
    }

    /// Like [`ElfSource::open`], for a file that is already open. `name` is its path, or a name for messages.
    ///
    /// # Errors
    /// As for [`ElfSource::open`].
    pub fn from_file(file: File, name: &str, debug_files: &DebugFiles) -> Result<Self> {
        Self::new(ElfReader::from_file(file, name)?, debug_files)
    }

    /// Like [`ElfSource::open`], for a file's bytes, for example those of the vdso.
    ///
    /// # Errors
    /// [`Error::Elf`](crate::Error::Elf) if it is not a usable ELF file.
    pub fn from_bytes(bytes: Vec<u8>, name: &str, debug_files: &DebugFiles) -> Result<Self> {
        Self::new(ElfReader::from_bytes(bytes, name)?, debug_files)
    }

    fn new(image: ElfReader<'static>, debug_files: &DebugFiles) -> Result<Self> {
        let separate = match has_debug(&image) {
            true => None,
            false => debug_files.of(&image),
        };
        let symbols = load::load(&image, separate.as_ref())?;
        let path = image.name.clone();
        let image = separate.unwrap_or(image);
        Ok(Self {
            names: vec![OnceLock::new(); symbols.symbol_count()],
            symbols,
            shared: debug_files.shared_by(&image),
            image,
            debug: OnceLock::new(),
            path,
            debug_files: debug_files.clone(),
        })
    }

    /// Returns the functions at `address`, innermost first. Empty if nothing is known about it.
    ///
    /// The name of the outermost function comes from the symbol at the address, or else from its debug information, or else from its
    /// address, as in [`ElfSymbols::lookup`].
    #[must_use]
    pub fn frames(&self, address: u64) -> Vec<Frame<'_>> {
        self.frames_in_detail(address, FrameDetail::Lines)
    }

    /// Returns the functions at `address` as [`frames`](Self::frames) does, without locations. No line program is read for them.
    #[must_use]
    pub fn functions(&self, address: u64) -> Vec<Frame<'_>> {
        self.frames_in_detail(address, FrameDetail::Functions)
    }

    fn frames_in_detail(&self, address: u64, detail: FrameDetail) -> Vec<Frame<'_>> {
        let mut frames = self.debug().frames(address, detail);
        let unnamed = frames.last().is_none_or(|frame| frame.function.is_empty());
        let name = self.symbol(address).or_else(|| {
            // A name made from the address is only used if debug information has none.
            let symbol = self.symbols.lookup(address).filter(|_| unnamed)?;
            (symbol.origin == SymbolOrigin::Unnamed).then_some(symbol.raw)
        });
        match (frames.last_mut(), name) {
            (Some(outermost), Some(name)) => outermost.function = name,
            (None, Some(function)) => frames.push(Frame {
                function,
                location: None,
            }),
            (_, None) => {}
        }
        // Broken debug information can have functions without name and location.
        frames.retain(|frame| !frame.function.is_empty() || frame.location.is_some());
        frames
    }

    /// Returns the functions at a file offset, such as that of a mapping. In an archive, it is an offset in the archive.
    #[must_use]
    pub fn frames_at_offset(&self, offset: u64) -> Vec<Frame<'_>> {
        self.symbols
            .vaddr(offset)
            .map(|address| self.frames(address))
            .unwrap_or_default()
    }

    /// Why debug information that the file has, and that was asked for, cannot be read as a whole.
    #[must_use]
    pub fn debug_problem(&self) -> Option<&str> {
        self.debug.get()?.problem()
    }

    /// The symbols of the file, including those of its separate debug file.
    #[must_use]
    pub fn symbols(&self) -> &ElfSymbols {
        &self.symbols
    }

    /// The path of the file. For a library in an archive, `!` and its name there follow.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The name of the symbol at `address`.
    fn symbol(&self, address: u64) -> Option<Cow<'_, str>> {
        let (number, raw) = self.symbols.numbered(address)?;
        let name = self.names.get(number as usize)?;
        Some(Cow::Borrowed(name.get_or_init(|| Name::new(&raw)).shown()))
    }

    fn debug(&self) -> &DebugFile {
        self.debug.get_or_init(|| {
            let shared = self.shared.as_ref();
            DebugFile::read(&self.path, &self.image, shared, &self.debug_files)
        })
    }
}
