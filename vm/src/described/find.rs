//! Finds the description of a VM in a process, and describes a library.

use super::Description;
use super::kind::{DerivedLayout, DescribedKind};
use crate::seam::{Found, LayoutReport, LibraryReport, Vm, VmKind};
use object::Object;
use std::fmt;
use std::path::Path;
use std::rc::Rc;
use varid_process::reader::{self, ForeignMemory};
use varid_process::{BytecodeFormat, ElfImage, Process, ProcessImage};
use varid_shim::STACK_FULL;
use varid_symbolizer::hex;
use varid_tunnel::abi::NAME;
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
    let (pid, space) = (process.pid, &process.space);
    let memory = ForeignMemory::new(pid);
    let mut problem = None;
    for (start, len) in process.tunnels() {
        match Description::read(pid, *start, *len, None) {
            Ok(description) => match kinds.recognise(&description.with_states(space)) {
                Some(vm) => return Found::Vm(vm),
                None => {
                    problem = Some(format!(
                        "its tunnel at {start:#x} describes a VM of no kind that is known here"
                    ))
                }
            },
            // Being written: it is looked at again.
            Err(TunnelError::Changing { .. }) => return Found::NotYet,
            Err(_) if is_blank(&memory, *start) => return Found::NotYet,
            // From a process that has ended there is nothing more to read or to report.
            Err(_) if !reader::has_memory(process.pid) => return Found::NotYet,
            Err(error) => {
                problem = Some(format!("its tunnel at {start:#x} is not usable: {error}"))
            }
        }
    }
    for mapped in space.iter() {
        let ProcessImage::Elf(image) = &mapped.image else {
            continue;
        };
        let Some(kind) = kinds.of_library(&image.path) else {
            continue;
        };
        let Some(elf) = image.contents() else {
            continue;
        };
        let load_base = elf
            .module
            .borrow()
            .address_of_mapping(mapped.pgoff, mapped.end.wrapping_sub(mapped.start))
            .map(|at| mapped.start.wrapping_sub(at.get()));
        let Some(load_base) = load_base else {
            continue;
        };
        let Some(build) = kind.build(&elf.build_id) else {
            let refused = |why: &dyn fmt::Display| {
                format!(
                    "{} has build-id {}, which is not in the table of known builds, there is no tunnel, and its layout is not found in it: {why}; {}",
                    image.path.display(),
                    hex(&elf.build_id),
                    without_layout(elf.module.borrow().has_bytecode_marks())
                )
            };
            match unknown_build(kind, process, image, load_base) {
                DerivedLayout::Agrees(description) => {
                    match kinds.recognise(&description.with_states(space)) {
                        Some(vm) => return Found::Vm(vm),
                        None => {
                            let why = "it is of no kind that is known here";
                            problem.get_or_insert_with(|| refused(&why));
                        }
                    }
                }
                DerivedLayout::NotUp(why) => {
                    tracing::debug!(%pid, why, "the VM's layout cannot be checked yet");
                    return problem.map_or(Found::NotYet, Found::Refused);
                }
                DerivedLayout::Differs(check) => {
                    tracing::debug!(%pid, %check, "the VM's layout is not confirmed");
                    let why = format!("the process is different from it in {check}");
                    return Found::Unclear(problem.unwrap_or_else(|| refused(&why)));
                }
                DerivedLayout::Refused(why) => {
                    problem.get_or_insert_with(|| refused(&why));
                }
            }
            continue;
        };
        let word = |address| {
            let mut word = [0; 8];
            memory
                .read(address, &mut word)
                .ok()
                .map(|()| u64::from_le_bytes(word))
        };
        match build.layout(load_base, word) {
            Ok(layout) => {
                let description =
                    Description::of_build(&memory, build, layout, load_base).with_states(space);
                if let Some(vm) = kinds.recognise(&description) {
                    return Found::Vm(vm);
                }
            }
            // Not yet relocated: the process is still being loaded.
            Err(error) => tracing::debug!(%pid, %error, "the VM's library is not ready"),
        }
    }
    problem.map_or(Found::No, Found::Refused)
}

/// Derives the layout of an unknown build.
fn unknown_build(
    kind: &dyn DescribedKind,
    process: &Process,
    image: &ElfImage,
    load_base: u64,
) -> DerivedLayout {
    match image.file() {
        Some(file) => kind.derive_layout(file, process, load_base),
        None => DerivedLayout::Refused("it is no file of its own".to_owned()),
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
