//! Which libjvm has a process loaded, and what does it describe?

use super::error::{JvmError, Result};
use super::jvm::Jvm;
use super::library::LoadedLibrary;
use super::memory::PagedMemory;
use super::tables::VmTables;
use object::ReadCache;
use std::cell::Cell;
use std::path::Path;
use std::rc::{Rc, Weak};
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
pub(super) fn library_in(process: &Process) -> Option<(&ProcessMapping, &Rc<ElfImage>)> {
    process.space.iter().find_map(|mapped| match &mapped.image {
        ProcessImage::Elf(image) if is_library(&image.path) => Some((mapped, image)),
        _ => None,
    })
}

/// Describes the VM of a process that has mapped this library.
pub(super) fn describe(
    process: &Process,
    mapped: &ProcessMapping,
    image: &Rc<ElfImage>,
) -> Result<Jvm> {
    let module = image.contents().map(|elf| elf.module.borrow());
    let size = mapped.end.wrapping_sub(mapped.start);
    let start = module.and_then(|module| module.address_of_mapping(mapped.pgoff, size));
    let start = start.ok_or_else(|| unreadable("it is not mapped as an ELF file is"))?;
    let bias = mapped.start.wrapping_sub(start.get());
    let starting = STARTING
        .take()
        .filter(|starting| starting.is_of(image, bias));
    let mut starting = match starting {
        Some(starting) => starting,
        None => StartingJvm::of(image, bias)?,
    };
    let outcome = starting.describe_consistently(process.pid);
    if matches!(outcome, Err(JvmError::NotStarted(_))) {
        STARTING.set(Some(starting));
    }
    outcome
}

fn unreadable(why: &str) -> JvmError {
    JvmError::Library(why.to_owned())
}

thread_local! {
    /// The VM that had not started when it was described last. It is described again and again until it has.
    static STARTING: Cell<Option<StartingJvm>> = const { Cell::new(None) };
}

/// What is known of a VM that is starting.
struct StartingJvm {
    image: Weak<ElfImage>,
    /// The difference between the addresses of the process and those of the file.
    bias: u64,
    library: LoadedLibrary,
    /// The tables, once they have been read while nothing but the start was missing.
    tables: Option<VmTables>,
}

impl StartingJvm {
    /// The VM of a loaded library.
    fn of(image: &Rc<ElfImage>, bias: u64) -> Result<Self> {
        let file = image
            .file()
            .ok_or_else(|| unreadable("it is no file of its own"))?;
        let file = ReadCache::new(file);
        let elf =
            varid_symbolizer::parse_elf(&file).map_err(|error| unreadable(&error.to_string()))?;
        Ok(Self {
            image: Rc::downgrade(image),
            bias,
            library: LoadedLibrary::read(&elf, bias)?,
            tables: None,
        })
    }

    /// Returns true if it is that of a library that is loaded at the same addresses: its tables are the same in each process.
    fn is_of(&self, image: &Rc<ElfImage>, bias: u64) -> bool {
        self.bias == bias && self.image.as_ptr() == Rc::as_ptr(image)
    }

    /// Reads the VM again where an error may be due to a change meanwhile, as while its library is being relocated.
    fn describe_consistently(&mut self, pid: Pid) -> Result<Jvm> {
        let mut outcome = self.describe(pid);
        for _ in 1..ATTEMPTS {
            match &outcome {
                Ok(_) | Err(JvmError::NotStarted(_)) => break,
                Err(error) => match self.describe(pid) {
                    Err(repeated) if repeated == *error => break,
                    other => outcome = other,
                },
            }
        }
        outcome
    }

    fn describe(&mut self, pid: Pid) -> Result<Jvm> {
        let memory = ForeignMemory::new(pid);
        let memory = PagedMemory::new(&memory);
        let tables = match self.tables.take() {
            Some(tables) => tables,
            None => VmTables::read(&self.library, &memory)?,
        };
        let found = Jvm::of_tables(&tables, self.library.machine, &memory, &|| own_tids(pid));
        if matches!(found, Err(JvmError::NotStarted(_))) {
            self.tables = Some(tables);
        }
        found
    }
}
