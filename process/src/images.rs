//! Finds the images in mapped files. Each file is read once, however often it is mapped.

use crate::budget::{Claim, LookBudget, OpenFile};
use crate::file::{self, FileKey, KernelMapping};
use crate::format::{BytecodeFormat, Dex, Formats};
use crate::image::{CodeImage, ElfImage, ProcessImage};
use crate::mapping_id::MappingId;
use crate::reader::ForeignFile as File;
use crate::space::{AddressSpace, ProcessMapping};
use object::ReadCache;
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use varid_model::{Device, Pid, is_own_memory};
use varid_symbolizer::container::{self, ContainerEntry, zip};

/// The most memory files with generated code that are remembered.
const MAX_GENERATED: usize = 1 << 12;
/// How often memory that may contain generated code is opened without success.
const TRIES: u8 = 4;

/// The images of all files that have been read.
#[derive(Debug, Default)]
pub struct Images {
    by_file: HashMap<(FileKey, FilePart), ProcessImage>,
    containers: HashMap<FileKey, Rc<[ContainerEntry]>>,
    /// Formats of bytecode in addition to dex.
    formats: Formats,
    /// The locations of libraries in archives.
    libraries: HashMap<FileKey, Rc<[ContainerEntry]>>,
    /// Memory files of processes with code that is not an image, by device and inode, and how often each may still be opened. A JIT changes
    /// the protection of its memory whenever it compiles, which maps the memory again. The first mapping may be gone before it can be
    /// opened.
    generated: HashMap<(Device, u64), u8>,
    /// The file of the last mapping: those of a library follow one another.
    last: Option<MappedFile>,
}

/// The part of a file that an image is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum FilePart {
    Whole,
    /// The part that begins at this offset.
    From(u64),
}

/// A file that was opened for a mapping. While it is open, no other file has its device and inode.
#[derive(Debug)]
struct MappedFile {
    pid: Pid,
    device: Device,
    inode: u64,
    path: PathBuf,
    file: File,
    key: FileKey,
}

/// The file that bytecode is in, and its name there if the file is a container.
#[derive(Debug, Clone, Copy)]
struct Location<'a> {
    path: &'a Path,
    entry: Option<&'a str>,
}

impl MappedFile {
    fn is_of(&self, mapped: &KernelMapping<'_>) -> bool {
        let own = (self.pid, self.device, self.inode, &*self.path);
        own == (mapped.pid, mapped.device, mapped.inode, mapped.path)
    }
}

/// Returns an image for all of a mapping, if samples can be in it.
fn whole_if_executable(
    mapped: &KernelMapping<'_>,
    image: impl FnOnce() -> ProcessImage,
) -> Vec<ProcessMapping> {
    match mapped.mode.execute {
        true => vec![ProcessMapping::whole(mapped, image())],
        false => Vec::new(),
    }
}

impl Images {
    /// An empty set. `formats`: formats of bytecode in addition to dex.
    pub fn new(formats: Formats) -> Self {
        Self {
            formats,
            ..Self::default()
        }
    }

    /// Returns the images of a mapping, each with its range of addresses. Empty if no sample can be in the mapping.
    pub(crate) fn get(
        &mut self,
        mapped: &KernelMapping<'_>,
        space: &AddressSpace,
        budget: &LookBudget,
    ) -> Vec<ProcessMapping> {
        let other = || ProcessImage::Other(mapped.path.into());
        if mapped.inode == 0 || !mapped.path.is_absolute() {
            return whole_if_executable(mapped, other);
        }
        let path = file::without_deleted(mapped.path);
        let is_unnamed = is_own_memory(path);
        let generated = (mapped.device, mapped.inode);
        let is_generated = is_unnamed && self.generated.get(&generated) == Some(&0);
        if is_generated || !budget.look(mapped.mode.execute) {
            return whole_if_executable(mapped, other);
        }
        let Some((file, key)) = self.open_or_count(mapped) else {
            return whole_if_executable(mapped, other);
        };
        // The other mappings of a file belong to the same library and need not be examined.
        let known = self.by_file.get(&(key.clone(), FilePart::Whole));
        if let Some(known @ ProcessImage::Elf(_)) = known.filter(|_| !mapped.may_be_oat()) {
            return whole_if_executable(mapped, || known.clone());
        }
        let is_elf = file::is_elf(&file);
        if !mapped.mode.execute && file::is_container(&file) && (!is_elf || mapped.may_be_oat()) {
            return self.dexes(mapped, &file, &key, path, space.code_memory());
        }
        if let Some(format) = self.format_at(&file, mapped.pgoff) {
            let bytes = mapped.pgoff..u64::MAX;
            let location = Location { path, entry: None };
            let code = self.code(format, &file, &key, bytes, location, space.code_memory());
            return vec![ProcessMapping::whole(mapped, code)];
        }
        if !mapped.mode.execute {
            return Vec::new();
        }
        if is_own_memory(path) && !is_elf {
            self.set_generated(generated, 0);
            return vec![ProcessMapping::whole(mapped, other())];
        }
        if !is_elf && file::is_container(&file) {
            let parts = self.libraries(mapped, &file, &key, budget);
            if !parts.is_empty() {
                return parts;
            }
        }
        match self.whole(file, key, path, budget) {
            Some(image) => vec![ProcessMapping::whole(mapped, image)],
            None => whole_if_executable(mapped, other),
        }
    }

    /// Returns the ELF file behind a mapping, whatever its protection. None if it is not an ELF file, or cannot be opened.
    pub(crate) fn elf(
        &mut self,
        mapped: &KernelMapping<'_>,
        budget: &LookBudget,
    ) -> Option<Rc<ElfImage>> {
        let (file, key) = budget.look(true).then(|| self.open(mapped).ok())??;
        let is_elf = file::is_elf(&file);
        let path = file::without_deleted(mapped.path);
        match is_elf.then(|| self.whole(file, key, path, budget))?? {
            ProcessImage::Elf(elf) => Some(elf),
            ProcessImage::Code(_) | ProcessImage::Other(_) => None,
        }
    }

    /// Returns the image of a whole file: all segments of a library are one image. None if no more files may be open.
    fn whole(
        &mut self,
        file: File,
        key: FileKey,
        path: &Path,
        budget: &LookBudget,
    ) -> Option<ProcessImage> {
        let whole = (key, FilePart::Whole);
        if let Some(known) = self.by_file.get(&whole) {
            return Some(known.clone());
        }
        let open = self.reserve_open_file(budget)?;
        let image = ProcessImage::Elf(Rc::new(ElfImage::new(file, open, path)));
        self.by_file.insert(whole, image.clone());
        Some(image)
    }

    /// Opens the file behind a mapping. If that fails, memory that may contain generated code is opened once less.
    fn open_or_count(&mut self, mapped: &KernelMapping<'_>) -> Option<(File, FileKey)> {
        let error = match self.open(mapped) {
            Ok(opened) => return Some(opened),
            Err(error) => error,
        };
        let path = file::without_deleted(mapped.path);
        if is_own_memory(path) && mapped.mode.execute {
            let generated = (mapped.device, mapped.inode);
            let tries = self.generated.get(&generated).unwrap_or(&TRIES);
            self.set_generated(generated, tries.saturating_sub(1));
        }
        tracing::debug!(pid = %mapped.pid, path = %path.display(), %error, "cannot open a mapped file");
        None
    }

    /// Opens the file behind a mapping, unless the previous mapping was of the same file.
    fn open(&mut self, mapped: &KernelMapping<'_>) -> io::Result<(File, FileKey)> {
        if let Some(last) = self.last.as_ref().filter(|last| last.is_of(mapped)) {
            let key = FileKey::of(&last.file.metadata()?);
            let file = match key == last.key {
                true => last.file.clone(),
                // It has been written since.
                false => last.file.reread()?,
            };
            return Ok((file, key));
        }
        let (file, key) = file::open(mapped)?;
        // Keeping it open would keep the memory of a process that has ended.
        let keep = (!is_own_memory(file::without_deleted(mapped.path))).then(|| file.clone());
        self.last = keep.map(|file| MappedFile {
            pid: mapped.pid,
            device: mapped.device,
            inode: mapped.inode,
            path: mapped.path.to_owned(),
            file,
            key: key.clone(),
        });
        Ok((file, key))
    }

    /// Records that a memory file contains code, and how often it may still be opened.
    fn set_generated(&mut self, memory: (Device, u64), tries: u8) {
        if self.generated.len() >= MAX_GENERATED {
            self.generated.clear();
        }
        self.generated.insert(memory, tries);
    }

    /// Reserves a file descriptor, evicting images that no process maps.
    fn reserve_open_file(&mut self, budget: &LookBudget) -> Option<OpenFile> {
        budget.reserve_open_file().or_else(|| {
            let unused =
                |image: &ProcessImage| matches!(image, ProcessImage::Elf(elf) if Rc::strong_count(elf) == 1);
            self.by_file.retain(|_, image| !unused(image));
            let open = budget.reserve_open_file();
            if open.is_none() {
                budget.leave_out();
            }
            open
        })
    }

    /// Returns the dex files in a mapping of an archive, a .vdex, an oat file or an optimized dex file.
    fn dexes(
        &mut self,
        mapped: &KernelMapping<'_>,
        file: &File,
        key: &FileKey,
        path: &Path,
        mut taken: u64,
    ) -> Vec<ProcessMapping> {
        let places = self
            .containers
            .entry(key.clone())
            .or_insert_with(|| {
                usable(container::entries(
                    &path.to_string_lossy(),
                    &ReadCache::new(file),
                ))
            })
            .clone();
        let mut parts = Vec::new();
        for place in places.iter() {
            // An address in shared data cannot be assigned to one dex file.
            let end = place.offset.saturating_add(place.own_len);
            let Some((addresses, pgoff)) = mapped.part(place.offset, end) else {
                continue;
            };
            let bytes = place.offset..place.offset.saturating_add(place.len);
            let entry = Some(&*place.name);
            let location = Location { path, entry };
            let image = self.code(&Dex, file, key, bytes, location, taken);
            taken = taken.saturating_add(image.code_memory());
            parts.push(ProcessMapping {
                start: addresses.start,
                end: addresses.end,
                pgoff,
                image,
                mode: Some(mapped.mode),
                id: MappingId::default(),
            });
        }
        parts
    }

    /// Returns the libraries in a mapping of an archive: Android maps libraries that are stored uncompressed.
    fn libraries(
        &mut self,
        mapped: &KernelMapping<'_>,
        file: &File,
        key: &FileKey,
        budget: &LookBudget,
    ) -> Vec<ProcessMapping> {
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
        let part = |place: &ContainerEntry| {
            let end = place.offset.saturating_add(place.len);
            let (addresses, pgoff) = mapped.part(place.offset, end)?;
            let known = (key.clone(), FilePart::From(place.offset));
            let image = match self.by_file.get(&known) {
                Some(image) => image.clone(),
                None => {
                    let open = self.reserve_open_file(budget)?;
                    let archive = file.clone();
                    let library = ElfImage::in_archive(archive, open, path, place);
                    let image = ProcessImage::Elf(Rc::new(library));
                    self.by_file.insert(known, image.clone());
                    image
                }
            };
            Some(ProcessMapping {
                start: addresses.start,
                end: addresses.end,
                pgoff,
                image,
                mode: Some(mapped.mode),
                id: MappingId::default(),
            })
        };
        places.iter().filter_map(part).collect()
    }

    /// Returns the bytecode format of a file at an offset.
    fn format_at(&self, file: &File, offset: u64) -> Option<&'static dyn BytecodeFormat> {
        let head = file::head(file, offset)?;
        let dex: &'static dyn BytecodeFormat = &Dex;
        let mut formats = std::iter::once(dex).chain(self.formats.iter().copied());
        formats.find(|format| format.is_image(&head))
    }

    /// Returns the bytecode in a part of a file, which is read once. `taken`: bytes of the process's other bytecode.
    fn code(
        &mut self,
        format: &dyn BytecodeFormat,
        file: &File,
        key: &FileKey,
        bytes: Range<u64>,
        location: Location<'_>,
        taken: u64,
    ) -> ProcessImage {
        let place = (key.clone(), FilePart::From(bytes.start));
        if let Some(known) = self.by_file.get(&place) {
            return known.clone();
        }
        let other = |reason: String| {
            tracing::warn!(
                "{}, at {:#x}: {reason}; its methods stay without names",
                location.path.display(),
                bytes.start
            );
            ProcessImage::Other(location.path.into())
        };
        let len = file::len(file).min(bytes.end).saturating_sub(bytes.start);
        let memory = match self.claim(len, taken) {
            Ok(memory) => memory,
            // Not remembered: another process may have room for it, and this one later.
            Err(reason) => return other(reason),
        };
        let image = load(format, file, bytes.start, len, memory, location).unwrap_or_else(other);
        self.by_file.insert(place, image.clone());
        image
    }

    /// Claims memory for a bytecode file, if need be by dropping files that are no longer mapped.
    fn claim(&mut self, len: u64, taken: u64) -> Result<Claim, String> {
        Claim::new(len, taken).or_else(|_| {
            let unused =
                |image: &ProcessImage| matches!(image, ProcessImage::Code(code) if Rc::strong_count(code) == 1);
            self.by_file.retain(|_, image| !unused(image));
            Claim::new(len, taken)
        })
    }
}

type Places = Vec<Result<ContainerEntry, varid_symbolizer::Error>>;

/// Returns the parts of a file that are stored uncompressed.
fn usable(found: Result<Places, varid_symbolizer::Error>) -> Rc<[ContainerEntry]> {
    let found = found.unwrap_or_else(|reason| {
        // Many archives contain none.
        tracing::debug!("{reason}");
        Vec::new()
    });
    let usable = |place: Result<ContainerEntry, varid_symbolizer::Error>| {
        place
            .inspect_err(|reason| tracing::warn!("{reason}; what is in it stays without names"))
            .ok()
            .filter(|place| place.compression.is_none() && !place.is_archive)
    };
    found.into_iter().filter_map(usable).collect()
}

fn load(
    format: &dyn BytecodeFormat,
    file: &File,
    offset: u64,
    len: u64,
    memory: Claim,
    location: Location<'_>,
) -> Result<ProcessImage, String> {
    let bytes = file::read(file, offset, len).map_err(|error| error.to_string())?;
    let bytecode = format.parse(bytes).map_err(|error| error.to_string())?;
    let code = CodeImage::new(bytecode, memory, location.path, offset);
    let code = code.in_container(location.entry);
    Ok(ProcessImage::Code(Rc::new(code)))
}

#[cfg(test)]
mod tests;
