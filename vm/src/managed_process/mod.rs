//! A process with its VM, the VM's methods, and the callchains of its threads.

pub(crate) mod callchain_cache;
mod unwound_stacks;

use crate::described::dex;
use crate::seam::{ExecutedCode, Found, Method, Methods, Refreshed, Vm, VmCompiler, VmKinds};
use callchain_cache::{CallchainCache, Knowledge};
use std::path::Path;
use std::rc::Rc;
use unwound_stacks::UnwoundStacks;
use varid_model::{Address, ById, Pid};
use varid_process::{
    AddressSpace, ElfImage, Images, KernelMapping, NewMapping, Process, ProcessImage,
    ProcessMapping,
};
use varid_shim::CapturedSample;
use varid_tunnel::abi::{CODE_BOOT, Call};
use varid_tunnel::{BytecodeKind, PublishedBytecode};

/// A process changes while it is inspected. After this many looks that differ, it is considered different.
const MAX_UNCLEAR_LOOKS: u32 = 100;

/// A profiled process with its VM and its methods.
#[derive(Debug)]
pub struct ManagedProcess {
    /// The process itself.
    pub process: Process,
    /// The kinds of VM that are looked for.
    kinds: VmKinds,
    /// Its VM, once it is up. [`ManagedProcess::set_vm`] changes it, unless only its description changes.
    pub(crate) vm: Option<Rc<dyn Vm>>,
    /// Incremented when the VM or its methods change. Cached callchains with an older value are not used.
    changes: u64,
    /// How often the process did not agree with its VM's library.
    unclear_looks: u32,
    /// Its VM is starting: the last look found its library, and nothing that can be used yet.
    pub(crate) is_vm_starting: bool,
    /// Why its VM cannot be used.
    pub vm_problem: Option<String>,
    /// The unwind information of the unusable VM marks the bytecode that runs.
    marked: bool,
    pub(crate) methods: ById<u64, Method>,
    /// Its memory was gone when a method was read: it has ended.
    pub(crate) gone: bool,
    pub(crate) callchains: CallchainCache,
    pub(crate) unwound: UnwoundStacks,
}

impl ManagedProcess {
    /// A process of which nothing is known yet.
    pub fn new(pid: Pid, kinds: VmKinds) -> Self {
        Self::of(Process::new(pid), kinds)
    }

    /// A process whose VM is not known yet.
    pub(crate) fn of(process: Process, kinds: VmKinds) -> Self {
        Self {
            process,
            kinds,
            vm: None,
            changes: 0,
            unclear_looks: 0,
            is_vm_starting: false,
            vm_problem: None,
            marked: false,
            methods: ById::default(),
            gone: false,
            callchains: CallchainCache::default(),
            unwound: UnwoundStacks::default(),
        }
    }

    /// A process that is already running, with all that can be seen of it now.
    pub fn running(pid: Pid, kinds: VmKinds, images: &mut Images) -> Self {
        let mut managed = Self::new(pid, kinds);
        managed.process.read_maps(images);
        managed.find_vm();
        managed
    }

    /// Its address space.
    #[inline]
    pub fn space(&self) -> &AddressSpace {
        &self.process.space
    }

    /// Its id in the initial pid namespace.
    pub fn pid(&self) -> Pid {
        self.process.pid
    }

    /// Returns the compiled code in which leaves were sampled since the last call, each piece of code once.
    pub fn take_executed_code(&self) -> Vec<ExecutedCode> {
        let compiler = self.vm.as_deref().and_then(|vm| vm.compiler());
        compiler.map_or_else(Vec::new, VmCompiler::take_executed_code)
    }

    /// Looks for a VM. Returns true if more is known about it than before.
    pub fn find_vm(&mut self) -> bool {
        let found = self.kinds.find(&self.process);
        self.is_vm_starting = matches!(found, Found::NotYet | Found::Unclear(_));
        match found {
            Found::Vm(vm) => {
                self.vm_problem = None;
                self.map_published_code(&*vm);
                vm.found(&self.process);
                self.set_vm(Some(vm));
                true
            }
            Found::No | Found::NotYet => false,
            Found::Unclear(_) if self.unclear_looks < MAX_UNCLEAR_LOOKS => {
                self.unclear_looks = self.unclear_looks.saturating_add(1);
                false
            }
            Found::Refused(problem) | Found::Unclear(problem) => {
                if self.vm_problem.as_ref() == Some(&problem) {
                    return false;
                }
                tracing::warn!("process {}: {problem}", self.pid());
                self.set_problem(problem);
                self.marked
            }
        }
    }

    /// Replaces the VM, or removes it.
    fn set_vm(&mut self, vm: Option<Rc<dyn Vm>>) {
        self.vm = vm;
        // They were resolved with the previous VM.
        self.methods.clear();
        self.changes = self.changes.wrapping_add(1);
    }

    /// Its VM, once it is up.
    pub fn vm(&self) -> Option<&dyn Vm> {
        self.vm.as_deref()
    }

    /// Returns the version of the knowledge that cached callchains depend on.
    pub(crate) fn knowledge(&self) -> Knowledge {
        Knowledge {
            mapped: self.space().changes(),
            vm: self.changes,
        }
    }

    /// Invalidates the cached callchains: the names of their frames may not be in the recording.
    pub fn invalidate_callchains(&mut self) {
        self.changes = self.changes.wrapping_add(1);
    }

    pub(crate) fn set_problem(&mut self, problem: String) {
        let marked = self
            .process
            .elf_images()
            .any(|elf| self.kinds.is_library(&elf.path) && elf.has_bytecode_marks());
        self.marked = marked;
        self.is_vm_starting = false;
        self.vm_problem = Some(problem);
    }

    /// Returns true if its managed frames are found by the marks in its VM's unwind information, because nothing else is known about the
    /// VM.
    pub fn is_marked(&self) -> bool {
        self.vm.is_none() && self.vm_problem.is_some() && self.marked
    }

    /// Tells the VM's compiler of a sample that is about to be attributed.
    pub fn expect(&self, sample: &CapturedSample) {
        if let Some(compiler) = self.vm().and_then(|vm| vm.compiler()) {
            compiler.expect(sample);
        }
    }

    /// Looks for its VM's first compiled code. Returns true if it is found: the shim's target must be updated.
    pub fn finds_first_code(&self) -> bool {
        let compiler = self.vm().and_then(|vm| vm.compiler());
        compiler.is_some_and(|compiler| compiler.finds_first_code(self.pid()))
    }

    /// Updates the VM if its description has changed: bytecode files come and go.
    pub fn end_batch(&mut self) {
        if let Some(vm) = self.vm() {
            let refreshed = vm.end_batch(&self.process);
            self.replace_vm(refreshed);
        }
    }

    /// Applies a change of the VM's description.
    pub(crate) fn replace_vm(&mut self, refreshed: Refreshed) {
        match refreshed {
            Refreshed::Same => {}
            Refreshed::Vm { vm, same_methods } => {
                self.forget_bytecode_in_memory(vm.published());
                self.map_published_code(&*vm);
                match same_methods {
                    true => self.vm = Some(vm),
                    // A method's memory may belong to another one by now, and its file's memory to another file.
                    false => self.set_vm(Some(vm)),
                }
            }
            Refreshed::Other => {
                self.forget_bytecode_in_memory(&[]);
                self.set_vm(None);
                self.find_vm();
            }
        }
    }

    /// Forgets what was found in memory and disagrees with what the VM publishes now.
    fn forget_bytecode_in_memory(&mut self, published: &[PublishedBytecode]) {
        self.process
            .forget_memory_dexes(|start, end, time| match time {
                Some(time) => !published
                    .iter()
                    .any(|code| code.start == start && code.time == time),
                // The VM need not know what was found, but what it publishes now is newer.
                None => published
                    .iter()
                    .any(|code| code.start < end && start < code.start.saturating_add(code.size)),
            });
    }

    /// Returns true if a VM's library or tunnel is mapped, and its layout is not known yet.
    pub fn awaits_vm(&self) -> bool {
        self.vm.is_none()
            && self.vm_problem.is_none()
            && (!self.process.tunnels().is_empty()
                || self
                    .process
                    .elf_images()
                    .any(|elf| self.kinds.is_announced_by(&elf.path)))
    }

    /// Returns true if its VM has begun to describe itself, and the description could not be read yet.
    pub fn has_unread_tunnel(&self) -> bool {
        !self.process.tunnels().is_empty() && self.awaits_vm()
    }

    /// Stops using the VM, because its layout led to no thread's frames in all of these samples: it is the layout of another VM.
    pub fn refuse_vm(&mut self, samples: u32) {
        let Some(vm) = self.vm.clone() else { return };
        self.set_vm(None);
        let problem = format!(
            "the layout known by {} matched none of {samples} samples in the interpreter; it is not used",
            vm.layout_source()
        );
        tracing::warn!("process {}: {problem}", self.pid());
        self.set_problem(problem);
    }

    /// Returns the folder of the VM's library, if the folder contains nothing but a VM.
    pub fn vm_directory(&self) -> Option<std::path::PathBuf> {
        let mut libraries = self.process.elf_images();
        libraries.find_map(|elf| {
            let parent = elf.path.parent()?;
            let is_own = parent.file_name().is_some_and(|name| name == "android")
                || parent.starts_with("/apex");
            (is_own && self.kinds.is_library(&elf.path)).then(|| parent.to_owned())
        })
    }

    /// Returns true if code at an address outside a known VM's code may be an interpreter: in the library of a VM that cannot be used, and
    /// anywhere while the VM is describing itself.
    pub(crate) fn may_be_interpreter(&self, address: u64) -> bool {
        match self.vm_problem {
            Some(_) => self.is_in_library(address, |path| self.kinds.is_announced_by(path)),
            None => self.has_unread_tunnel(),
        }
    }

    /// Returns true if code at an address may have been called by a method that cannot be found yet: the VM, which executes methods in its
    /// library, is starting.
    pub(crate) fn is_in_starting_vm(&self, address: u64) -> bool {
        let executes =
            |path: &Path| self.kinds.is_library(path) && !self.kinds.describes_itself(path);
        self.is_vm_starting && self.is_in_library(address, executes)
    }

    /// Returns true if an address is in a library that is a VM's by its name.
    pub(crate) fn is_in_vm_library(&self, address: u64) -> bool {
        self.is_in_library(address, |path| self.kinds.is_library(path))
    }

    fn is_in_library(&self, address: u64, test: impl Fn(&Path) -> bool) -> bool {
        let mapped = self.space().at(address);
        mapped.is_some_and(
            |mapped| matches!(&mapped.image, ProcessImage::Elf(elf) if test(&elf.path)),
        )
    }

    /// Adds a mapping. Returns true if it may be a VM's, so that one should be looked for.
    pub fn map(&mut self, images: &mut Images, mapped: &KernelMapping<'_>) -> bool {
        match self.process.map(images, mapped) {
            NewMapping::Tunnel => true,
            NewMapping::Elf => self.space().iter().any(|part| {
                let is_new = part.start < mapped.end && mapped.start < part.end;
                is_new && matches!(&part.image, ProcessImage::Elf(elf) if self.kinds.is_announced_by(&elf.path))
            }),
            NewMapping::Other => false,
        }
    }

    /// Whether code of a VM is in this image.
    pub fn is_vm_image(&self, elf: &ElfImage) -> bool {
        let is_this = |image: &ProcessImage| matches!(image, ProcessImage::Elf(image) if std::ptr::eq(image.as_ref(), elf));
        let has_code = |vm: &dyn Vm| {
            self.process.space.iter().any(|mapped| {
                let (start, end) = (Address::new(mapped.start), Address::new(mapped.end));
                is_this(&mapped.image) && vm.has_code_in(start, end)
            })
        };
        self.kinds.is_library(&elf.path) || self.vm().is_some_and(has_code)
    }

    /// Applies what the VM publishes about its dex files: marks those of the framework, and maps those that no file shows.
    fn map_published_code(&mut self, vm: &dyn Vm) {
        for code in vm.published() {
            // A file of another format is read where it is mapped.
            let is_dex = code.kind == BytecodeKind::Dex;
            if is_dex
                && self
                    .process
                    .space
                    .at(code.start)
                    .is_none_or(|mapped| !matches!(mapped.image, ProcessImage::Code(_)))
            {
                self.process.map_dex_from_memory(
                    code.start,
                    code.size,
                    Some(code.time),
                    &code.location,
                );
            }
            if let Some(ProcessMapping {
                image: ProcessImage::Code(dex),
                ..
            }) = self.process.space.at(code.start)
                && code.flags & CODE_BOOT != 0
            {
                dex.layer.set(varid_model::Layer::Framework);
            }
        }
    }

    /// Returns the method of an entry of the VM's call counts: by the entry's description, otherwise by its pointer.
    pub fn counted_method(&mut self, call: &Call) -> Method {
        match dex::counted(&mut self.process, call) {
            Some(known) => known,
            None => self.method(call.method),
        }
    }

    /// Returns a forked child, which has this process's memory.
    pub fn fork(&self, pid: Pid) -> Self {
        Self {
            vm: self.vm.as_ref().map(|vm| vm.forked()),
            unclear_looks: 0,
            vm_problem: self.vm_problem.clone(),
            marked: self.marked,
            methods: self.methods.clone(),
            ..Self::of(self.process.fork(pid), self.kinds)
        }
    }

    /// Reads the mappings and the VM again, as those of a new process. The names of generated code and the spent budget are kept. If the
    /// process has exited, its last known mappings are kept.
    pub fn reread_mappings(&mut self, images: &mut Images) {
        if !self.process.has_readable_mappings() {
            return;
        }
        let pid = self.process.pid;
        let process = std::mem::replace(&mut self.process, Process::new(pid));
        *self = Self::of(process, self.kinds);
        self.process.reread_mappings(images);
        self.find_vm();
    }

    /// Starts anew, because the process now runs another program.
    pub fn exec(&mut self) {
        *self = Self::new(self.pid(), self.kinds);
    }
}

impl Methods for ManagedProcess {
    fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    fn method(&mut self, pointer: u64) -> Method {
        /// How often a method is read if its class does not lead to a dex file: the collector may be moving the class.
        const TRIES: usize = 3;
        if let Some(known) = self.methods.get(&pointer) {
            return known.clone();
        }
        let Some(vm) = self.vm.clone() else {
            return Method::Unknown;
        };
        if self.gone {
            return Method::Gone;
        }
        for _ in 0..TRIES {
            match vm.method(&mut self.process, pointer) {
                // Not cached: a later attempt may succeed.
                Ok(Method::Unknown) => {}
                Ok(method) => {
                    self.methods.insert(pointer, method.clone());
                    return method;
                }
                Err(error) => {
                    tracing::debug!(pid = self.pid().get(), pointer, %error, "method not resolved");
                    self.gone = !self.process.has_memory();
                    if self.gone {
                        return Method::Gone;
                    }
                }
            }
        }
        Method::Unknown
    }

    fn is_known(&self, pointer: u64) -> bool {
        self.methods.contains_key(&pointer)
    }

    fn insert(&mut self, pointer: u64, method: Method) {
        self.methods.insert(pointer, method);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::tests::world;
    use std::io::{Read, Write};
    use varid_process::CodeImage;
    use varid_tunnel::PublishedBytecode;
    use varid_tunnel::method::{CodeItem, MethodId};

    const PAGE: u64 = 4096;

    /// A dex file that only this process's memory holds, at the start of a page.
    struct Held {
        _memory: Vec<u8>,
        start: u64,
    }

    fn held() -> Held {
        let dex = world::dex();
        let dex = dex.bytecode.bytes();
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
        let mut process = ManagedProcess::new(Pid::new(std::process::id()), VmKinds::default());
        let dex = world::dex();
        let method = &dex.bytecode.methods()[0];
        let id = MethodId {
            dex_begin: held.start,
            method_index: method.index,
            code: CodeItem::Offset(method.code.start - 16),
        };
        match crate::described::dex::place(&mut process.process, &id) {
            Method::Known { image: found, .. } => assert_eq!(found.build_id, dex.build_id),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_dex_file_found_in_memory_is_reread_when_the_vm_describes_it() {
        let held = held();
        let mut managed = ManagedProcess::new(Pid::new(std::process::id()), VmKinds::default());
        let image = |managed: &ManagedProcess| -> Option<Rc<CodeImage>> {
            match managed.space().at(held.start) {
                Some(ProcessMapping {
                    image: ProcessImage::Code(dex),
                    ..
                }) => Some(dex.clone()),
                _ => None,
            }
        };
        assert!(managed.process.has_bytecode_at(held.start + 0x80));
        let found = image(&managed).unwrap();
        let code = |start| PublishedBytecode {
            start,
            size: PAGE,
            time: varid_model::MonotonicNs::new(1),
            kind: varid_tunnel::BytecodeKind::Dex,
            flags: 0,
            location: "other.dex".to_owned(),
        };
        // The VM says something of other places.
        let rule = varid_tunnel::abi::Rule {
            kind: varid_tunnel::abi::RULE_LIST,
            ..Default::default()
        };
        let layout = varid_tunnel::abi::Layout::with_rules(&[rule]);
        let mut says = crate::Description::made_up(layout, Vec::new());
        says.codes.push(code(held.start - PAGE));
        managed.describe_vm_anew(&says);
        assert!(Rc::ptr_eq(&image(&managed).unwrap(), &found));
        // It says something of this one.
        says.codes.push(code(held.start));
        managed.describe_vm_anew(&says);
        assert!(image(&managed).is_none_or(|now| !Rc::ptr_eq(&now, &found)));
    }

    #[test]
    fn the_mappings_of_a_process_that_has_ended_stay() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // It has all its mappings when it answers.
        let mut pipes = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        pipes.0.write_all(b"?").unwrap();
        pipes.1.read_exact(&mut [0]).unwrap();
        let mut managed = ManagedProcess::new(Pid::new(child.id()), VmKinds::default());
        let mut images = Images::default();
        managed.reread_mappings(&mut images);
        let before = managed.space().iter().count();
        assert!(before > 0);
        child.kill().unwrap();
        child.wait().unwrap();
        managed.reread_mappings(&mut images);
        assert_eq!(managed.space().iter().count(), before);
    }
}
