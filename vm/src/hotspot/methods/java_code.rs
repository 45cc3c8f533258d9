//! What does the code of a process's HotSpot execute? Reads it once, while it exists, and keeps it.

use super::blob::CodeBlob;
use super::bounded::BoundedMap;
use super::compiled::CompiledMethod;
use super::error::{MethodError, Result};
use super::frames::{JavaFrame, JavaFrames};
use super::ids::{CodeKey, CompileId, MethodPointer};
use super::java_method::{JavaMethod, MethodIdentity, MethodReader};
use super::pages::ReadPages;
use crate::hotspot::jvm::Jvm;
use std::collections::BTreeMap;
use std::rc::Rc;
use varid_model::{Address, FrameAddress};
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
    compiled: BoundedMap<CodeKey, Result<Rc<CompiledCode>>>,
    methods: BoundedMap<MethodPointer, (MethodIdentity, Rc<JavaMethod>)>,
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
        Self {
            jvm,
            compiled: BoundedMap::new(MAX_COMPILED),
            methods: BoundedMap::new(MAX_METHODS),
        }
    }

    /// The VM.
    pub fn jvm(&self) -> &Jvm {
        &self.jvm
    }

    /// Finds the blob that has an address now.
    ///
    /// # Errors
    ///
    /// No blob has it, or the memory cannot be read or contradicts itself.
    pub fn blob_at(&self, address: Address, memory: &dyn Memory) -> Result<CodeBlob, MethodError> {
        CodeBlob::find(&self.jvm, address, memory)
    }

    /// Returns the key of the compiled method that a blob has now.
    ///
    /// # Errors
    ///
    /// The memory cannot be read.
    pub fn key_of(&self, blob: &CodeBlob, memory: &dyn Memory) -> Result<CodeKey, MethodError> {
        let blob = blob.memory.start;
        let compile_id = CompileId::read(&self.jvm, blob, memory)?;
        Ok(CodeKey { blob, compile_id })
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
        memory: &dyn Memory,
    ) -> Result<Rc<CompiledCode>, MethodError> {
        if let Some(known) = self.compiled.get(&key) {
            return known;
        }
        let read = self.read_compiled(key, memory).map(Rc::new);
        let size = read.as_ref().map_or(ERROR, |code| code.size());
        self.compiled.insert(key, read.clone(), size);
        read
    }

    fn read_compiled(&mut self, key: CodeKey, memory: &dyn Memory) -> Result<CompiledCode> {
        let expected = Some(key.compile_id);
        let compiled = CompiledMethod::read(&self.jvm, key.blob, expected, memory)?;
        let pages = ReadPages::of(memory);
        let pointers = compiled.methods().into_iter();
        let methods = pointers.map(|pointer| (pointer, self.method(pointer, &pages)));
        let methods = methods.collect();
        // The classes of code that is in use are loaded: the methods were still those that it refers to.
        compiled.check_current(&self.jvm, memory)?;
        Ok(CompiledCode { compiled, methods })
    }

    /// Returns the method that a pointer leads to now.
    ///
    /// # Errors
    ///
    /// The memory cannot be read, or contradicts itself.
    pub fn method(
        &mut self,
        pointer: MethodPointer,
        memory: &dyn Memory,
    ) -> Result<Rc<JavaMethod>, MethodError> {
        let reader = MethodReader {
            jvm: &self.jvm,
            memory,
        };
        let known = self.methods.get(&pointer);
        let identity = match (reader.identity(pointer), known) {
            // The process has ended: it is the method that it was.
            (Err(MethodError::Memory { .. }), Some((_, method))) => return Ok(method),
            (identity, known) => {
                let identity = identity?;
                if let Some((_, method)) = known.filter(|(known, _)| *known == identity) {
                    return Ok(method);
                }
                identity
            }
        };
        let method = Rc::new(reader.method(&identity)?);
        let size = method.size().saturating_add(size_of::<MethodIdentity>());
        let entry = (identity, method.clone());
        self.methods.insert(pointer, entry, size);
        Ok(method)
    }
}
