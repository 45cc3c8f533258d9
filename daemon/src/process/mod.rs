//! A profiled process as it is known from outside: its addresses, its VM, its methods.

mod anonymous;
mod budget;
mod callers;
mod file;
mod handlers;
mod image;
mod images;
mod jit;
mod maps;
mod methods;
pub mod reader;
mod remapped;
mod space;
mod status;
#[cfg(test)]
pub mod testing;
mod vm;

pub use budget::raise_limit_of_files;
pub use file::MappedFile;
pub use handlers::Moved;
pub use image::{DexImage, ElfImage, Image};
pub use images::Images;
pub use jit::{JitFile, Nameless, Turn};
pub use methods::Method;
pub use space::{AddressSpace, Mapped};
pub use status::Status;
pub use varid_symbolizer::hex;
pub use vm::{Found, Vm, find as find_vm, without_layout};

use budget::Attention;
use callers::Callers;
use jit::JitCode;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use varid_model::ById;
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

/// A profiled process.
#[derive(Debug)]
pub struct Process {
    /// Its id in the initial pid namespace.
    pub pid: u32,
    /// Its addresses.
    pub space: AddressSpace,
    /// Its VM, once it is up.
    pub vm: Option<Rc<Vm>>,
    /// Why the VM that is there cannot be used.
    pub vm_problem: Option<String>,
    /// The VM that cannot be used says in its unwind information which bytecode runs.
    marked: bool,
    /// Whose it is, and its ids.
    pub status: Status,
    /// Parts of the remap range that the recording knows to be mapped, by their files.
    pub remap_recorded: Vec<&'static str>,
    /// Code that it makes while it runs.
    pub jit: JitCode,
    /// What looking at its mappings may cost.
    attention: Attention,
    tunnels: Vec<(u64, u64)>,
    /// Dex files that no file shows: where each ends, and when the VM said so; None: it was found there.
    memory_dexes: HashMap<u64, (u64, Option<u64>)>,
    /// Where no dex file was, when it was looked for.
    no_dex: Vec<Range<u64>>,
    /// How often there was none.
    misses: usize,
    methods: ById<u64, Method>,
    /// Its memory was gone when a method was to be read: it has ended.
    gone: bool,
    /// What its VM may store instead of addresses.
    remapped: remapped::Remapped,
    /// What stands for the outer frames of its threads.
    pub callers: Callers,
}

impl Process {
    /// A process of which nothing is known yet.
    pub fn new(pid: u32) -> Self {
        Self {
            pid,
            space: AddressSpace::default(),
            vm: None,
            vm_problem: None,
            marked: false,
            status: Status::of(pid),
            remap_recorded: Vec::new(),
            jit: JitCode::default(),
            attention: Attention::default(),
            tunnels: Vec::new(),
            memory_dexes: HashMap::new(),
            no_dex: Vec::new(),
            misses: 0,
            methods: ById::default(),
            gone: false,
            remapped: remapped::Remapped::default(),
            callers: Callers::default(),
        }
    }

    /// A process that runs already, with all that can be seen of it now.
    pub fn running(pid: u32, images: &mut Images) -> Self {
        let mut process = Self::new(pid);
        process.read_maps(images);
        process.find_vm();
        process
    }

    /// Looks for a VM; true: more is known of it than before.
    pub fn find_vm(&mut self) -> bool {
        let found = find_vm(self.pid, &self.space, &self.tunnels);
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
                tracing::warn!("process {}: {problem}", self.pid);
                self.set_problem(problem);
                self.marked
            }
        }
    }

    fn set_problem(&mut self, problem: String) {
        let marked = self
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
        let Some(vm) = self.vm.as_ref().filter(|vm| vm.has_changed(self.pid)) else {
            return;
        };
        if let Some(vm) = vm.read_again(self.pid) {
            self.replace_vm(vm);
        }
    }

    /// The VM describes itself anew.
    fn replace_vm(&mut self, vm: Vm) {
        self.forget_memory_dexes(|start, end, time| match time {
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

    /// Forgets dex files in memory by where they start, where they end, and when the VM said so.
    fn forget_memory_dexes(&mut self, gone: impl Fn(u64, u64, Option<u64>) -> bool) {
        let space = &mut self.space;
        self.memory_dexes.retain(|start, (end, time)| {
            let gone = gone(*start, *end, *time);
            if gone {
                space.remove(*start, *end);
            }
            !gone
        });
    }

    /// Takes in what the process has said about its own code until `now`.
    pub fn refresh_jit(&mut self, now: u64, turn: &Turn) {
        if self.jit.is_sampled() {
            for replaced in self.jit.refresh(self.pid, &self.space, now, turn) {
                self.space.forget_recorded_in(&replaced);
            }
        }
    }

    /// A VM's library or tunnel is mapped, and its layout is not known yet.
    pub fn awaits_vm(&self) -> bool {
        self.vm.is_none()
            && self.vm_problem.is_none()
            && (!self.tunnels.is_empty() || self.elf_images().any(|elf| elf.is_vm_library()))
    }

    /// Whether its VM has begun to describe itself, and what it says could not be read yet.
    pub fn has_unread_tunnel(&self) -> bool {
        !self.tunnels.is_empty() && self.awaits_vm()
    }

    /// The layout led to no thread's frames in all of so many samples: it is not this VM's.
    pub fn refuse_vm(&mut self, samples: u32) {
        let Some(vm) = self.vm.take() else { return };
        self.callers.clear();
        let problem = format!(
            "the layout known by {} matched none of {samples} samples in the interpreter; it is not used",
            vm.known_by
        );
        tracing::warn!("process {}: {problem}", self.pid);
        self.set_problem(problem);
    }

    /// The folder of the VM's library, if it is one that holds nothing but a VM.
    pub fn vm_directory(&self) -> Option<std::path::PathBuf> {
        let library = self.elf_images().find(|elf| elf.is_vm_library())?;
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
        self.space.iter().any(|mapped| {
            matches!(&mapped.image, Image::Elf(image) if std::ptr::eq(image.as_ref(), elf))
                && vm.has_code_in(mapped.start, mapped.end)
        })
    }

    /// Whether an address lies in what is a VM's library by its name.
    pub fn is_in_vm_library(&self, address: u64) -> bool {
        let image = self.space.at(address).map(|mapped| &mapped.image);
        matches!(image, Some(Image::Elf(elf)) if elf.is_vm_library())
    }

    fn elf_images(&self) -> impl Iterator<Item = &Rc<ElfImage>> {
        self.space.iter().filter_map(|mapped| match &mapped.image {
            Image::Elf(elf) => Some(elf),
            _ => None,
        })
    }

    /// What the VM says about its dex files: which are the framework's, and those that no
    /// file shows.
    fn take_in_codes(&mut self, vm: &Vm) {
        for code in &vm.codes {
            if self
                .space
                .at(code.start)
                .is_none_or(|mapped| !matches!(mapped.image, Image::Dex(_)))
            {
                self.take_in_memory(code.start, code.size, Some(code.time), &code.location);
            }
            if let Some(Mapped {
                image: Image::Dex(dex),
                ..
            }) = self.space.at(code.start)
                && code.flags & CODE_BOOT != 0
            {
                dex.layer.set(varid_model::Layer::Framework);
            }
        }
    }

    /// How many of its mappings were left out, because it has too many.
    pub fn mappings_left_out(&self) -> u64 {
        self.attention.left_out.get()
    }

    /// A child that has this process's memory, as fork leaves it.
    pub fn fork(&self, pid: u32) -> Self {
        let mut space = self.space.clone();
        space.forget_recorded();
        Self {
            pid,
            space,
            vm: self.vm.clone(),
            vm_problem: self.vm_problem.clone(),
            marked: self.marked,
            status: Status::of(pid),
            remap_recorded: Vec::new(),
            jit: self.jit.fork(pid),
            attention: Attention::default(),
            tunnels: self.tunnels.clone(),
            memory_dexes: self.memory_dexes.clone(),
            no_dex: Vec::new(),
            misses: self.misses,
            methods: self.methods.clone(),
            gone: false,
            remapped: remapped::Remapped::default(),
            callers: Callers::default(),
        }
    }

    /// Its memory map, its VM and its methods as if it had just been found; not what it has said of its own code, nor
    /// what looking at it has cost.
    pub fn look_again(&mut self, images: &mut Images) {
        let before = std::mem::replace(self, Self::new(self.pid));
        (self.jit, self.attention) = (before.jit, before.attention);
        self.read_maps(images);
        self.find_vm();
    }

    /// The process runs another program now.
    pub fn exec(&mut self) {
        *self = Self::new(self.pid);
    }
}
