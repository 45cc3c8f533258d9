//! Which libjvm has a process loaded, and what does it describe?

use super::error::{JvmError, Result};
use super::jvm::Jvm;
use super::library::LoadedLibrary;
use object::ReadCache;
use std::path::Path;
use varid_model::Pid;
use varid_process::reader::ForeignMemory;
use varid_process::{ElfImage, Process, ProcessImage, ProcessMapping, own_tids};

/// The most attempts to read a VM that gives another error each time.
const ATTEMPTS: usize = 5;

/// Returns true if `path` names a library of HotSpot.
pub(super) fn is_library(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "libjvm.so")
}

/// Returns the first mapping of a libjvm, and its file.
pub(super) fn library_in(process: &Process) -> Option<(&ProcessMapping, &ElfImage)> {
    process.space.iter().find_map(|mapped| match &mapped.image {
        ProcessImage::Elf(image) if is_library(&image.path) => Some((mapped, &**image)),
        _ => None,
    })
}

/// Describes the VM of a process that has mapped this library.
pub(super) fn describe(
    process: &Process,
    mapped: &ProcessMapping,
    image: &ElfImage,
) -> Result<Jvm> {
    let unreadable = |why: &str| JvmError::Library(why.to_owned());
    let module = image.contents().map(|elf| elf.module.borrow());
    let size = mapped.end.wrapping_sub(mapped.start);
    let start = module.and_then(|module| module.address_of_mapping(mapped.pgoff, size));
    let start = start.ok_or_else(|| unreadable("it is not mapped as an ELF file is"))?;
    let bias = mapped.start.wrapping_sub(start.get());
    let file = image
        .file()
        .ok_or_else(|| unreadable("it is no file of its own"))?;
    let file = ReadCache::new(file);
    let elf = varid_symbolizer::parse_elf(&file).map_err(|error| unreadable(&error.to_string()))?;
    let library = LoadedLibrary::read(&elf, bias)?;
    read_until_consistent(&library, process.pid)
}

/// Reads the VM again where an error may be due to a change meanwhile, as while its library is being relocated.
fn read_until_consistent(library: &LoadedLibrary, pid: Pid) -> Result<Jvm> {
    let read = || Jvm::read(library, &ForeignMemory::new(pid), &|| own_tids(pid));
    let mut outcome = read();
    for _ in 1..ATTEMPTS {
        match &outcome {
            Ok(_) | Err(JvmError::NotStarted(_)) => break,
            Err(error) => match read() {
                Err(repeated) if repeated == *error => break,
                other => outcome = other,
            },
        }
    }
    outcome
}
