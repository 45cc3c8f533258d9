//! A profiled process as it is known from outside: its addresses, its VM, its methods.

mod anonymous;
mod budget;
mod callers;
mod file;
mod handlers;
mod image;
mod jit;
mod space;
#[cfg(test)]
pub mod testing;
mod vm;

pub use file::open_unmapped;
pub use handlers::Moved;
pub use image::{DexImage, ElfImage, Image, Images, MappedFile};
pub use jit::{JitFile, is_own_memory};
pub use space::{AddressSpace, Mapped};
pub use varid_symbolizer::hex;
pub use vm::{Found, Vm, find as find_vm, without_layout};

use callers::Callers;
use jit::JitCode;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use varid_tunnel::abi::{CODE_BOOT, NAME};
use varid_tunnel::method::{MethodId, resolve_method};
use varid_tunnel::{Memory, ProcessMemory};

/// What a method pointer of the VM stands for.
#[derive(Debug, Clone)]
pub enum Method {
    /// A method of a dex file.
    Known {
        /// The dex file.
        dex: Rc<DexImage>,
        /// Index in its method_ids.
        index: u32,
        /// Addresses of its instructions; None: it has no bytecode (JNI).
        code: Option<Range<u64>>,
    },
    /// The VM's own: no method of anybody's.
    Runtime,
    /// It could not be read, or contradicts its dex file.
    Unknown,
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
    /// Its threads know themselves by ids of a pid namespace of its own.
    pub namespaced: bool,
    /// Parts of the remap range that the recording knows to be mapped, by their files.
    pub remap_recorded: Vec<&'static str>,
    /// Code that it makes while it runs.
    pub jit: JitCode,
    tunnels: Vec<(u64, u64)>,
    /// Dex files that no file shows: where each ends, and when the VM said so; None: it was found there.
    memory_dexes: HashMap<u64, (u64, Option<u64>)>,
    /// Where no dex file was, when it was looked for.
    no_dex: Vec<Range<u64>>,
    /// How often there was none.
    misses: usize,
    methods: HashMap<u64, Method>,
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
            namespaced: is_namespaced(pid),
            remap_recorded: Vec::new(),
            jit: JitCode::default(),
            tunnels: Vec::new(),
            memory_dexes: HashMap::new(),
            no_dex: Vec::new(),
            misses: 0,
            methods: HashMap::new(),
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

    /// Takes in the memory map as it is now. A process that has ended is left as it was.
    pub fn read_maps(&mut self, images: &mut Images) {
        let Ok(maps) =
            procfs::process::Process::new(self.pid as i32).and_then(|process| process.maps())
        else {
            return;
        };
        for map in maps {
            let path = match &map.pathname {
                procfs::process::MMapPath::Path(path) => path.to_string_lossy().into_owned(),
                procfs::process::MMapPath::Vdso => "[vdso]".to_owned(),
                procfs::process::MMapPath::Vsyscall => "[vsyscall]".to_owned(),
                procfs::process::MMapPath::Anonymous => "//anon".to_owned(),
                _ => String::new(),
            };
            self.map(
                images,
                &MappedFile {
                    pid: self.pid,
                    start: map.address.0,
                    end: map.address.1,
                    pgoff: map.offset,
                    inode: map.inode,
                    executable: map.perms.contains(procfs::process::MMPermissions::EXECUTE),
                    path: &path,
                },
            );
        }
    }

    /// A mapping has appeared; true: it may be a VM's, look for one.
    pub fn map(&mut self, images: &mut Images, mapped: &MappedFile<'_>) -> bool {
        if is_tunnel(mapped.path) {
            let tunnel = (mapped.start, mapped.end.saturating_sub(mapped.start));
            /// A process has one, and a forked one its parent's as well.
            const MAX_TUNNELS: usize = 8;
            self.tunnels.retain(|known| known.0 != mapped.start);
            self.tunnels.push(tunnel);
            self.tunnels.truncate(MAX_TUNNELS);
            return true;
        }
        if mapped.executable && jit::is_jitdump(mapped.path) {
            self.jit.map_jitdump(mapped);
        }
        self.no_dex
            .retain(|range| range.end <= mapped.start || mapped.end <= range.start);
        let parts = if mapped.path == "[vdso]" {
            self.vdso(mapped)
                .map_or_else(Vec::new, |vdso| mapped.whole(vdso))
        } else {
            images.get(mapped, &self.space)
        };
        if parts.is_empty() && self.is_part_of_dex(mapped) {
            return false;
        }
        self.space.remove(mapped.start, mapped.end);
        self.forget_memory_dexes(|start, end, _| mapped.start < end && start < mapped.end);
        let is_vm = |part: &Mapped| matches!(&part.image, Image::Elf(elf) if elf.is_vm_library());
        let may_be_vm = parts.iter().any(is_vm);
        for part in parts {
            if let Image::Other(path) = &part.image
                && is_own_memory(path)
            {
                self.jit.expect(self.pid);
            }
            self.space.insert(part);
        }
        may_be_vm
    }

    /// A part of a known dex file was mapped again, or its protection changed: the file is
    /// still there.
    fn is_part_of_dex(&self, mapped: &MappedFile<'_>) -> bool {
        self.space.at(mapped.start).is_some_and(|known| {
            let offset = mapped
                .start
                .wrapping_sub(known.start)
                .wrapping_add(known.pgoff);
            let Image::Dex(dex) = &known.image else {
                return false;
            };
            dex.path.as_os_str() == mapped.path
                && offset.wrapping_add(dex.file_offset) == mapped.pgoff
                && mapped.end <= known.end
        })
    }

    /// The kernel's code in the process: an ELF file that is nowhere but in memory.
    fn vdso(&self, mapped: &MappedFile<'_>) -> Option<Image> {
        /// The vdso is a page or two.
        const MAX_VDSO: u64 = 1 << 16;
        let len = mapped
            .end
            .checked_sub(mapped.start)
            .filter(|len| *len <= MAX_VDSO)?;
        let mut bytes = vec![0; usize::try_from(len).ok()?];
        ProcessMemory::new(self.pid)
            .read(mapped.start, &mut bytes)
            .ok()?;
        Some(Image::Elf(Rc::new(ElfImage::from_bytes(
            &bytes,
            std::path::Path::new(mapped.path),
        ))))
    }

    /// Looks for a VM; true: more is known of it than before.
    pub fn find_vm(&mut self) -> bool {
        let found = find_vm(self.pid, &self.space, &self.tunnels);
        match found {
            Found::Vm(vm) => {
                self.vm_problem = None;
                self.take_in_codes(&vm);
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
        self.methods.clear();
        self.callers.clear();
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
    pub fn refresh_jit(&mut self, now: u64) {
        if self.jit.is_sampled() {
            for replaced in self.jit.refresh(self.pid, &self.space, now) {
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

    /// The layout led to no thread's frames in all of so many samples: it is not this VM's.
    pub fn refuse_vm(&mut self, samples: u32) {
        let Some(vm) = self.vm.take() else { return };
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
                dex.layer.set(varid_recording::Layer::Framework);
            }
        }
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
            namespaced: is_namespaced(pid),
            remap_recorded: Vec::new(),
            jit: self.jit.fork(pid),
            tunnels: self.tunnels.clone(),
            memory_dexes: self.memory_dexes.clone(),
            no_dex: Vec::new(),
            misses: self.misses,
            methods: self.methods.clone(),
            callers: Callers::default(),
        }
    }

    /// The process runs another program now.
    pub fn exec(&mut self) {
        *self = Self::new(self.pid);
    }

    /// What a method pointer stands for; read from the process the first time it is seen.
    pub fn method(&mut self, pointer: u64) -> Method {
        if let Some(known) = self.methods.get(&pointer) {
            return known.clone();
        }
        let Some(vm) = &self.vm else {
            return Method::Unknown;
        };
        let method = match resolve_method(&vm.layout, &ProcessMemory::new(self.pid), pointer) {
            Ok(Some(id)) => self.place(&id),
            Ok(None) => Method::Runtime,
            Err(error) => {
                tracing::debug!(pid = self.pid, pointer, %error, "method not resolved");
                // Not remembered: the collector may have been at work just then.
                return Method::Unknown;
            }
        };
        if !matches!(method, Method::Unknown) {
            self.methods.insert(pointer, method.clone());
        }
        method
    }

    /// The method's place in a mapped dex file, if the two agree.
    fn place(&mut self, id: &MethodId) -> Method {
        if !self.has_dex_at(id.dex_begin) {
            return Method::Unknown;
        }
        let Some(Mapped {
            image: Image::Dex(dex),
            start,
            pgoff: 0,
            ..
        }) = self.space.at(id.dex_begin)
        else {
            return Method::Unknown;
        };
        if *start != id.dex_begin || id.method_index >= dex.dex.method_count() {
            return Method::Unknown;
        }
        if id.code_off == 0 {
            return Method::Known {
                dex: dex.clone(),
                index: id.method_index,
                code: None,
            };
        }
        // A code_item's instructions follow its header of 16 bytes.
        let offset = id.code_off.wrapping_add(16);
        match dex.methods.lookup(offset) {
            Some(method) if method.code.start == offset => {
                let address = |offset: u32| id.dex_begin.wrapping_add(u64::from(offset));
                let code = address(method.code.start)..address(method.code.end);
                Method::Known {
                    dex: dex.clone(),
                    index: id.method_index,
                    code: Some(code),
                }
            }
            _ => Method::Unknown,
        }
    }
}

fn is_tunnel(path: &str) -> bool {
    let path = path.trim_end_matches(" (deleted)");
    path.strip_prefix("/memfd:")
        .or_else(|| path.rsplit('/').next())
        .is_some_and(|name| name.starts_with(NAME))
}

/// Whether the process sees itself by other ids than we do.
fn is_namespaced(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/status"))
        .ok()
        .and_then(|status| {
            status.lines().find_map(|line| {
                line.strip_prefix("NSpid:")
                    .map(|ids| ids.split_whitespace().count() > 1)
            })
        })
        .unwrap_or(false)
}
