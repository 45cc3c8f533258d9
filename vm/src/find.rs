//! Which VM does a process have?

use crate::art_layout::{Check, Look};
use crate::facts::{KnownBy, VmFacts};
use crate::kind::Vm;
use crate::kinds::VmKinds;
use std::fmt;
use std::rc::Rc;
use varid_process::reader::{self, ForeignMemory};
use varid_process::{ElfImage, Process, ProcessImage};
use varid_shim::STACK_FULL;
use varid_symbolizer::hex;
use varid_tunnel::{Memory, TunnelError};

/// What was found in a process.
#[derive(Debug)]
pub enum Found {
    /// A VM.
    Vm(Rc<dyn Vm>),
    /// No VM, or none that is up.
    Nothing,
    /// A VM that is there and cannot be used, and why.
    Unusable(String),
    /// The same, but the process may have been changing what was looked at.
    Unclear(String),
}

/// Looks for a tunnel, then for a library of a known build, then for one that says itself what its build is like.
pub(crate) fn find(process: &Process, kinds: VmKinds) -> Found {
    let (pid, space) = (process.pid, &process.space);
    let memory = ForeignMemory::new(pid);
    let mut problem = None;
    for (start, len) in process.tunnels() {
        match VmFacts::read(pid, *start, *len, None) {
            Ok(facts) => match kinds.recognise(&facts.with_states(space)) {
                Some(vm) => return Found::Vm(vm),
                None => {
                    problem = Some(format!(
                        "its tunnel at {start:#x} describes a VM of no kind that is known here"
                    ))
                }
            },
            // Being written: it is looked at again.
            Err(TunnelError::Changing { .. }) => return Found::Nothing,
            Err(_) if is_blank(&memory, *start) => return Found::Nothing,
            // Nothing is left to be read, or to be said, of a process that has ended.
            Err(_) if !reader::has_memory(process.pid) => return Found::Nothing,
            Err(error) => {
                problem = Some(format!("its tunnel at {start:#x} is not usable: {error}"))
            }
        }
    }
    for mapped in space.iter() {
        let ProcessImage::Elf(image) = &mapped.image else {
            continue;
        };
        let Some(elf) = Some(image)
            .filter(|image| kinds.is_library(&image.path))
            .and_then(|image| image.contents())
        else {
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
        let Some(build) = kinds.build(&elf.build_id) else {
            let refused = |why: &dyn fmt::Display| {
                format!(
                    "{} has build-id {}, which is not in the table of known builds, there is no tunnel, and its layout is not found in it: {why}; {}",
                    image.path.display(),
                    hex(&elf.build_id),
                    without_layout(elf.module.borrow().has_bytecode_marks())
                )
            };
            match unknown_build(process, kinds, image, load_base) {
                Unknown::Vm(vm) => return Found::Vm(vm),
                Unknown::NotUp => return problem.map_or(Found::Nothing, Found::Unusable),
                Unknown::Differs(check) => {
                    let why = format!("the process is different from it in {check}");
                    return Found::Unclear(problem.unwrap_or_else(|| refused(&why)));
                }
                Unknown::Refused(why) => {
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
                let facts = VmFacts::of_build(&memory, build, layout, load_base).with_states(space);
                if let Some(vm) = kinds.recognise(&facts) {
                    return Found::Vm(vm);
                }
            }
            // Not yet relocated: the process is still being loaded.
            Err(error) => tracing::debug!(%pid, %error, "the VM's library is not ready"),
        }
    }
    problem.map_or(Found::Nothing, Found::Unusable)
}

/// What a library whose build is not known says of itself.
enum Unknown {
    /// The process agrees with it.
    Vm(Rc<dyn Vm>),
    /// There is nothing yet that could be checked.
    NotUp,
    /// The process does not agree with it.
    Differs(Check),
    /// Not enough, and why.
    Refused(String),
}

fn unknown_build(process: &Process, kinds: VmKinds, image: &ElfImage, load_base: u64) -> Unknown {
    let (pid, memory) = (process.pid, ForeignMemory::new(process.pid));
    let refused = |why: &str| Unknown::Refused(why.to_owned());
    let Some(file) = image.file() else {
        return refused("it is no file of its own");
    };
    let library = match kinds.read_library(&image.path, file) {
        Some(Ok(library)) => library,
        Some(Err(error)) => return Unknown::Refused(error.to_string()),
        None => return refused("libraries of its kind are not asked"),
    };
    match library.look(pid, &memory, load_base) {
        Look::Agrees(found) => {
            let known_by = KnownBy::Library(found.checks);
            let facts = VmFacts::of_layout(&memory, found.layout, found.ranges, known_by);
            let vm = kinds.recognise(&facts.with_states(&process.space));
            vm.map_or_else(
                || refused("it is of no kind that is known here"),
                Unknown::Vm,
            )
        }
        Look::NotUp(why) => {
            tracing::debug!(%pid, why, "the VM's layout cannot be checked yet");
            Unknown::NotUp
        }
        Look::Differs(check) => {
            tracing::debug!(%pid, %check, "the VM's layout is not confirmed");
            Unknown::Differs(check)
        }
    }
}

/// What happens to the methods of a VM whose build is not known, and what would help.
pub fn without_layout(names_dex_pcs: bool) -> String {
    if names_dex_pcs {
        format!(
            "its methods are found through its unwind information, for which up to {} KB of stack are copied with each sample: its offsets in the table, or varid's agent, make that cheaper",
            STACK_FULL >> 10
        )
    } else {
        "start it with varid's agent".to_owned()
    }
}

/// A tunnel is mapped before it is filled in.
fn is_blank(memory: &dyn Memory, tunnel: u64) -> bool {
    let mut magic = [1; 8];
    memory.read(tunnel, &mut magic).is_ok() && magic == [0; 8]
}
