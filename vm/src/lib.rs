//! VMs in processes, and attribution: from what was sampled to the frames that a profile shows.
//!
//! | question | file |
//! |---|---|
//! | which VM does a process have, and what is known of it | [`Vm`] |
//! | which method does a VM's pointer stand for | [`Method`] |
//! | which methods did a sample's stack execute | [`attribution`] |
//! | where may the pc's register be ahead of its handler | `handlers` |
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

// The tests of another crate use these tests' world.
#[cfg(test)]
extern crate self as varid_vm;

pub mod attribution;
mod callers;
mod handlers;
mod methods;
mod remapped;
#[doc(hidden)]
pub mod testing;
mod vm;

pub use handlers::Moved;
pub use methods::Method;
pub use vm::{Found, Vm, find as find_vm, without_layout};

use callers::Callers;
use std::rc::Rc;
use varid_model::ById;
use varid_process::{AddressSpace, ElfImage, Image, Images, Mapped, Process, reader};
use varid_tunnel::abi::{CODE_BOOT, VmFile};
use varid_tunnel::calls::CallsFile;
use varid_tunnel::control::Control;
use varid_tunnel::file::Kind;

/// The file in which a VM counts calls.
pub fn open_calls(pid: u32, calls: &VmFile) -> Result<CallsFile, varid_tunnel::Error> {
    let file = reader::open_of_vm(pid, calls, Kind::Calls)?;
    Ok(CallsFile::of(file, pid))
}

/// The page on which a VM is told what to do, under our lock.
pub fn take_control(pid: u32, page: &VmFile) -> Result<Control, varid_tunnel::Error> {
    let file = reader::open_of_vm(pid, page, Kind::Control)?;
    Control::of(file, pid, page)
}

/// A profiled process with its VM and its methods.
#[derive(Debug)]
pub struct ManagedProcess {
    /// The process itself.
    pub process: Process,
    /// Its VM, once it is up.
    pub vm: Option<Rc<Vm>>,
    /// Why the VM that is there cannot be used.
    pub vm_problem: Option<String>,
    /// The VM that cannot be used says in its unwind information which bytecode runs.
    marked: bool,
    /// Parts of the remap range that the recording knows to be mapped, by their files.
    pub remap_recorded: Vec<&'static str>,
    methods: ById<u64, Method>,
    /// Its memory was gone when a method was to be read: it has ended.
    gone: bool,
    /// What its VM may store instead of addresses.
    remapped: remapped::Remapped,
    /// What stands for the outer frames of its threads.
    pub callers: Callers,
}

impl ManagedProcess {
    /// A process of which nothing is known yet.
    pub fn new(pid: u32) -> Self {
        Self::of(Process::new(pid))
    }

    /// A process whose VM is not known yet.
    fn of(process: Process) -> Self {
        Self {
            process,
            vm: None,
            vm_problem: None,
            marked: false,
            remap_recorded: Vec::new(),
            methods: ById::default(),
            gone: false,
            remapped: remapped::Remapped::default(),
            callers: Callers::default(),
        }
    }

    /// A process that runs already, with all that can be seen of it now.
    pub fn running(pid: u32, images: &mut Images) -> Self {
        let mut managed = Self::new(pid);
        managed.process.read_maps(images);
        managed.find_vm();
        managed
    }

    /// Its addresses.
    #[inline]
    pub fn space(&self) -> &AddressSpace {
        &self.process.space
    }

    /// Its id in the initial pid namespace.
    pub fn pid(&self) -> u32 {
        self.process.pid
    }

    /// Looks for a VM; true: more is known of it than before.
    pub fn find_vm(&mut self) -> bool {
        let found = find_vm(&self.process);
        match found {
            Found::Vm(vm) => {
                self.vm_problem = None;
                self.take_in_codes(&vm);
                self.callers.clear();
                self.vm = Some(Rc::from(vm));
                true
            }
            Found::Nothing => false,
            Found::Unusable(problem) => {
                if self.vm_problem.as_ref() == Some(&problem) {
                    return false;
                }
                tracing::warn!("process {}: {problem}", self.pid());
                self.set_problem(problem);
                self.marked
            }
        }
    }

    fn set_problem(&mut self, problem: String) {
        let marked = self
            .process
            .elf_images()
            .any(|elf| elf.is_vm_library() && elf.names_dex_pcs());
        self.marked = marked;
        self.vm_problem = Some(problem);
    }

    /// Whether its managed frames are found by what its VM's unwind information says of them:
    /// nothing else is known of the VM.
    pub fn is_marked(&self) -> bool {
        self.vm.is_none() && self.vm_problem.is_some() && self.marked
    }

    /// Takes in what the VM's tunnel says now, if that has changed since it was read: dex files
    /// come and go.
    pub fn refresh_codes(&mut self) {
        self.remapped.outdated();
        let pid = self.pid();
        let Some(vm) = self.vm.as_ref().filter(|vm| vm.has_changed(pid)) else {
            return;
        };
        if let Some(vm) = vm.read_again(pid) {
            self.replace_vm(vm);
        }
    }

    /// The VM describes itself anew.
    fn replace_vm(&mut self, vm: Vm) {
        self.process
            .forget_memory_dexes(|start, end, time| match time {
                Some(time) => !vm
                    .codes
                    .iter()
                    .any(|code| code.start == start && code.time == time),
                // The VM need not know of what was found; but what it says now is newer.
                None => vm
                    .codes
                    .iter()
                    .any(|code| code.start < end && start < code.start.saturating_add(code.size)),
            });
        // A method's memory may be another's by now, as its dex file's may.
        let before = self.vm.as_deref();
        if !before.is_some_and(|before| vm.differs_in_traces_only(before)) {
            self.methods.clear();
            self.callers.clear();
        }
        self.take_in_codes(&vm);
        self.vm = Some(Rc::new(vm));
    }

    /// A VM's library or tunnel is mapped, and its layout is not known yet.
    pub fn awaits_vm(&self) -> bool {
        self.vm.is_none()
            && self.vm_problem.is_none()
            && (!self.process.tunnels().is_empty()
                || self.process.elf_images().any(|elf| elf.is_vm_library()))
    }

    /// Whether its VM has begun to describe itself, and what it says could not be read yet.
    pub fn has_unread_tunnel(&self) -> bool {
        !self.process.tunnels().is_empty() && self.awaits_vm()
    }

    /// The layout led to no thread's frames in all of so many samples: it is not this VM's.
    pub fn refuse_vm(&mut self, samples: u32) {
        let Some(vm) = self.vm.take() else { return };
        self.callers.clear();
        let problem = format!(
            "the layout known by {} matched none of {samples} samples in the interpreter; it is not used",
            vm.known_by
        );
        tracing::warn!("process {}: {problem}", self.pid());
        self.set_problem(problem);
    }

    /// The folder of the VM's library, if it is one that holds nothing but a VM.
    pub fn vm_directory(&self) -> Option<std::path::PathBuf> {
        let library = self.process.elf_images().find(|elf| elf.is_vm_library())?;
        let parent = library.path.parent()?;
        let own =
            parent.file_name().is_some_and(|name| name == "android") || parent.starts_with("/apex");
        own.then(|| parent.to_owned())
    }

    /// Whether code of the VM is in this image.
    pub fn is_vm_image(&self, elf: &ElfImage) -> bool {
        let Some(vm) = &self.vm else {
            return elf.is_vm_library();
        };
        self.process.space.iter().any(|mapped| {
            matches!(&mapped.image, Image::Elf(image) if std::ptr::eq(image.as_ref(), elf))
                && vm.has_code_in(mapped.start, mapped.end)
        })
    }

    /// What the VM says about its dex files: which are the framework's, and those that no
    /// file shows.
    fn take_in_codes(&mut self, vm: &Vm) {
        for code in &vm.codes {
            if self
                .process
                .space
                .at(code.start)
                .is_none_or(|mapped| !matches!(mapped.image, Image::Dex(_)))
            {
                self.process
                    .take_in_memory(code.start, code.size, Some(code.time), &code.location);
            }
            if let Some(Mapped {
                image: Image::Dex(dex),
                ..
            }) = self.process.space.at(code.start)
                && code.flags & CODE_BOOT != 0
            {
                dex.layer.set(varid_model::Layer::Framework);
            }
        }
    }

    /// A child that has this process's memory, as fork leaves it.
    pub fn fork(&self, pid: u32) -> Self {
        Self {
            vm: self.vm.clone(),
            vm_problem: self.vm_problem.clone(),
            marked: self.marked,
            methods: self.methods.clone(),
            ..Self::of(self.process.fork(pid))
        }
    }

    /// Its memory map, its VM and its methods as if it had just been found; not what it has said of its own code, nor
    /// what looking at it has cost.
    pub fn look_again(&mut self, images: &mut Images) {
        let pid = self.pid();
        let process = std::mem::replace(&mut self.process, Process::new(pid));
        *self = Self::of(process);
        self.process.look_again(images);
        self.find_vm();
    }

    /// The process runs another program now.
    pub fn exec(&mut self) {
        *self = Self::new(self.pid());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::tests::world;
    use varid_process::DexImage;
    use varid_tunnel::Code;
    use varid_tunnel::method::MethodId;

    const PAGE: u64 = 4096;

    /// A dex file that only this process's memory holds, at the start of a page.
    struct Held {
        _memory: Vec<u8>,
        start: u64,
    }

    fn held() -> Held {
        let dex = world::dex();
        let dex = dex.dex.bytes();
        // So much is a mapping of its own, of which nothing is touched but the dex file.
        let mut memory = vec![0u8; 40 << 20];
        let first = memory.as_ptr().align_offset(PAGE as usize);
        memory[first..first + dex.len()].copy_from_slice(dex);
        Held {
            start: memory[first..].as_ptr() as u64,
            _memory: memory,
        }
    }

    #[test]
    fn a_method_s_dex_file_is_looked_for_in_memory() {
        let held = held();
        let mut process = ManagedProcess::new(std::process::id());
        let dex = world::dex();
        let method = &dex.methods.methods()[0];
        let id = MethodId {
            dex_begin: held.start,
            method_index: method.index,
            code_off: method.code.start - 16,
        };
        match process.place(&id) {
            Method::Known { dex: found, .. } => assert_eq!(found.build_id, dex.build_id),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_dex_file_that_was_found_in_memory_is_read_again_when_the_vm_describes_it() {
        let held = held();
        let mut managed = ManagedProcess::new(std::process::id());
        let image = |managed: &ManagedProcess| -> Option<Rc<DexImage>> {
            match managed.space().at(held.start) {
                Some(Mapped {
                    image: Image::Dex(dex),
                    ..
                }) => Some(dex.clone()),
                _ => None,
            }
        };
        assert!(managed.process.has_dex_at(held.start + 0x80));
        let found = image(&managed).unwrap();
        let code = |start| Code {
            start,
            size: PAGE,
            time: 1,
            flags: 0,
            location: "other.dex".to_owned(),
        };
        // The VM says something of other places.
        let mut vm = Vm::made_up(Default::default(), Vec::new());
        vm.codes.push(code(held.start - PAGE));
        managed.replace_vm(vm.clone());
        assert!(Rc::ptr_eq(&image(&managed).unwrap(), &found));
        // It says something of this one.
        vm.codes.push(code(held.start));
        managed.replace_vm(vm);
        assert!(image(&managed).is_none_or(|now| !Rc::ptr_eq(&now, &found)));
    }
}
