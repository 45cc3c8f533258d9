//! What is mapped: libraries with their unwind information, dex files with their methods.

use super::file::{self, FileKey};
use super::jit;
use crate::unwind::Module;
use object::{Object, ReadCache, ReadRef};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use varid_recording::Layer;
use varid_symbolizer::dex::{DexFile, MethodIndex};
use varid_tunnel::builds::{self, Build};

/// An ELF file. What is in it is read when a sample first lands there.
#[derive(Debug)]
pub struct ElfImage {
    /// Where it was mapped from.
    pub path: PathBuf,
    file: Option<File>,
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
    fn new(file: File, path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            file: Some(file),
            memory: Vec::new(),
            contents: OnceCell::new(),
        }
    }

    /// An ELF file that is nowhere but in memory.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Self {
        let contents = OnceCell::from(parse_or_say(bytes, path));
        Self {
            path: path.to_owned(),
            file: None,
            memory: bytes.to_vec(),
            contents,
        }
    }

    /// What is in it; None: it cannot be read, which has been said.
    pub fn contents(&self) -> Option<&Elf> {
        let read = || parse_or_say(&ReadCache::new(self.file.as_ref()?), &self.path);
        self.contents.get_or_init(read).as_ref()
    }

    /// The file, unless it is nowhere but in memory.
    pub fn file(&self) -> Option<&File> {
        self.file.as_ref()
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

    /// Its name is that of a VM's library, whatever build of it this is.
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
        let file = object::File::parse(bytes).map_err(|error| error.to_string())?;
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
    /// Its substitute has been written in this session.
    pub written: Cell<bool>,
}

impl DexImage {
    /// Takes in a dex file's bytes.
    pub fn parse(bytes: Vec<u8>, path: &Path, file_offset: u64) -> varid_symbolizer::Result<Self> {
        let dex = DexFile::from_vec(bytes)?;
        Ok(Self {
            path: path.to_owned(),
            file_offset,
            layer: Cell::new(layer_of_path(path)),
            methods: MethodIndex::new(&dex)?,
            build_id: dex.content_sha1(),
            dex,
            written: Cell::new(false),
        })
    }
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

/// Every file that was read, once.
#[derive(Debug, Default)]
pub struct Images {
    by_file: HashMap<(FileKey, u64), Image>,
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
    /// Inode; 0: memory without a file.
    pub inode: u64,
    /// It may be executed.
    pub executable: bool,
    /// Path, or a name in brackets.
    pub path: &'a str,
}

impl Images {
    /// What a mapping shows; None: nothing that a sample can land in.
    pub fn get(&mut self, mapped: &MappedFile<'_>) -> Option<Image> {
        let other = || Image::Other(Path::new(mapped.path).into());
        if mapped.inode == 0 || !mapped.path.starts_with('/') {
            return mapped.executable.then(other);
        }
        let path = mapped.path.trim_end_matches(" (deleted)");
        let opened = file::open(mapped.pid, mapped.start, mapped.end, path, mapped.inode);
        let (file, key) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                tracing::debug!(pid = mapped.pid, path, %error, "cannot open a mapped file");
                return mapped.executable.then(other);
            }
        };
        let dex = file::is_dex(&file, mapped.pgoff);
        if !dex && !mapped.executable {
            return None;
        }
        if !dex && jit::is_own_memory(Path::new(path)) && !file::is_elf(&file) {
            return Some(other());
        }
        // All segments of a library are one image; a dex file is one by where it starts.
        let key = (key, if dex { mapped.pgoff } else { u64::MAX });
        if let Some(known) = self.by_file.get(&key) {
            return Some(known.clone());
        }
        let image = if dex {
            load_dex(&file, mapped.pgoff, Path::new(path)).unwrap_or_else(|reason| {
                tracing::warn!("{path}: {reason}; its methods stay without names");
                other()
            })
        } else {
            Image::Elf(Rc::new(ElfImage::new(file, Path::new(path))))
        };
        self.by_file.insert(key, image.clone());
        Some(image)
    }
}

fn load_dex(file: &File, offset: u64, path: &Path) -> Result<Image, String> {
    let bytes = file::read(file, offset).map_err(|error| error.to_string())?;
    DexImage::parse(bytes, path, offset)
        .map(|dex| Image::Dex(Rc::new(dex)))
        .map_err(|error| error.to_string())
}
