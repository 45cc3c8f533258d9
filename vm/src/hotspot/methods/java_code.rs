//! What does the code of a process's HotSpot execute? Reads it once, while it exists, and keeps it.

use super::blob::{BlobReader, CodeBlob};
use super::bounded::BoundedMap;
use super::compiled::CompiledMethod;
use super::error::{MethodError, Result};
use super::frames::{JavaFrame, JavaFrames};
use super::gathered::{GatheredMemory, NotingMemory, SeenMemory};
use super::ids::{CodeKey, MethodPointer};
use super::java_method::{JavaMethod, MethodIdentity, MethodNames, MethodReader};
use super::reuse::{REUSED_AFTER, REUSED_SOON_AFTER, UNLOADS_AGAIN, before};
use super::seen_pointers::SeenPointers;
use crate::hotspot::jvm::Jvm;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use varid_model::{Address, FrameAddress, MonotonicNs};
use varid_process::clock;
use varid_process::reader::BatchMemory;
use varid_tunnel::Memory;

/// Bytes of compiled methods that are kept.
const MAX_COMPILED: usize = 32 << 20;
/// Bytes of methods that are kept.
const MAX_METHODS: usize = 16 << 20;
/// The size of an error that is kept in place of a compiled method, in bytes.
const ERROR: usize = 128;

/// The code of a process's HotSpot, with what was read of it.
///
/// The VM frees code and reuses its memory within a second. So a compiled method is read as soon as it was sampled, and kept under its
/// blob and its compilation: it stays right when that memory has other code.
#[derive(Debug)]
pub struct JavaCode {
    jvm: Rc<Jvm>,
    clock: fn() -> MonotonicNs,
    blobs: BlobReader,
    compiled: BoundedMap<CodeKey, Result<Rc<CompiledCode>>>,
    methods: BoundedMap<MethodPointer, KnownMethod>,
    /// The pointers to all methods that were read.
    pointers: SeenPointers,
    /// The VM takes longer than this to put another method into the place of one that was executed, if it unloads no class.
    reused_after: Duration,
    /// How many classes the VM has unloaded. None if it does not say so.
    unloaded_classes: Option<u64>,
    /// When that was seen to have changed.
    unloaded: Option<MonotonicNs>,
}

/// A method, with what says whether a pointer still leads to it.
#[derive(Debug)]
struct ReadMethod {
    identity: MethodIdentity,
    names: MethodNames,
    /// The memory that identity and names were read from. While it is as it was, so are these.
    seen: SeenMemory,
    /// When it was as it was last.
    last: Cell<MonotonicNs>,
    method: Rc<JavaMethod>,
}

impl ReadMethod {
    fn size(&self) -> usize {
        let sizes = [self.method.size(), self.names.size(), self.seen.size()];
        sizes
            .into_iter()
            .fold(size_of::<Self>(), usize::saturating_add)
    }
}

/// A method that is kept.
#[derive(Debug, Clone)]
struct KnownMethod {
    read: Rc<ReadMethod>,
    /// The pointer led to it from this time on.
    since: MonotonicNs,
}

/// What a pointer leads to.
#[derive(Debug, Clone)]
pub(in crate::hotspot) struct FoundMethod {
    pub(in crate::hotspot) method: Rc<JavaMethod>,
    /// It led to it from this time on.
    pub(in crate::hotspot) since: MonotonicNs,
}

/// What was read of code and methods.
pub(in crate::hotspot) struct ReadCode {
    compiled: Vec<(CodeKey, Result<CompiledCode>)>,
    methods: BTreeMap<MethodPointer, Result<Rc<ReadMethod>>>,
}

/// A compiled method with the methods that are inlined into it.
#[derive(Debug, Clone)]
pub struct CompiledCode {
    /// The compiled method.
    pub compiled: CompiledMethod,
    methods: BTreeMap<MethodPointer, Result<Rc<JavaMethod>>>,
}

impl CompiledCode {
    /// Returns the methods that an address of its code executes.
    ///
    /// # Errors
    ///
    /// Its debug information contradicts itself.
    pub fn frames_at(&self, address: FrameAddress) -> Result<JavaFrames, MethodError> {
        let found = self.compiled.scopes_at(address)?;
        let frames = found.scopes.iter().map(|scope| JavaFrame {
            method: self.method(scope.method),
            bci: scope.bci,
        });
        Ok(JavaFrames {
            precision: found.precision,
            frames: frames.collect(),
        })
    }

    /// Returns the method that was compiled.
    ///
    /// # Errors
    ///
    /// It could not be read.
    pub fn compiled_method(&self) -> Result<Rc<JavaMethod>, MethodError> {
        self.method(self.compiled.method)
    }

    fn method(&self, pointer: MethodPointer) -> Result<Rc<JavaMethod>> {
        let known = self.methods.get(&pointer).cloned();
        known.unwrap_or(Err(MethodError::implausible(
            "a scope's method",
            pointer.0.get(),
            "it is not among those of the compiled method",
        )))
    }

    fn size(&self) -> usize {
        let methods = self.methods.values().flatten();
        let methods = methods.map(|method| method.size().saturating_add(ERROR));
        self.compiled
            .size()
            .saturating_add(methods.fold(0, usize::saturating_add))
    }
}

impl JavaCode {
    /// The code of a VM, of which nothing has been read yet.
    pub fn new(jvm: Rc<Jvm>) -> Self {
        Self::with_clock(jvm, clock::now)
    }

    pub(in crate::hotspot) fn with_clock(jvm: Rc<Jvm>, clock: fn() -> MonotonicNs) -> Self {
        Self {
            blobs: BlobReader::new(Rc::clone(&jvm)),
            unloaded_classes: jvm.unloaded_classes.map(|classes| classes.described),
            unloaded: None,
            jvm,
            clock,
            compiled: BoundedMap::new(MAX_COMPILED),
            methods: BoundedMap::new(MAX_METHODS),
            pointers: SeenPointers::default(),
            reused_after: REUSED_AFTER,
        }
    }

    /// The VM.
    pub fn jvm(&self) -> &Jvm {
        &self.jvm
    }

    /// The VM takes longer than this to put other code into the place of code that was executed.
    pub(in crate::hotspot) fn code_reused_after(&self) -> Duration {
        match self.replaces_methods() {
            true => REUSED_SOON_AFTER,
            false => REUSED_AFTER,
        }
    }

    /// Returns true if the VM replaces methods, perhaps all the time: it has just unloaded classes, or one was found in the place of another one
    /// without that.
    pub(in crate::hotspot) fn replaces_methods(&self) -> bool {
        let is_recent = |unloaded| (self.clock)().since(unloaded) < UNLOADS_AGAIN;
        self.reused_after != REUSED_AFTER || self.unloaded.is_some_and(is_recent)
    }

    /// Finds the blob that has an address now.
    ///
    /// # Errors
    ///
    /// No blob has it, or the memory cannot be read or contradicts itself.
    pub fn blob_at(&self, address: Address, memory: &dyn Memory) -> Result<CodeBlob, MethodError> {
        self.blobs.find(address, memory)
    }

    /// Returns true if a blob is still where it was found, and the same one.
    pub(in crate::hotspot) fn has_blob(
        &self,
        blob: &CodeBlob,
        memory: &dyn Memory,
    ) -> Result<bool> {
        self.blobs.is_current(blob, memory)
    }

    /// Returns a compiled method with all methods that are inlined into it. The first call reads it from the process; later ones return
    /// the same.
    ///
    /// # Errors
    ///
    /// The code was replaced before it was read, cannot be read, or contradicts itself.
    pub fn compiled(
        &mut self,
        key: CodeKey,
        memory: &dyn BatchMemory,
    ) -> Result<Rc<CompiledCode>, MethodError> {
        if let Some(known) = self.compiled.get(&key) {
            return known;
        }
        let read = GatheredMemory::of(memory).run(|memory| self.read(&[key], &[], memory));
        let found = self.keep(read, memory).compiled.pop();
        found.map_or(Err(MethodError::NoCode(key.blob)), |(_, found)| found)
    }

    /// Returns true if a compiled method was read, whether there was one or not.
    pub(in crate::hotspot) fn has_compiled(&self, key: &CodeKey) -> bool {
        self.compiled.contains(key)
    }

    /// Returns the method that a pointer leads to now.
    ///
    /// # Errors
    ///
    /// The memory cannot be read, or contradicts itself.
    pub fn method(
        &mut self,
        pointer: MethodPointer,
        memory: &dyn BatchMemory,
    ) -> Result<Rc<JavaMethod>, MethodError> {
        let read = GatheredMemory::of(memory).run(|memory| self.read(&[], &[pointer], memory));
        let found = self.keep(read, memory).methods.remove(&pointer);
        let found = found.unwrap_or(Err(MethodError::NoCode(pointer.0)));
        found.map(|found| found.method)
    }

    /// Returns true if a method was read that this pointer led to.
    pub(in crate::hotspot) fn has_method(&self, pointer: MethodPointer) -> bool {
        self.pointers.may_have(pointer) && self.methods.contains(&pointer)
    }

    /// Reads compiled methods, with those that are inlined into them, and methods. It goes on after an error, so that what is lacking can be read at
    /// once.
    pub(in crate::hotspot) fn read(
        &self,
        keys: &[CodeKey],
        pointers: &[MethodPointer],
        memory: &GatheredMemory<'_>,
    ) -> ReadCode {
        let mut methods = BTreeMap::new();
        let mut method = |pointer: MethodPointer| {
            let found = methods.entry(pointer);
            let found = found.or_insert_with(|| self.read_method(pointer, memory));
            let found: &Result<Rc<ReadMethod>> = found;
            match found {
                Ok(read) => Ok(Rc::clone(&read.method)),
                Err(error) => Err(error.clone()),
            }
        };
        let compiled = keys.iter().map(|key| {
            let compiled = CompiledMethod::read(&self.jvm, *key, memory);
            let code = compiled.map(|compiled| {
                let pointers = compiled.methods().into_iter();
                let methods = pointers.map(|pointer| (pointer, method(pointer)));
                let methods = methods.collect();
                CompiledCode { compiled, methods }
            });
            (*key, code)
        });
        let compiled = compiled.collect();
        for pointer in pointers {
            let _ = method(*pointer);
        }
        ReadCode { compiled, methods }
    }

    /// Reads the method that a pointer leads to, unless it is known.
    fn read_method(
        &self,
        pointer: MethodPointer,
        memory: &GatheredMemory<'_>,
    ) -> Result<Rc<ReadMethod>> {
        let reader = MethodReader {
            jvm: &self.jvm,
            memory,
        };
        let known = self.methods.peek(&pointer).map(|known| &known.read);
        if let Some(known) = known {
            match memory.still_has(&known.seen) {
                Some(true) => return Ok(Rc::clone(known)),
                Some(false) => {}
                // All of that is requested at once.
                None => return Err(MethodError::OtherMethod(pointer.0)),
            }
        }
        let identity = reader.identity(pointer, known.map(|known| &known.identity));
        let names = known.map(|known| reader.names(&known.identity, Some(&known.names)));
        let (identity, known) = match (identity, known.zip(names)) {
            (Err(MethodError::Memory { .. }), Some((known, _))) if self.is_as_before(memory) => {
                return Ok(Rc::clone(known));
            }
            (identity, known) => (identity?, known),
        };
        if let Some((known, names)) = known
            && known.identity == identity
        {
            match names {
                Err(MethodError::Memory { .. }) if self.is_as_before(memory) => {
                    return Ok(Rc::clone(known));
                }
                Err(error) => return Err(error),
                // What has changed beside it says nothing of it.
                Ok(names) if names == known.names => {
                    return Ok(Rc::new(ReadMethod {
                        identity,
                        names,
                        seen: self.seen(pointer, memory)?,
                        last: Cell::default(),
                        method: Rc::clone(&known.method),
                    }));
                }
                Ok(_) => {}
            }
        }
        let (names, method) = reader.method(&identity)?;
        Ok(Rc::new(ReadMethod {
            identity,
            names,
            seen: self.seen(pointer, memory)?,
            last: Cell::default(),
            method: Rc::new(method),
        }))
    }

    /// Returns the memory that identifies a method and has its names, all of which was read before.
    fn seen(&self, pointer: MethodPointer, memory: &dyn Memory) -> Result<SeenMemory> {
        let memory = NotingMemory::of(memory);
        let reader = MethodReader {
            jvm: &self.jvm,
            memory: &memory,
        };
        let identity = reader.identity(pointer, None)?;
        reader.names(&identity, None)?;
        Ok(memory.into_seen())
    }

    /// Returns true if what cannot be read of a method is what it was: the process has ended, as no variable of the VM's library can be read. A VM
    /// that runs unmaps the memory of classes that it has unloaded, and one that does so all the time has soon used it again.
    fn is_as_before(&self, memory: &dyn Memory) -> bool {
        let mut pointer = [0; 8];
        let variable = memory.read(self.jvm.thread_list.get(), &mut pointer);
        variable.is_err() && self.reused_after == REUSED_AFTER
    }

    /// Keeps what was read, after a check that the code has not been replaced meanwhile.
    pub(in crate::hotspot) fn keep(
        &mut self,
        read: ReadCode,
        memory: &dyn BatchMemory,
    ) -> KeptCode {
        let ReadCode { compiled, methods } = read;
        // The classes of code that is in use are loaded: the methods were still those that it refers to.
        let is_new = !methods.iter().all(|(pointer, read)| {
            let known = self.methods.peek(pointer).map(|known| &known.read.method);
            let read = read.as_ref().map(|read| &read.method).ok();
            let both = known.zip(read);
            both.is_some_and(|(known, read)| Rc::ptr_eq(known, read))
        });
        let (checks, unloaded_classes) = GatheredMemory::of(memory).run(|memory| {
            let checks = compiled.iter().map(|(_, code)| match code {
                Ok(code) => code.compiled.check_current(&self.jvm, memory),
                Err(error) => Err(error.clone()),
            });
            let checks = checks.collect::<Vec<_>>();
            let counter = self.jvm.unloaded_classes.filter(|_| is_new);
            (checks, counter.and_then(|counter| counter.now(memory)))
        });
        let mut kept = KeptCode::default();
        for ((key, code), check) in compiled.into_iter().zip(checks) {
            let code = check.and(code).map(Rc::new);
            let size = code.as_ref().map_or(ERROR, |code| code.size());
            // Code that cannot be read now may be readable later.
            let lasts = !matches!(
                code,
                Err(MethodError::Memory { .. } | MethodError::NotInstalled(_))
            );
            if lasts {
                self.compiled.insert(key, code.clone(), size);
            }
            kept.compiled.push((key, code));
        }
        let now = (self.clock)();
        if unloaded_classes.is_some() && unloaded_classes != self.unloaded_classes {
            self.unloaded_classes = unloaded_classes;
            self.unloaded = Some(now);
        }
        for (pointer, read) in methods {
            let found = read.map(|read| self.keep_method(pointer, read, now));
            kept.methods.insert(pointer, found);
        }
        kept
    }

    /// Keeps a method that was read before `now`.
    fn keep_method(
        &mut self,
        pointer: MethodPointer,
        read: Rc<ReadMethod>,
        now: MonotonicNs,
    ) -> FoundMethod {
        let method = Rc::clone(&read.method);
        let known = self.methods.get(&pointer);
        let last = known.as_ref().map(|known| known.read.last.get());
        read.last.set(now);
        let since = match known {
            Some(known) if Rc::ptr_eq(&known.read, &read) => {
                let since = known.since;
                return FoundMethod { method, since };
            }
            Some(known) if Rc::ptr_eq(&known.read.method, &method) => known.since,
            Some(_) if self.unloaded < last => {
                // What has been unloaded may stay for a while. Nothing else explains that.
                if self.unloaded < Some(before(now, UNLOADS_AGAIN)) {
                    self.reused_after = REUSED_SOON_AFTER;
                }
                now
            }
            Some(_) | None => self.there_since(now),
        };
        self.pointers.insert(pointer);
        let size = size_of::<KnownMethod>().saturating_add(read.size());
        self.methods
            .insert(pointer, KnownMethod { read, since }, size);
        FoundMethod { method, since }
    }

    /// Returns since when a method has been where it is first read `now`. What was executed there before may have been unloaded, and this one has
    /// come since: nothing is executed there in between.
    fn there_since(&self, now: MonotonicNs) -> MonotonicNs {
        let since = before(now, self.reused_after);
        self.unloaded.map_or(since, |unloaded| unloaded.max(since))
    }
}

/// What is kept of what was read.
#[derive(Debug, Default)]
pub(in crate::hotspot) struct KeptCode {
    /// In the order in which it was read.
    pub(in crate::hotspot) compiled: Vec<(CodeKey, Result<Rc<CompiledCode>>)>,
    /// Methods, those that are inlined included.
    pub(in crate::hotspot) methods: BTreeMap<MethodPointer, Result<FoundMethod>>,
}
