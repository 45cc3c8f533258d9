//! Finds the compiled code at an address, and the methods that a frame of it stands for.
//!
//! Code of the JIT is found through the VM's own map, and copied from the process when it is first sampled. Code of an oat file is found
//! through the file's tables.

mod bytecode_frames;
mod code_cache;
mod frame_rows;
mod jit_code;
mod jit_history;
mod jit_lookup;
mod known_code;
mod method;
mod oat_code;
mod oat_dex_files;
mod recent_code;
#[cfg(test)]
mod testing;

use crate::art::code_format::CodeFormat;
use crate::seam::stack_copy::stack_of;
use crate::seam::{CodeChange, FrameMethods, Methods, VmCompiler, WalkedCompiledFrame};
use bytecode_frames::frames_of;
use jit_code::JitCode;
use known_code::{CacheMapping, CodeAt, KnownCode};
use method::CompiledMethod;
use oat_code::OatCode;
use std::cell::{Cell, RefCell};
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;
use varid_model::{Address, FrameAddress, MapsEntry, MonotonicNs, Pid, Reason, maps_entries};
use varid_process::reader::{self, ForeignMemory};
use varid_process::{AddressSpace, ElfImage, Process, ProcessImage, ProcessMapping};
use varid_shim::CapturedSample;
use varid_tunnel::abi::Rule;
use varid_unwind::{CodeRule, NativeFrame, StackSlice};

/// How often the first code of a VM is looked for in its process's memory map, once in each turn of the session. ART maps the cache of its JIT
/// some milliseconds after the library and the tunnel that it is found by.
const FIRST_CODE_LOOKS: u32 = 16;

/// The compiled code of a process, where it was sampled.
#[derive(Debug)]
pub(super) struct CompiledCode {
    jit: RefCell<JitCode>,
    rule: Rule,
    known: RefCell<KnownCode>,
    oats: RefCell<Vec<KnownOat>>,
    /// [`AddressSpace::changes`] at the last lookup of a sample.
    mapped: Cell<u64>,
    /// Counts batches of samples. What is known about the JIT's code is compared with the process once in each.
    batch: Cell<u64>,
    /// The process has mapped compiled code.
    is_there: Cell<bool>,
    /// The addresses of its first code, if that was found before the record of its mapping was read.
    first: RefCell<Option<Range<u64>>>,
    /// How often it may still be looked for.
    looks: Cell<u32>,
}

/// An oat file.
#[derive(Debug)]
struct KnownOat {
    elf: Rc<ElfImage>,
    /// None if it cannot be read.
    code: Option<Rc<OatCode>>,
    /// [`AddressSpace::changes`] when it was read, or when reading it would have given the same.
    read: u64,
}

impl KnownOat {
    /// Returns true if the process still has it mapped.
    fn is_mapped(&self, space: &AddressSpace) -> bool {
        let is_this = |image: &ProcessImage| matches!(image, ProcessImage::Elf(elf) if Rc::ptr_eq(elf, &self.elf));
        space.iter().any(|mapped| is_this(&mapped.image))
    }

    /// Returns true if it was read with all dex files that are mapped now.
    fn is_current(&mut self, space: &AddressSpace) -> bool {
        let changes = space.changes();
        if self.read == changes {
            return true;
        }
        let code = self.code.as_ref();
        let has_more = code.is_some_and(|code| code.would_have_more(&self.elf.path, space));
        if !has_more {
            self.read = changes;
        }
        !has_more
    }
}

impl CompiledCode {
    /// For a VM whose compiled frames follow this rule. `watched`: see [`Self::watch`].
    pub(super) fn new(rule: Rule, format: CodeFormat, watched: Option<u64>) -> Self {
        let jit = JitCode::new(rule, format);
        jit.watch(watched);
        Self {
            jit: RefCell::new(jit),
            rule,
            known: RefCell::default(),
            oats: RefCell::default(),
            mapped: Cell::new(0),
            batch: Cell::new(0),
            is_there: Cell::new(false),
            first: RefCell::default(),
            looks: Cell::new(FIRST_CODE_LOOKS),
        }
    }

    /// The rule of its frames.
    pub(super) fn frame_rule(&self) -> &Rule {
        &self.rule
    }

    /// Updates whether the process has mapped compiled code. Returns the range of addresses that contains all of it.
    pub(super) fn look_for_it(&self, space: &AddressSpace) -> Option<Range<u64>> {
        let is_code = |mapped: &&ProcessMapping| match &mapped.image {
            ProcessImage::Elf(elf) => may_be_code(&elf.path),
            ProcessImage::Other(path) => may_be_code(path),
            ProcessImage::Code(_) => false,
        };
        let mapped = space.iter().filter(is_code);
        let mapped = mapped.map(|mapped| mapped.start..mapped.end);
        let first = self.first.borrow().clone();
        let range = mapped.chain(first).reduce(union);
        self.is_there.set(range.is_some());
        range
    }

    /// Reads the number at `address` with every request to the JIT.
    pub(super) fn watch(&self, address: Option<u64>) {
        self.jit.borrow().watch(address);
    }

    /// What is known about the JIT's code may be outdated for the next samples. Returns the watched number, if it was read for these
    /// samples.
    pub(super) fn end_batch(&self, pid: Pid) -> Option<u32> {
        self.batch.set(self.batch.get().wrapping_add(1));
        self.has_code().then(|| self.observe(pid)).flatten()
    }

    /// Records which code is replaced from now on. Returns the watched number, if it was read since the last call.
    pub(super) fn observe(&self, pid: Pid) -> Option<u32> {
        let memory = ForeignMemory::new(pid);
        self.jit.borrow_mut().begin_batch(&memory)
    }

    /// Returns the process's code at an address.
    fn at(&self, address: Address, process: &Process) -> Option<CodeAt> {
        let place = place_of(address, &process.space)?;
        let changes = process.space.changes();
        if self.mapped.replace(changes) != changes {
            self.known.borrow_mut().forget_mapped();
            let mut oats = self.oats.borrow_mut();
            oats.retain(|known| known.is_mapped(&process.space));
        }
        let known = self.known.borrow().at(address).cloned();
        let batch = self.batch.get();
        // Another code cache may be mapped at this address by now.
        let cache = match place {
            Place::CodeCache(cache) => cache,
            Place::Oat(..) => CacheMapping::default(),
        };
        let is_current = |known: &&CodeAt| {
            known
                .seen
                .is_none_or(|seen| seen.batch == batch && seen.cache == cache)
        };
        if known.as_ref().filter(is_current).is_some() {
            return known;
        }
        let (code, until) = match place {
            Place::Oat(elf, mapped) => {
                let method = self.oat_method(address.get(), elf, mapped, &process.space);
                (CodeAt::new(address, method, None), None)
            }
            Place::CodeCache(cache) => {
                let memory = ForeignMemory::new(process.pid);
                let place = (address, cache);
                self.jit.borrow().code_at(&memory, place, batch, known)
            }
        };
        self.known.borrow_mut().keep(code.clone(), until);
        Some(code)
    }

    /// Returns the code that a native frame of a sample executes, if it is known.
    fn of_frame(
        &self,
        frame: &NativeFrame,
        sample: &CapturedSample,
        process: &Process,
    ) -> Option<Rc<CompiledMethod>> {
        let at_sp = |code: &CompiledMethod| at_sp(code, frame, stack_of(sample));
        self.at_time(frame.lookup(), sample.time, at_sp, process)
    }

    /// Returns the code that was at an address at a time, or whose method is the frame's method `at_sp`.
    fn at_time(
        &self,
        address: Address,
        time: MonotonicNs,
        at_sp: impl Fn(&CompiledMethod) -> Option<u64>,
        process: &Process,
    ) -> Option<Rc<CompiledMethod>> {
        let code = self.at(address, process)?;
        if let Some(method) = code.of_frame(time, &at_sp) {
            return Some(method.clone());
        }
        let known = self.known.borrow();
        known.replaced(address, time, at_sp).cloned()
    }

    /// Returns the method of an oat file whose code contains an address.
    fn oat_method(
        &self,
        address: u64,
        elf: &Rc<ElfImage>,
        mapped: &ProcessMapping,
        space: &AddressSpace,
    ) -> Option<Rc<CompiledMethod>> {
        let oat = self.oat(elf, space)?;
        let offset = mapped.offset_of(address);
        let own = elf.contents()?.module.borrow().address_of_offset(offset)?;
        let bias = address.wrapping_sub(own.get());
        oat.method_at(own.get(), bias).map(Rc::new)
    }

    /// Returns the code of an oat file. It is read again if dex files that it lacked may be mapped by now.
    fn oat(&self, elf: &Rc<ElfImage>, space: &AddressSpace) -> Option<Rc<OatCode>> {
        let mut oats = self.oats.borrow_mut();
        let mut known = oats.iter_mut().find(|known| Rc::ptr_eq(&known.elf, elf));
        if let Some(known) = known.as_mut()
            && known.is_current(space)
        {
            return known.code.clone();
        }
        // If it cannot be read again, the previous result is kept.
        let code = OatCode::read(elf, space).map(Rc::new);
        let code = code.or_else(|| known.and_then(|known| known.code.clone()));
        oats.retain(|known| !Rc::ptr_eq(&known.elf, elf));
        oats.push(KnownOat {
            elf: elf.clone(),
            code: code.clone(),
            read: space.changes(),
        });
        code
    }
}

impl VmCompiler for CompiledCode {
    fn has_code(&self) -> bool {
        self.is_there.get()
    }

    /// Everything in the JIT's cache is code, including code that is no longer known.
    fn is_code(&self, address: Address, process: &Process) -> bool {
        match place_of(address, &process.space) {
            Some(Place::CodeCache(_)) => true,
            Some(Place::Oat(..)) => {
                let code = self.at(address, process);
                code.is_some_and(|code| code.method.is_some())
            }
            None => false,
        }
    }

    fn finds_first_code(&self, pid: Pid) -> bool {
        let looks = self.looks.get();
        let mut first = self.first.borrow_mut();
        if self.has_code() || first.is_some() || looks == 0 {
            return false;
        }
        self.looks.set(looks.saturating_sub(1));
        let maps = reader::contents(pid, "maps").unwrap_or_default();
        let is_code = |map: &MapsEntry<'_>| may_be_code(Path::new(OsStr::from_bytes(map.path)));
        let code = maps_entries(&maps).filter(is_code);
        let code = code.map(|map| map.range.start.get()..map.range.end.get());
        *first = code.reduce(union);
        first.is_some()
    }

    fn change(&self) -> CodeChange {
        match self.has_code() {
            true => self.jit.borrow().change(),
            false => CodeChange::None,
        }
    }

    fn may_be_in(&self, path: &Path) -> bool {
        may_be_code(path)
    }

    fn unwind_rule(
        &self,
        frame: &NativeFrame,
        sample: &CapturedSample,
        process: &Process,
    ) -> Option<CodeRule> {
        let code = self.of_frame(frame, sample, process)?;
        Some(code.rule(frame.lookup()))
    }

    /// Methods that the compiler has inlined are frames of their own.
    fn native_frame(
        &self,
        frame: &NativeFrame,
        sample: &CapturedSample,
        process: &mut dyn Methods,
    ) -> Option<Result<FrameMethods, Reason>> {
        let Some(code) = self.of_frame(frame, sample, process.process()) else {
            let place = place_of(frame.lookup(), &process.process().space);
            let is_cached = matches!(place, Some(Place::CodeCache(_)));
            return is_cached.then(|| Err(unknown_code(process)));
        };
        let at_sp = at_sp(&code, frame, stack_of(sample));
        Some(frames_of(&code, at_sp, frame.sp, frame.address, process))
    }

    /// The result is an error if the code of the method no longer exists, or the compiler did not record the call.
    fn walked_frame(
        &self,
        frame: WalkedCompiledFrame,
        process: &mut dyn Methods,
    ) -> Result<FrameMethods, Reason> {
        if frame.returns == Address::default() {
            return Err(Reason::UnknownCompiledCode);
        }
        let returns = FrameAddress::Return(frame.returns);
        let at_sp = Some(frame.method.get());
        let code = self.at_time(returns.lookup(), frame.time, |_| at_sp, process.process());
        let code = code.ok_or_else(|| unknown_code(process))?;
        frames_of(&code, at_sp, frame.sp, returns, process)
    }
}

/// Returns the word at the stack pointer of a frame of some code, if the frame is complete.
fn at_sp(code: &CompiledMethod, frame: &NativeFrame, stack: StackSlice<'_>) -> Option<u64> {
    let distance = code.method_at(frame.address)?;
    let at = frame.sp.get().checked_add(distance.into())?;
    stack.word(frame.regs.machine(), Address::new(at))
}

/// The kinds of places for compiled code.
enum Place<'a> {
    /// In a JIT's code cache.
    CodeCache(CacheMapping),
    /// In an oat file, by its mapping.
    Oat(&'a Rc<ElfImage>, &'a ProcessMapping),
}

/// Returns the place of an address. None if no compiled code can be there.
fn place_of(address: Address, space: &AddressSpace) -> Option<Place<'_>> {
    let mapped = space.at(address.get())?;
    match &mapped.image {
        ProcessImage::Other(path) if may_be_code(path) => {
            Some(Place::CodeCache(CacheMapping::of(mapped)))
        }
        ProcessImage::Elf(elf) if is_oat(&elf.path) => Some(Place::Oat(elf, mapped)),
        ProcessImage::Other(_) | ProcessImage::Elf(_) | ProcessImage::Code(_) => None,
    }
}

/// Returns why code in the JIT's cache is not known: it was freed, or the process has ended.
fn unknown_code(process: &mut dyn Methods) -> Reason {
    match process.process().has_memory() {
        true => Reason::UnknownCompiledCode,
        false => Reason::VmGone,
    }
}

/// Returns the smallest range that contains both.
fn union(one: Range<u64>, other: Range<u64>) -> Range<u64> {
    one.start.min(other.start)..one.end.max(other.end)
}

/// Returns true if a mapping of this path may contain compiled code: an oat file, or the JIT's code cache.
fn may_be_code(path: &Path) -> bool {
    let name = path.to_str().unwrap_or_default();
    is_oat(path)
        || ["jit-cache", "jit-code-cache"]
            .iter()
            .any(|cache| name.contains(cache))
}

/// Returns true if the name of an ELF file is that of an oat file.
fn is_oat(path: &Path) -> bool {
    let path = path.as_os_str().as_encoded_bytes();
    path.ends_with(b".oat") || path.ends_with(b".odex")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    #[test]
    fn the_first_code_is_found_in_the_memory_map() {
        let compiled = || CompiledCode::new(Rule::default(), CodeFormat::Android11, None);
        let own = compiled();
        for _ in 0..=FIRST_CODE_LOOKS {
            assert!(!own.finds_first_code(Pid::new(std::process::id())));
        }
        assert_eq!(own.looks.get(), 0);
        // A program with the name of an oat file. It is mapped when it answers.
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("boot.oat");
        std::fs::copy("/bin/cat", &program).unwrap();
        let mut command = Command::new(&program);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(b"?").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let other = compiled();
        let found = other.finds_first_code(Pid::new(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        let range = other.look_for_it(&AddressSpace::default()).unwrap();
        assert!(found && range.start < range.end);
        assert!(other.has_code() && !other.finds_first_code(Pid::new(child.id())));
    }
}
