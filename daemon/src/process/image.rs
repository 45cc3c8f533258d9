//! What is mapped: libraries with their unwind information, dex files with their methods.

use super::budget::{Attention, Claim, OpenFile};
use super::file::{self, FileKey};
use super::space::{AddressSpace, Mapped};
use crate::unwind::Module;
use object::{Object, ReadCache, ReadRef};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use varid_model::{Layer, Mode};
use varid_recording::is_own_memory;
use varid_symbolizer::container::{self, Place, zip};
use varid_symbolizer::dex::{DexFile, MethodIndex};
use varid_tunnel::builds::{self, Build};
use varid_tunnel::maps::Device;

/// An ELF file. What is in it is read when a sample first lands there.
#[derive(Debug)]
pub struct ElfImage {
    /// Where it was mapped from; of one in an archive `base.apk!lib/x86_64/libx.so`.
    pub path: PathBuf,
    file: Option<(File, OpenFile)>,
    /// Where it lies in the file, if that is an archive.
    part: Option<Range<u64>>,
    /// Its bytes, if it is nowhere but in memory.
    memory: Vec<u8>,
    contents: OnceCell<Option<Elf>>,
}

/// What is of interest in an ELF file.
#[derive(Debug)]
pub struct Elf {
    /// Its build-id; empty if it has none.
    pub build_id: Vec<u8>,
    /// How to unwind its frames.
    pub module: RefCell<Module>,
    /// What is known of it, if it is a VM.
    pub build: Option<&'static Build>,
}

impl ElfImage {
    fn new(file: File, open: OpenFile, path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            file: Some((file, open)),
            part: None,
            memory: Vec::new(),
            contents: OnceCell::new(),
        }
    }

    /// An ELF file that lies in an archive as it is.
    fn in_archive(archive: File, open: OpenFile, path: &Path, place: &Place) -> Self {
        let mut path = path.as_os_str().to_owned();
        path.push("!");
        path.push(&place.name);
        Self {
            part: Some(place.offset..place.offset.saturating_add(place.len)),
            ..Self::new(archive, open, Path::new(&path))
        }
    }

    /// An ELF file that is nowhere but in memory.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Self {
        let contents = OnceCell::from(parse_or_say(bytes, path));
        Self {
            path: path.to_owned(),
            file: None,
            part: None,
            memory: bytes.to_vec(),
            contents,
        }
    }

    /// What is in it; None: it cannot be read, which has been said.
    pub fn contents(&self) -> Option<&Elf> {
        let read = || {
            let (file, _) = self.file.as_ref()?;
            let file = ReadCache::new(file);
            match &self.part {
                Some(part) => {
                    let len = part.end.saturating_sub(part.start);
                    parse_or_say(file.range(part.start, len), &self.path)
                }
                None => parse_or_say(&file, &self.path),
            }
        };
        self.contents.get_or_init(read).as_ref()
    }

    /// The file, unless it is an archive, or nowhere but in memory.
    pub fn file(&self) -> Option<&File> {
        let (file, _) = self.file.as_ref()?;
        self.part.is_none().then_some(file)
    }

    /// Its bytes, if it is nowhere but in memory; else empty.
    pub fn memory(&self) -> &[u8] {
        &self.memory
    }

    /// Its build-id; empty if it has none.
    pub fn build_id(&self) -> &[u8] {
        self.contents().map_or(&[], |elf| &elf.build_id)
    }

    /// Its unwind information says which bytecode its frames execute.
    pub fn names_dex_pcs(&self) -> bool {
        self.contents()
            .is_some_and(|elf| elf.module.borrow().names_dex_pcs())
    }

    /// It is HotSpot, the VM of Java on servers.
    pub fn is_hotspot(&self) -> bool {
        self.path
            .file_name()
            .is_some_and(|name| name == "libjvm.so")
    }

    /// Its name is that of a VM's library that has dex code, whatever build of it this is.
    pub fn is_vm_library(&self) -> bool {
        let name = self
            .path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        ["libart.so", "libartd.so"]
            .iter()
            .any(|vm| name.starts_with(vm))
    }
}

fn parse_or_say<'data, R: ReadRef<'data>>(bytes: R, path: &Path) -> Option<Elf> {
    let parse = || -> Result<Elf, String> {
        let file = varid_symbolizer::parse_elf(bytes).map_err(|error| error.to_string())?;
        let build_id = file.build_id().ok().flatten().unwrap_or_default().to_vec();
        let module = RefCell::new(Module::of(&file));
        Ok(Elf {
            module,
            build: builds::lookup(&build_id),
            build_id,
        })
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

/// A dex file.
#[derive(Debug)]
pub struct DexImage {
    /// Where it was mapped from, or the VM's name for it.
    pub path: PathBuf,
    /// App or framework.
    pub layer: Cell<Layer>,
    /// Where it starts in that file.
    pub file_offset: u64,
    /// The file.
    pub dex: DexFile<'static>,
    /// Its methods by the place of their code.
    pub methods: MethodIndex,
    /// SHA-1 of its content.
    pub build_id: [u8; 20],
    /// The last answers of [`DexImage::only_before`], by their questions' offsets: true as long as
    /// the bytes are.
    before: RefCell<Vec<Before>>,
    _memory: Claim,
}

impl DexImage {
    /// Takes in a dex file's bytes, for which memory has been claimed.
    pub fn parse(
        bytes: Vec<u8>,
        memory: Claim,
        path: &Path,
        file_offset: u64,
    ) -> varid_symbolizer::Result<Self> {
        let dex = DexFile::from_vec(bytes)?;
        Ok(Self {
            path: path.to_owned(),
            file_offset,
            layer: Cell::new(layer_of_path(path)),
            methods: MethodIndex::new(&dex)?,
            build_id: dex.content_sha1(),
            before: RefCell::default(),
            dex,
            _memory: memory,
        })
    }

    /// Where the only instruction of an opcode is that may lead to the one at `offset`; None:
    /// there is none, or more than one.
    pub fn only_before(&self, offset: u32, opcode: u8) -> Option<u32> {
        /// So many answers are kept: looking takes a walk through the method.
        const KEPT: usize = 1 << 10;
        let mut known = self.before.borrow_mut();
        if known.is_empty() {
            known.resize_with(KEPT, Before::default);
        }
        // An instruction's offset is even.
        let place = known.get_mut((offset / 2) as usize % KEPT)?;
        if place.question != Some((offset, opcode)) {
            place.question = Some((offset, opcode));
            place.answer = self.look_before(offset, opcode);
        }
        place.answer
    }

    fn look_before(&self, offset: u32, opcode: u8) -> Option<u32> {
        let method = self.methods.lookup(offset)?;
        let mut found = self
            .dex
            .disassemble(method)
            .filter_map(Result::ok)
            .filter(|instruction| instruction.code() == opcode && instruction.may_lead_to(offset))
            .map(|instruction| instruction.offset);
        found.next().filter(|_| found.next().is_none())
    }
}

/// Which instruction of an opcode led to one at an offset, and the answer.
#[derive(Debug, Default)]
struct Before {
    question: Option<(u32, u8)>,
    answer: Option<u32>,
}

/// The framework's dex files, by the places where systems keep them; `boot.dex` is what
/// the tests' VM calls its own.
fn layer_of_path(path: &Path) -> Layer {
    let system = ["/system/framework/", "/system_ext/framework/", "/apex/"];
    let named_boot = path.file_name().is_some_and(|name| name == "boot.dex");
    if named_boot || system.iter().any(|prefix| path.starts_with(prefix)) {
        Layer::Framework
    } else {
        Layer::App
    }
}

/// What a mapping shows.
#[derive(Debug, Clone)]
pub enum Image {
    /// Code of a library or program.
    Elf(Rc<ElfImage>),
    /// A dex file.
    Dex(Rc<DexImage>),
    /// Memory without a file, or a file that cannot be read: nothing is known of it.
    Other(Rc<Path>),
}

impl Image {
    /// How many bytes are kept of it, if it is a dex file.
    pub(super) fn dex_memory(&self) -> u64 {
        match self {
            Image::Dex(dex) => dex.dex.bytes().len() as u64,
            Image::Elf(_) | Image::Other(_) => 0,
        }
    }
}

/// Every file that was read, once.
#[derive(Debug, Default)]
pub struct Images {
    by_file: HashMap<(FileKey, u64), Image>,
    containers: HashMap<FileKey, Rc<[Place]>>,
    /// Where libraries lie in archives.
    libraries: HashMap<FileKey, Rc<[Place]>>,
}

/// A mapping as the process's memory map or the kernel's record describes it.
#[derive(Debug, Clone)]
pub struct MappedFile<'a> {
    /// The process.
    pub pid: u32,
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// Offset in the file.
    pub pgoff: u64,
    /// The file's device.
    pub device: Device,
    /// Inode; 0: memory without a file.
    pub inode: u64,
    /// What the process may do with it.
    pub mode: Mode,
    /// Path, or a name in brackets; it need not be text.
    pub path: &'a Path,
}

impl MappedFile<'_> {
    /// The mapping, all of which shows one image.
    pub(super) fn whole(&self, image: Image) -> Vec<Mapped> {
        // A dex file's own offsets count from where it starts.
        let pgoff = match &image {
            Image::Dex(_) => 0,
            _ => self.pgoff,
        };
        vec![Mapped {
            start: self.start,
            end: self.end,
            pgoff,
            image,
            mode: Some(self.mode),
            recorded: false,
        }]
    }

    /// The addresses at which the file's bytes from `offset` to `end` are mapped, and how far behind `offset` the first
    /// of them is.
    fn part(&self, offset: u64, end: u64) -> Option<(Range<u64>, u64)> {
        let size = self.end.checked_sub(self.start)?;
        let mapped = self.pgoff..self.pgoff.checked_add(size)?;
        let (first, last) = (offset.max(mapped.start), end.min(mapped.end));
        let address = |at: u64| self.start.checked_add(at.checked_sub(mapped.start)?);
        (first < last)
            .then(|| Some((address(first)?..address(last)?, first.checked_sub(offset)?)))
            .flatten()
    }

    /// A file of this name may be an oat file, which is an ELF file with dex files in it.
    fn may_be_oat(&self) -> bool {
        let extension = file::without_deleted(self.path).extension();
        extension
            .is_some_and(|extension| ["oat", "odex", "dex"].iter().any(|oat| extension == *oat))
    }
}

impl Images {
    /// What a mapping of a process with these addresses shows, part by part; nothing that a sample can land in: none.
    pub fn get(
        &mut self,
        mapped: &MappedFile<'_>,
        space: &AddressSpace,
        attention: &Attention,
    ) -> Vec<Mapped> {
        let other = || Image::Other(mapped.path.into());
        let if_executable = || match mapped.mode.execute {
            true => mapped.whole(other()),
            false => Vec::new(),
        };
        if mapped.inode == 0 || !mapped.path.is_absolute() || !attention.look(mapped.mode.execute) {
            return if_executable();
        }
        let path = file::without_deleted(mapped.path);
        let (file, key) = match file::open(mapped) {
            Ok(opened) => opened,
            Err(error) => {
                tracing::debug!(pid = mapped.pid, path = %path.display(), %error, "cannot open a mapped file");
                return if_executable();
            }
        };
        let is_elf = file::is_elf(&file);
        if !mapped.mode.execute && file::is_container(&file) && (!is_elf || mapped.may_be_oat()) {
            return self.dexes(mapped, &file, &key, path, space.dex_memory());
        }
        if file::is_dex(&file, mapped.pgoff) {
            let dex = self.dex(
                &file,
                &key,
                mapped.pgoff..u64::MAX,
                path,
                space.dex_memory(),
            );
            return mapped.whole(dex);
        }
        if !mapped.mode.execute {
            return Vec::new();
        }
        if is_own_memory(path) && !is_elf {
            return mapped.whole(other());
        }
        if !is_elf && file::is_container(&file) {
            let parts = self.libraries(mapped, &file, &key, attention);
            if !parts.is_empty() {
                return parts;
            }
        }
        // All segments of a library are one image.
        let whole = (key, u64::MAX);
        if let Some(known) = self.by_file.get(&whole) {
            return mapped.whole(known.clone());
        }
        let Some(open) = self.keep_open(attention) else {
            return if_executable();
        };
        let image = Image::Elf(Rc::new(ElfImage::new(file, open, path)));
        self.by_file.insert(whole, image.clone());
        mapped.whole(image)
    }

    /// Leave to keep a file open, if need be in the place of those that nobody has mapped any more.
    fn keep_open(&mut self, attention: &Attention) -> Option<OpenFile> {
        attention.keep_open().or_else(|| {
            let unused =
                |image: &Image| matches!(image, Image::Elf(elf) if Rc::strong_count(elf) == 1);
            self.by_file.retain(|_, image| !unused(image));
            let open = attention.keep_open();
            if open.is_none() {
                attention.leave_out();
            }
            open
        })
    }

    /// The dex files of an archive, a .vdex, an oat or an optimized dex file that are in a mapping.
    fn dexes(
        &mut self,
        mapped: &MappedFile<'_>,
        file: &File,
        key: &FileKey,
        path: &Path,
        mut taken: u64,
    ) -> Vec<Mapped> {
        let places = self
            .containers
            .entry(key.clone())
            .or_insert_with(|| {
                usable(container::places(
                    &path.to_string_lossy(),
                    &ReadCache::new(file),
                ))
            })
            .clone();
        let mut parts = Vec::new();
        for place in places.iter() {
            // Whose an address in shared data is cannot be said.
            let end = place.offset.saturating_add(place.own_len);
            let Some((addresses, pgoff)) = mapped.part(place.offset, end) else {
                continue;
            };
            let bytes = place.offset..place.offset.saturating_add(place.len);
            let image = self.dex(file, key, bytes, path, taken);
            taken = taken.saturating_add(image.dex_memory());
            parts.push(Mapped {
                start: addresses.start,
                end: addresses.end,
                pgoff,
                image,
                mode: Some(mapped.mode),
                recorded: false,
            });
        }
        parts
    }

    /// The libraries of an archive that are in a mapping: Android maps those that lie there as they are.
    fn libraries(
        &mut self,
        mapped: &MappedFile<'_>,
        file: &File,
        key: &FileKey,
        attention: &Attention,
    ) -> Vec<Mapped> {
        let path = file::without_deleted(mapped.path);
        let is_library = |name: &str| name.ends_with(".so");
        let read = || {
            usable(zip::entries(
                &path.to_string_lossy(),
                &ReadCache::new(file),
                is_library,
            ))
        };
        let places = self
            .libraries
            .entry(key.clone())
            .or_insert_with(read)
            .clone();
        let part = |place: &Place| {
            let end = place.offset.saturating_add(place.len);
            let (addresses, pgoff) = mapped.part(place.offset, end)?;
            let known = (key.clone(), place.offset);
            let image = match self.by_file.get(&known) {
                Some(image) => image.clone(),
                None => {
                    let open = self.keep_open(attention)?;
                    let archive = file.try_clone().ok()?;
                    let library = ElfImage::in_archive(archive, open, path, place);
                    let image = Image::Elf(Rc::new(library));
                    self.by_file.insert(known, image.clone());
                    image
                }
            };
            Some(Mapped {
                start: addresses.start,
                end: addresses.end,
                pgoff,
                image,
                mode: Some(mapped.mode),
                recorded: false,
            })
        };
        places.iter().filter_map(part).collect()
    }

    /// The dex file in these bytes of a file; one is read once. `taken`: bytes of the process's other ones.
    fn dex(
        &mut self,
        file: &File,
        key: &FileKey,
        bytes: Range<u64>,
        path: &Path,
        taken: u64,
    ) -> Image {
        let place = (key.clone(), bytes.start);
        if let Some(known) = self.by_file.get(&place) {
            return known.clone();
        }
        let other = |reason: String| {
            tracing::warn!(
                "{}, at {:#x}: {reason}; its methods stay without names",
                path.display(),
                bytes.start
            );
            Image::Other(path.into())
        };
        let len = file::len(file).min(bytes.end).saturating_sub(bytes.start);
        let memory = match self.claim(len, taken) {
            Ok(memory) => memory,
            // Another process may have the memory for it, and this one later.
            Err(reason) => return other(reason),
        };
        let image = load_dex(file, bytes.start, len, memory, path).unwrap_or_else(other);
        self.by_file.insert(place, image.clone());
        image
    }

    /// Memory for a dex file, if need be that of those which nobody has mapped any more.
    fn claim(&mut self, len: u64, taken: u64) -> Result<Claim, String> {
        Claim::new(len, taken).or_else(|_| {
            let unused =
                |image: &Image| matches!(image, Image::Dex(dex) if Rc::strong_count(dex) == 1);
            self.by_file.retain(|_, image| !unused(image));
            Claim::new(len, taken)
        })
    }
}

type Places = Vec<Result<Place, varid_symbolizer::Error>>;

/// Those parts of a file that lie there uncompressed.
fn usable(found: Result<Places, varid_symbolizer::Error>) -> Rc<[Place]> {
    let found = found.unwrap_or_else(|reason| {
        // Not every archive has any.
        tracing::debug!("{reason}");
        Vec::new()
    });
    let usable = |place: Result<Place, varid_symbolizer::Error>| {
        place
            .inspect_err(|reason| tracing::warn!("{reason}; what is in it stays without names"))
            .ok()
            .filter(|place| place.compression.is_none() && !place.is_archive)
    };
    found.into_iter().filter_map(usable).collect()
}

fn load_dex(
    file: &File,
    offset: u64,
    len: u64,
    memory: Claim,
    path: &Path,
) -> Result<Image, String> {
    let bytes = file::read(file, offset, len).map_err(|error| error.to_string())?;
    DexImage::parse(bytes, memory, path, offset)
        .map(|dex| Image::Dex(Rc::new(dex)))
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
