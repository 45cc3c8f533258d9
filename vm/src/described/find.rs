//! Finds the description of a VM in a process, and describes a library.

use super::Description;
use super::kind::{DerivedLayout, DescribedKind};
use crate::seam::{Found, LayoutReport, LibraryReport, Vm, VmKind};
use object::Object;
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use varid_process::reader::{self, ForeignMemory};
use varid_process::{BytecodeFormat, ElfImage, Process, ProcessImage, ProcessMapping};
use varid_shim::STACK_FULL;
use varid_symbolizer::hex;
use varid_tunnel::abi::NAME;
use varid_tunnel::builds::Build;
use varid_tunnel::{Memory, TunnelError};
use varid_unwind::Module;

/// All described kinds as one [`VmKind`]: a process has one description, which belongs to one of them.
#[derive(Debug, Clone, Copy)]
pub struct Described(pub &'static [&'static dyn DescribedKind]);

impl Described {
    /// Returns the VM that `description` is of, if any of the kinds recognises it.
    pub fn recognise(self, description: &Description) -> Option<Rc<dyn Vm>> {
        let mut kinds = self.0.iter();
        kinds.find_map(|kind| kind.recognise(description))
    }

    /// Returns the kind of a library.
    fn of_library(self, path: &Path) -> Option<&'static dyn DescribedKind> {
        self.0.iter().copied().find(|kind| kind.is_library(path))
    }
}

impl VmKind for Described {
    fn is_library(&self, path: &Path) -> bool {
        self.of_library(path).is_some()
    }

    fn is_announced_by(&self, path: &Path) -> bool {
        let memfd = path.as_os_str().as_encoded_bytes().strip_prefix(b"/memfd:");
        memfd.is_some_and(|name| name.starts_with(NAME.as_bytes())) || self.is_library(path)
    }

    fn find(&self, process: &Process) -> Found {
        find(process, *self)
    }

    fn examine(&self, path: &Path, library: &[u8]) -> Option<LibraryReport> {
        Some(examine(self.of_library(path)?, library))
    }

    fn bytecode(&self) -> Vec<&'static dyn BytecodeFormat> {
        self.0.iter().filter_map(|kind| kind.bytecode()).collect()
    }
}

/// Looks for a tunnel, then for a library of a known build, then for a library from which a layout can be derived.
fn find(process: &Process, kinds: Described) -> Found {
    let mut search = Search {
        process,
        kinds,
        memory: ForeignMemory::new(process.pid),
        problem: None,
        waits: false,
    };
    if let Some(found) = search.tunnels() {
        return found;
    }
    for mapped in process.space.iter() {
        let ProcessImage::Elf(image) = &mapped.image else {
            continue;
        };
        let Some(library) = Library::new(kinds, mapped, image) else {
            search.waits |= kinds.is_library(&image.path) && !image.is_read();
            continue;
        };
        let found = match library.kind.build(library.build_id) {
            Some(build) => search.known_build(build, library.load_base),
            None => search.unknown_build(&library),
        };
        if let Some(found) = found {
            return found;
        }
    }
    match search.waits {
        true => search.not_yet(),
        false => search.problem.map_or(Found::No, Found::Refused),
    }
}

/// The library of a VM that a process has mapped.
struct Library<'p> {
    kind: &'static dyn DescribedKind,
    image: &'p ElfImage,
    build_id: &'p [u8],
    /// The unwind rules of its code.
    module: &'p RefCell<Module>,
    load_base: u64,
}

impl<'p> Library<'p> {
    /// The library in a mapping of `image`, if it is one and can be read.
    fn new(kinds: Described, mapped: &ProcessMapping, image: &'p ElfImage) -> Option<Self> {
        let kind = kinds.of_library(&image.path)?;
        let elf = image.contents()?;
        let len = mapped.end.wrapping_sub(mapped.start);
        let mapped_at = elf.module.borrow().address_of_mapping(mapped.pgoff, len)?;
        Some(Self {
            kind,
            image,
            build_id: &elf.build_id,
            module: &elf.module,
            load_base: mapped.start.wrapping_sub(mapped_at.get()),
        })
    }

    /// Derives the layout of this build, which is not a known one.
    fn derive_layout(&self, process: &Process) -> DerivedLayout {
        match self.image.file() {
            Some(file) => self.kind.derive_layout(file, process, self.load_base),
            None => DerivedLayout::Refused("it is no file of its own".to_owned()),
        }
    }

    /// Says that this build is not known, and why its layout is not found.
    fn refusal(&self, why: &str) -> String {
        format!(
            "{} has build-id {}, which is not in the table of known builds, there is no tunnel, and its layout is not found in it: {why}; {}",
            self.image.path.display(),
            hex(self.build_id),
            without_layout(self.module.borrow().has_bytecode_marks())
        )
    }
}

/// The search for the VM of a process.
struct Search<'p> {
    process: &'p Process,
    kinds: Described,
    memory: ForeignMemory,
    /// Why a VM that was found cannot be used.
    problem: Option<String>,
    /// A library could not be read in time, and will be tried again.
    waits: bool,
}

impl Search<'_> {
    /// Looks for a tunnel that describes the VM.
    fn tunnels(&mut self) -> Option<Found> {
        let Process { pid, space, .. } = self.process;
        for (start, len) in self.process.tunnels() {
            let problem = match Description::read(*pid, *start, *len, None) {
                Ok(description) => match self.kinds.recognise(&description.with_states(space)) {
                    Some(vm) => return Some(Found::Vm(vm)),
                    None => format!(
                        "its tunnel at {start:#x} describes a VM of no kind that is known here"
                    ),
                },
                // Being written: it is looked at again.
                Err(TunnelError::Changing { .. }) => return Some(Found::NotYet),
                Err(_) if is_blank(&self.memory, *start) => return Some(Found::NotYet),
                // From a process that has ended there is nothing more to read or to report.
                Err(_) if !reader::has_memory(*pid) => return Some(Found::NotYet),
                Err(error) => format!("its tunnel at {start:#x} is not usable: {error}"),
            };
            self.problem = Some(problem);
        }
        None
    }

    /// The result for a library whose VM has not started yet.
    fn not_yet(&mut self) -> Found {
        self.problem.take().map_or(Found::NotYet, Found::Refused)
    }

    /// Looks for the VM of a known build.
    fn known_build(&mut self, build: &'static Build, load_base: u64) -> Option<Found> {
        let word = |address| {
            let mut word = [0; 8];
            let read = self.memory.read(address, &mut word);
            read.ok().map(|()| u64::from_le_bytes(word))
        };
        match build.layout(load_base, word) {
            Ok(layout) => {
                let description = Description::of_build(&self.memory, build, layout, load_base);
                let description = description.with_states(&self.process.space);
                self.kinds.recognise(&description).map(Found::Vm)
            }
            // Not yet relocated: the process is still being loaded.
            Err(error) => {
                let pid = self.process.pid;
                tracing::debug!(%pid, %error, "the VM's library is not ready");
                Some(self.not_yet())
            }
        }
    }

    /// Looks for the VM of an unknown build, whose layout is derived from its library.
    fn unknown_build(&mut self, library: &Library<'_>) -> Option<Found> {
        let pid = self.process.pid;
        match library.derive_layout(self.process) {
            DerivedLayout::Agrees(description) => {
                let description = description.with_states(&self.process.space);
                if let Some(vm) = self.kinds.recognise(&description) {
                    return Some(Found::Vm(vm));
                }
                let why = "it is of no kind that is known here";
                self.problem.get_or_insert_with(|| library.refusal(why));
                None
            }
            DerivedLayout::NotUp(why) => {
                tracing::debug!(%pid, why, "the VM's layout cannot be checked yet");
                Some(self.not_yet())
            }
            DerivedLayout::Differs(check) => {
                tracing::debug!(%pid, %check, "the VM's layout is not confirmed");
                let why = format!("the process is different from it in {check}");
                let problem = self.problem.take();
                Some(Found::Unclear(
                    problem.unwrap_or_else(|| library.refusal(&why)),
                ))
            }
            DerivedLayout::Refused(why) => {
                self.problem.get_or_insert_with(|| library.refusal(&why));
                None
            }
        }
    }
}

/// Describes a library without a process.
fn examine(kind: &dyn DescribedKind, library: &[u8]) -> LibraryReport {
    let file = varid_symbolizer::parse_elf(library).ok();
    let build_id = file.as_ref().and_then(|file| file.build_id().ok()?);
    let build_id = build_id.map(<[u8]>::to_vec);
    let is_marked = file
        .as_ref()
        .is_some_and(|file| Module::new(file).has_bytecode_marks());
    let instead = || without_layout(is_marked);
    let layout = match &build_id {
        None => LayoutReport::Unknown(format!("has no build-id; {}", instead())),
        Some(build_id) => match kind.build(build_id) {
            Some(build) => {
                LayoutReport::Known(format!("known by the build table ({})", build.name()))
            }
            None => {
                let unknown = format!(
                    "build-id {} is not in the table of known builds",
                    hex(build_id)
                );
                match kind.check_library(library) {
                    Ok(()) => LayoutReport::InLibrary(unknown),
                    Err(why) => LayoutReport::Unknown(format!(
                        "{unknown}, and its layout is not found in it: {why}; {}",
                        instead()
                    )),
                }
            }
        },
    };
    LibraryReport {
        build_id,
        is_marked,
        layout,
    }
}

/// Says what happens to the methods of a VM of an unknown build, and what would help.
fn without_layout(names_dex_pcs: bool) -> String {
    if names_dex_pcs {
        format!(
            "its methods are found through its unwind information, for which up to {} KB of stack are copied with each sample: its offsets in the table, or varid's agent, make that cheaper",
            STACK_FULL >> 10
        )
    } else {
        "start it with varid's agent".to_owned()
    }
}

/// Returns true if a tunnel is not filled in yet: it is mapped before that.
fn is_blank(memory: &dyn Memory, tunnel: u64) -> bool {
    let mut magic = [1; 8];
    memory.read(tunnel, &mut magic).is_ok() && magic == [0; 8]
}
