//! Which functions, inlined ones among them, and which source lines are at an address of a library?

use std::borrow::Cow;
use std::fs::File;
use std::path::Path;
use std::sync::OnceLock;

use super::debug_files::{DebugFiles, has_debug};
use super::dwarf::DebugFile;
use super::name::Name;
use super::reader::ElfReader;
use super::symbols::{ElfSymbols, SymbolOrigin};
use super::{load, package};
use crate::{Frame, Result};

/// An ELF file with its debug information.
///
/// Holds what it has read and the files open that it may still read. Debug information is
/// read at the first question: which units there are, and each unit when an address in it
/// is first asked for. Answers borrow what is kept, so that they cost two searches.
#[derive(Debug)]
pub struct ElfSource {
    symbols: ElfSymbols,
    /// The symbols' names, by number.
    names: Vec<OnceLock<Name>>,
    /// The file that has the debug information: itself, or a separate one.
    image: ElfReader<'static>,
    /// The file that it shares parts with.
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

    /// As [`ElfSource::open`], for a file of which the byte at `offset` is mapped: where it is an
    /// archive (an APK), the library in it that has this byte.
    ///
    /// # Errors
    /// As [`ElfSource::open`], and if the archive has no library there.
    pub fn open_at(path: &Path, offset: u64, debug_files: &DebugFiles) -> Result<Self> {
        Self::new(package::open_at(path, offset)?, debug_files)
    }

    /// As [`ElfSource::open`], for a library by its name in an archive (an APK), whose offsets count from where it begins
    /// there; or the file itself, if it is no archive.
    ///
    /// # Errors
    /// As [`ElfSource::open`], and if the archive has no such library, uncompressed.
    pub fn open_entry(path: &Path, entry: &str, debug_files: &DebugFiles) -> Result<Self> {
        Self::new(package::open_entry(path, entry)?, debug_files)
    }

    /// As [`ElfSource::open`], for a file that is already open. `name` is its path, or what
    /// it is called.
    ///
    /// # Errors
    /// As [`ElfSource::open`].
    pub fn from_file(file: File, name: &str, debug_files: &DebugFiles) -> Result<Self> {
        Self::new(ElfReader::from_file(file, name)?, debug_files)
    }

    /// As [`ElfSource::open`], for a file's bytes: those of the vdso, say.
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

    /// The functions at `address`, innermost first; none if nothing is known of it.
    ///
    /// The outermost one is named by the symbol at the address if there is one, or else by
    /// its debug information, or else by its place, as [`ElfSymbols::lookup`] does.
    #[must_use]
    pub fn frames(&self, address: u64) -> Vec<Frame<'_>> {
        let mut frames = self.debug().frames(address);
        let unnamed = frames.last().is_none_or(|frame| frame.function.is_empty());
        let name = self.symbol(address).or_else(|| {
            // A name made of the address is used only where debug information has none.
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

    /// The functions at an offset of the file, as a mapping has it; in an archive that is
    /// the archive's.
    #[must_use]
    pub fn frames_at_offset(&self, offset: u64) -> Vec<Frame<'_>> {
        self.symbols
            .vaddr(offset)
            .map(|address| self.frames(address))
            .unwrap_or_default()
    }

    /// The file's symbols, those of its separate debug file among them.
    #[must_use]
    pub fn symbols(&self) -> &ElfSymbols {
        &self.symbols
    }

    /// The path of the file, of a library in an archive followed by `!` and its name there.
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
