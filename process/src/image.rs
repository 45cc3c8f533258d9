//! Mapped images: libraries with their unwind information, dex files with their methods.

use crate::budget::{Claim, OpenFile};
use crate::clock;
use crate::file::FileKey;
use crate::format::{BytecodeFormat, Dex};
use crate::reader::{self, FileMetadata, ForeignFile as File, PathTarget};
use object::{Object, ObjectSegment, ObjectSymbol, ReadCache, ReadRef};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};
use varid_model::{Address, Layer, Pid, is_own_memory};
use varid_symbolizer::bytecode::BytecodeImage;
use varid_symbolizer::container::ContainerEntry;
use varid_symbolizer::elf::{SymbolFile, SymbolFileLimits};
use varid_unwind::Module;

/// How often an unreadable file is tried again, and the time between two tries.
const MAX_TRIES: u8 = 8;
const RETRY: Duration = Duration::from_secs(1);

/// An ELF file. Its contents are read when it is first sampled.
#[derive(Debug)]
pub struct ElfImage {
    /// The path that it was mapped from. For a file in an archive: `base.apk!lib/x86_64/libx.so`.
    pub path: PathBuf,
    file: Option<(File, OpenFile)>,
    /// Its location in the file, if that is an archive.
    part: Option<ArchivePart>,
    /// Its bytes, if it is only in memory.
    memory: Vec<u8>,
    contents: OnceCell<Option<Elf>>,
    /// How often its file could not be read, and when the next try is due.
    tries: Cell<(u8, Option<Instant>)>,
}

/// The location of an ELF file in an archive.
#[derive(Debug)]
struct ArchivePart {
    archive: PathBuf,
    bytes: Range<u64>,
}

/// Bytes that are compared to tell whether two files have the same headers: the file's header and the program headers, where linkers place
/// them.
const HEAD: usize = 1 << 12;

/// A file that a path led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePlace {
    /// The path. For an ELF file in an archive, it is the archive's.
    path: PathBuf,
    file: FileKey,
}

impl FilePlace {
    /// Returns true if the path now leads this program to the file. This program may be in another mount namespace than the process that
    /// has mapped the file. The process's reader opens the path. `image`: the file, unless it has been closed.
    pub fn leads_to_file(&self, pid: Pid, image: Option<&ElfImage>) -> bool {
        if is_own_memory(&self.path) {
            return false;
        }
        let opened = reader::open(pid, &self.path, PathTarget::Regular, None);
        let Ok((file, meta)) = opened.and_then(|file| file.metadata().map(|meta| (file, meta)))
        else {
            return false;
        };
        let found = FileKey::of(&meta);
        // On an overlay, a file has another device than the underlying file, to which a mapping leads. But a process can also mount a file
        // system of its own, whose files have any inodes, sizes and times.
        found == self.file
            || found.same_but_for_device(&self.file)
                && image.is_none_or(|image| image.has_headers_of(&file))
    }
}

/// A loaded part of an ELF file.
#[derive(Debug)]
pub struct LoadedBytes {
    /// The file's address of the first byte.
    pub address: Address,
    /// The bytes.
    pub bytes: Rc<[u8]>,
    _memory: Claim,
}

/// The relevant contents of an ELF file.
#[derive(Debug)]
pub struct Elf {
    /// Its build-id, or empty if it has none.
    pub build_id: Vec<u8>,
    /// The unwind rules of its code.
    pub module: RefCell<Module>,
}

impl ElfImage {
    pub(super) fn new(file: File, open: OpenFile, path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            file: Some((file, open)),
            part: None,
            memory: Vec::new(),
            contents: OnceCell::new(),
            tries: Cell::default(),
        }
    }

    /// An ELF file that is stored uncompressed in an archive.
    pub(super) fn in_archive(
        archive: File,
        open: OpenFile,
        path: &Path,
        place: &ContainerEntry,
    ) -> Self {
        let mut name = path.as_os_str().to_owned();
        name.push("!");
        name.push(&place.name);
        Self {
            part: Some(ArchivePart {
                archive: path.to_owned(),
                bytes: place.offset..place.offset.saturating_add(place.len),
            }),
            ..Self::new(archive, open, Path::new(&name))
        }
    }

    /// An ELF file that is only in memory.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Self {
        let contents = OnceCell::from(parse_or_warn(bytes, path));
        Self {
            path: path.to_owned(),
            file: None,
            part: None,
            memory: bytes.to_vec(),
            contents,
            tries: Cell::default(),
        }
    }

    /// Returns its contents. None if it cannot be read, after a warning, or could not be read in time and will be tried again.
    pub fn contents(&self) -> Option<&Elf> {
        if let Some(known) = self.contents.get() {
            return known.as_ref();
        }
        let (tries, next) = self.tries.get();
        if next.is_some_and(|next| Instant::now() < next) {
            return None;
        }
        let found = self.read_contents();
        let has_failed = self
            .file
            .as_ref()
            .is_some_and(|(file, _)| file.take_failure());
        if has_failed && tries < MAX_TRIES {
            let next = clock::after(RETRY);
            self.tries.set((tries.saturating_add(1), Some(next)));
            return None;
        }
        self.contents.get_or_init(|| found).as_ref()
    }

    /// Returns false if its contents have not been asked for, or could not be read in time and will be tried again.
    pub fn is_read(&self) -> bool {
        self.contents.get().is_some()
    }

    fn read_contents(&self) -> Option<Elf> {
        let (file, _) = self.file.as_ref()?;
        let file = ReadCache::new(file);
        match &self.part {
            Some(ArchivePart { bytes, .. }) => {
                let len = bytes.end.saturating_sub(bytes.start);
                parse_or_warn(file.range(bytes.start, len), &self.path)
            }
            None => parse_or_warn(&file, &self.path),
        }
    }

    /// Returns the file, unless that is an archive, or the image is only in memory.
    pub fn file(&self) -> Option<&File> {
        let (file, _) = self.file.as_ref()?;
        self.part.is_none().then_some(file)
    }

    /// Returns the metadata of the file, or of the archive that contains it. None if it is only in memory.
    pub fn metadata(&self) -> Option<FileMetadata> {
        let (file, _) = self.file.as_ref()?;
        file.metadata().ok()
    }

    /// Returns its path and the current identity of its file: a file that was rewritten since it was mapped has another one. None if it is
    /// only in memory.
    pub fn place(&self) -> Option<FilePlace> {
        let meta = self.metadata()?;
        let archive = self.part.as_ref().map(|part| &part.archive);
        Some(FilePlace {
            path: archive.unwrap_or(&self.path).clone(),
            file: FileKey::of(&meta),
        })
    }

    /// Returns true if another file has the same headers and the same build-id.
    fn has_headers_of(&self, other: &File) -> bool {
        let start = self.part.as_ref().map_or(0, |part| part.bytes.start);
        let head = |file: &File| {
            let mut head = vec![0; HEAD];
            let read = file.read_at(&mut head, start).ok()?;
            head.truncate(read);
            Some(head)
        };
        let build_id = |file: &File| {
            let end = self.part.as_ref().map(|part| part.bytes.end);
            let end = end.unwrap_or_else(|| crate::file::len(file));
            let file = ReadCache::new(file);
            let elf = file.range(start, end.saturating_sub(start));
            let elf = varid_symbolizer::parse_elf(elf).ok()?;
            Some(elf.build_id().ok()?.unwrap_or_default().to_vec())
        };
        self.file.as_ref().is_some_and(|(file, _)| {
            let own = head(file);
            own.is_some() && own == head(other)
        }) && build_id(other).as_deref() == Some(self.build_id())
    }

    /// Reads what names its addresses.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is not an ELF file that is loaded as it is.
    pub fn symbol_file(
        &self,
        limits: SymbolFileLimits,
    ) -> varid_symbolizer::Result<SymbolFile<'static>> {
        let name = self.path.to_string_lossy();
        match &self.file {
            Some((file, _)) => {
                let whole = || 0..crate::file::len(file);
                let part = self.part.as_ref().map(|part| part.bytes.clone());
                SymbolFile::of_part(file.clone(), part.unwrap_or_else(whole), &name, limits)
            }
            None => SymbolFile::of_bytes(self.memory.clone(), &name, limits),
        }
    }

    /// Returns its bytes from one dynamic symbol to the end of another, as loaded. None if it does not have both, or there is not enough
    /// memory.
    pub fn between_symbols(&self, first: &str, last: &str) -> Option<LoadedBytes> {
        self.between_symbols_up_to(first, last, u64::MAX)
    }

    /// The same, with at most `at_most` bytes from the first symbol on.
    pub fn between_symbols_up_to(
        &self,
        first: &str,
        last: &str,
        at_most: u64,
    ) -> Option<LoadedBytes> {
        let file = ReadCache::new(self.file()?);
        let elf = varid_symbolizer::parse_elf(&file).ok()?;
        let symbol = |name: &str| {
            elf.dynamic_symbols()
                .find(|symbol| symbol.name() == Ok(name))
        };
        let (first, last) = (symbol(first)?, symbol(last)?);
        let address = first.address();
        let end = last.address().checked_add(last.size())?;
        let size = end.checked_sub(address)?.min(at_most);
        let end = address.checked_add(size)?;
        let memory = Claim::new(size, 0)
            .inspect_err(|reason| tracing::warn!("{}: {reason}", self.path.display()))
            .ok()?;
        let mut bytes = vec![0; usize::try_from(size).ok().filter(|size| *size > 0)?];
        for segment in elf.segments() {
            // A segment may be larger than the file, and than the part that is needed.
            let (offset, in_file) = segment.file_range();
            let loaded = segment.address()..segment.address().saturating_add(in_file);
            let start = loaded.start.max(address);
            let Some(wanted) = loaded.end.min(end).checked_sub(start) else {
                continue;
            };
            let offset = offset.checked_add(start.wrapping_sub(loaded.start))?;
            let read = (&file).read_bytes_at(offset, wanted).ok()?;
            let at = usize::try_from(start.wrapping_sub(address)).ok()?;
            let to = bytes.get_mut(at..).unwrap_or_default();
            for (to, from) in to.iter_mut().zip(read) {
                *to = *from;
            }
        }
        Some(LoadedBytes {
            address: Address::new(address),
            bytes: bytes.into(),
            _memory: memory,
        })
    }

    /// Returns its bytes if it is only in memory, otherwise nothing.
    pub fn memory(&self) -> &[u8] {
        &self.memory
    }

    /// Returns its build-id, or nothing if it has none.
    pub fn build_id(&self) -> &[u8] {
        self.contents().map_or(&[], |elf| &elf.build_id)
    }

    /// Returns true if it contains an interpreter whose unwind information marks the bytecode that a frame executes.
    pub fn has_bytecode_marks(&self) -> bool {
        self.contents()
            .is_some_and(|elf| elf.module.borrow().has_bytecode_marks())
    }
}

fn parse_or_warn<'data, R: ReadRef<'data>>(bytes: R, path: &Path) -> Option<Elf> {
    let parse = || -> Result<Elf, String> {
        let file = varid_symbolizer::parse_elf(bytes).map_err(|error| error.to_string())?;
        let build_id = file.build_id().ok().flatten().unwrap_or_default().to_vec();
        let module = RefCell::new(Module::new(&file));
        Ok(Elf { module, build_id })
    };
    parse()
        .inspect_err(|reason| {
            tracing::warn!(
                "{}: {reason}; its frames stay without names",
                path.display()
            )
        })
        .ok()
}

/// A bytecode file.
#[derive(Debug)]
pub struct CodeImage {
    /// The path that it was mapped from, or the VM's name for it.
    pub path: PathBuf,
    /// Its name in that file, if the file is a container. It may itself be a path.
    entry: Option<String>,
    /// App or framework.
    pub layer: Cell<Layer>,
    /// Its offset in that file.
    pub file_offset: u64,
    /// The file.
    pub bytecode: Box<dyn BytecodeImage>,
    /// [`BytecodeImage::content_id`].
    pub build_id: [u8; 20],
    /// The instructions of its methods, by method index.
    definitions: OnceCell<HashMap<u32, Range<u32>>>,
    /// The addresses of its copies of shared instructions. None if there are no addresses left.
    pub(super) copies: OnceCell<Option<Range<u64>>>,
    _memory: Claim,
}

impl CodeImage {
    /// Makes the image of a dex file, for a process that has no other.
    ///
    /// # Errors
    ///
    /// There is no memory for it, or it is not a dex file.
    pub fn of_dex(bytes: Vec<u8>, path: &Path) -> Result<Self, String> {
        let memory = Claim::new(bytes.len() as u64, 0)?;
        let bytecode = Dex.parse(bytes).map_err(|error| error.to_string())?;
        Ok(Self::new(bytecode, memory, path, 0))
    }

    /// Returns the path of its file, and in a container its name there: `/data/app/base.apk!classes2.dex`. An oat file names its dex
    /// files by the paths that they were compiled from. Such a path stands for itself.
    #[must_use]
    pub fn location(&self) -> PathBuf {
        let Some(entry) = &self.entry else {
            return self.path.clone();
        };
        let name = entry.rsplit('/').next().unwrap_or(entry);
        match Path::new(entry).is_absolute() {
            true => entry.into(),
            false => {
                let mut location = self.path.clone().into_os_string();
                location.push("!");
                location.push(name);
                location.into()
            }
        }
    }

    /// Sets its name in its file.
    pub(super) fn in_container(mut self, entry: Option<&str>) -> Self {
        self.entry = entry.map(str::to_owned);
        self
    }

    /// Returns the offsets of a method's instructions, by method index. None if it has none.
    pub fn code_of(&self, index: u32) -> Option<Range<u32>> {
        let table = || {
            let definitions = self.bytecode.definitions();
            definitions
                .map(|method| (method.index, method.code))
                .collect()
        };
        self.definitions.get_or_init(table).get(&index).cloned()
    }

    /// Makes the image of a file for whose bytes memory has been claimed.
    pub(super) fn new(
        bytecode: Box<dyn BytecodeImage>,
        memory: Claim,
        path: &Path,
        file_offset: u64,
    ) -> Self {
        Self {
            path: path.to_owned(),
            file_offset,
            entry: None,
            layer: Cell::new(layer_of_path(path)),
            build_id: bytecode.content_id(),
            definitions: OnceCell::new(),
            copies: OnceCell::new(),
            bytecode,
            _memory: memory,
        }
    }
}

/// Returns the layer of a dex file. The framework's files are recognised by their usual locations; `boot.dex` is the one of the tests' VM.
fn layer_of_path(path: &Path) -> Layer {
    let system = ["/system/framework/", "/system_ext/framework/", "/apex/"];
    let named_boot = path.file_name().is_some_and(|name| name == "boot.dex");
    if named_boot || system.iter().any(|prefix| path.starts_with(prefix)) {
        Layer::Framework
    } else {
        Layer::App
    }
}

/// The image that is mapped.
#[derive(Debug, Clone)]
pub enum ProcessImage {
    /// Code of a library or program.
    Elf(Rc<ElfImage>),
    /// A file of bytecode.
    Code(Rc<CodeImage>),
    /// Memory without a file, or a file that cannot be read: nothing is known about it.
    Other(Rc<Path>),
}

impl ProcessImage {
    /// Returns how many bytes of it are kept in memory, if it is a bytecode file.
    pub(super) fn code_memory(&self) -> u64 {
        match self {
            ProcessImage::Code(code) => code.bytecode.bytes().len() as u64,
            ProcessImage::Elf(_) | ProcessImage::Other(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::LookBudget;
    use std::process::Command;
    use varid_unwind::{CodeRule, UnwindInfo};

    /// A library with these symbols of its read-only and its executable memory.
    const SYMBOLS: &str = r#"
        .section .rodata
        .globl first, behind, empty
        .type first, @object
        .size first, 4
        first: .ascii "once"
        .type behind, @object
        .size behind, 4
        behind: .ascii "upon"
        .type empty, @object
        .size empty, 0
        empty:
        .text
        .globl last
        .type last, @function
        .size last, 4
        last: .ascii "time"
    "#;

    /// Its rules are not guessed, and those of a file that cannot be read at all may be.
    #[test]
    fn code_of_a_file_that_could_not_be_read_in_time_has_no_rules_yet() {
        let late = ElfImage::from_bytes(b"", Path::new("/test/late.so"));
        let never = ElfImage::from_bytes(b"", Path::new("/test/never.so"));
        let late = ElfImage {
            contents: OnceCell::new(),
            tries: Cell::new((1, Some(clock::after(RETRY)))),
            ..late
        };
        let mut space = crate::AddressSpace::default();
        for (start, image) in [(0x1000, late), (0x2000, never)] {
            let image = ProcessImage::Elf(Rc::new(image));
            space.insert(crate::testing::mapped(start, 0x1000, 0, image));
        }
        let mut code = crate::MappedCode::new(&space);
        let mut rule = |at| UnwindInfo::rule(&mut code, Address::new(at));
        assert!(matches!(rule(0x1800), CodeRule::NotRead));
        assert!(matches!(rule(0x2800), CodeRule::Unknown));
        assert!(matches!(rule(0x3800), CodeRule::NoCode));
    }

    /// An overlay shows the file that lies below under another device; a file system of a process can show any.
    #[test]
    fn under_another_device_a_file_is_known_by_its_headers() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("prog"), folder.path().join("other"));
        std::fs::copy(std::env::current_exe().unwrap(), &path).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        // The program's entry.
        bytes[24] ^= 1;
        std::fs::write(&other, bytes).unwrap();
        let pid = Pid::new(std::process::id());
        let file = |path: &Path| File::own(std::fs::File::open(path).unwrap());
        let open = LookBudget::default().reserve_open_file().unwrap();
        let image = ElfImage::new(file(&path), open, &path);
        let place_of = |path: &Path, device| {
            let mut key = FileKey::of(&file(path).metadata().unwrap());
            key.device = key.device.wrapping_add(device);
            let path = path.to_owned();
            FilePlace { path, file: key }
        };
        for (at, device, leads_to_file) in [(&path, 0, true), (&path, 1, true), (&other, 1, false)]
        {
            let place = place_of(at, device);
            assert_eq!(place.leads_to_file(pid, Some(&image)), leads_to_file);
        }
        assert!(!place_of(Path::new("/dev/null"), 0).leads_to_file(pid, Some(&image)));
    }

    #[test]
    fn bytes_between_symbols_are_those_that_are_loaded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("symbols.so");
        let source = dir.path().join("symbols.s");
        std::fs::write(&source, SYMBOLS).unwrap();
        let compiler = Command::new("cc")
            .args(["-shared", "-nostdlib", "-o"])
            .args([&path, &source])
            .status();
        assert!(compiler.unwrap().success());
        let open = LookBudget::default().reserve_open_file().unwrap();
        let file = File::own(std::fs::File::open(&path).unwrap());
        let elf = ElfImage::new(file, open, &path);
        let between = |first, last| {
            let found = elf.between_symbols(first, last);
            found.map(|found| found.bytes.to_vec())
        };
        assert_eq!(
            between("first", "behind").as_deref(),
            Some(&b"onceupon"[..])
        );
        // The code comes first in memory or last, as the linker likes; either way what lies between is there.
        let (ahead, back) = (between("first", "last"), between("last", "first"));
        let all = ahead.or(back).unwrap();
        let ends: Vec<&[u8]> = vec![&all[..4], &all[all.len() - 4..]];
        assert!(ends.contains(&&b"once"[..]) && ends.contains(&&b"time"[..]));
        assert_eq!(between("behind", "first"), None);
        assert_eq!(between("empty", "empty"), None);
        assert_eq!(between("first", "nowhere"), None);
    }

    #[test]
    fn a_dex_file_of_a_container_has_a_name_in_it() {
        let dex = crate::testing::dex().bytecode.bytes().to_vec();
        for (path, entry, location) in [
            ("/a/math.dex", None, "/a/math.dex"),
            (
                "/a/base.apk",
                Some("classes2.dex"),
                "/a/base.apk!classes2.dex",
            ),
            ("/a/base.apk", Some("assets/x/y.dex"), "/a/base.apk!y.dex"),
            (
                "/a/boot.oat",
                Some("/system/core.jar!classes2.dex"),
                "/system/core.jar!classes2.dex",
            ),
        ] {
            let code = CodeImage::of_dex(dex.clone(), Path::new(path)).unwrap();
            assert_eq!(code.in_container(entry).location(), Path::new(location));
        }
    }
}
