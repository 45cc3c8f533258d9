//! The code of a process's HotSpot that was seen, and how its frames are made.

use super::jvm::Jvm;
use super::layout::EntryPoints;
use super::member::Member;
use super::methods::{
    BlobKind, CodeBlob, CodeKey, CompiledCode, InterpreterFrame, JavaCode, JavaFrame, MethodError,
    MethodPointer, NamingLayout, Precision,
};
use super::unwinding::{CodeFrames, Prologue};
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::rc::Rc;
use varid_model::{Address, FrameAddress};
use varid_tunnel::Memory;

/// The most bytes of a blob's code that are read to see how its frames are made.
const MAX_CODE: u64 = 1 << 20;
/// The most blobs that are kept.
const MAX_BLOBS: usize = 1 << 14;

/// The code that was seen.
#[derive(Debug)]
pub(super) struct KnownCode {
    java: JavaCode,
    /// By address. Code is freed and its memory reused, so that this holds for a batch of samples.
    current: HashMap<Address, Result<Rc<KnownBlob>, MethodError>>,
    /// What was read last, by the address of its first byte.
    last: BTreeMap<Address, Rc<KnownBlob>>,
    blobs: HashMap<BlobKey, Rc<KnownBlob>>,
}

/// Identifies code: by its compilation, or by where it is if it is never freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum BlobKey {
    Compiled(CodeKey),
    Other(Address),
}

/// A code blob, and how its frames are made.
#[derive(Debug)]
pub(super) struct KnownBlob {
    blob: CodeBlob,
    key: Option<CodeKey>,
    /// The size of its frames in words. None if they have no fixed size.
    words: Option<u32>,
    /// Bytes from its first instruction to where it is entered without a check of the receiver's class.
    entry: u64,
    /// Bytes from its first instruction to where a frame is complete.
    complete: u64,
    code: OnceCell<Box<[u8]>>,
}

impl KnownCode {
    pub(super) fn new(jvm: Jvm, naming: NamingLayout) -> Self {
        Self {
            java: JavaCode::new(jvm, naming),
            current: HashMap::new(),
            last: BTreeMap::new(),
            blobs: HashMap::new(),
        }
    }

    /// Forgets which code is at which address now.
    pub(super) fn end_batch(&mut self) {
        self.current.clear();
        if self.blobs.len() > MAX_BLOBS {
            self.blobs.clear();
            self.last.clear();
        }
    }

    /// Returns the blob that has an address.
    pub(super) fn at(
        &mut self,
        address: Address,
        memory: &dyn Memory,
    ) -> Result<Rc<KnownBlob>, MethodError> {
        if let Some(known) = self.current.get(&address) {
            return known.clone();
        }
        let found = match self.read(address, memory) {
            // The process has ended, and its last samples are read now.
            Err(error @ MethodError::Memory { .. }) => self.last_at(address).ok_or(error),
            other => other,
        };
        if let Ok(blob) = &found {
            self.last.insert(blob.blob.memory.start, Rc::clone(blob));
        }
        self.current.insert(address, found.clone());
        found
    }

    /// Returns the blob that had an address when it was read last.
    fn last_at(&self, address: Address) -> Option<Rc<KnownBlob>> {
        let (_, blob) = self.last.range(..=address).next_back()?;
        let has_address = blob.blob.memory.contains(&address);
        has_address.then(|| Rc::clone(blob))
    }

    fn read(
        &mut self,
        address: Address,
        memory: &dyn Memory,
    ) -> Result<Rc<KnownBlob>, MethodError> {
        let blob = self.java.blob_at(address, memory)?;
        let key = match blob.kind.has_method() {
            true => Some(self.java.key_of(&blob, memory)?),
            false => None,
        };
        let place = key.map_or(BlobKey::Other(blob.memory.start), BlobKey::Compiled);
        if let Some(known) = self.blobs.get(&place) {
            return Ok(Rc::clone(known));
        }
        let known = Rc::new(KnownBlob::read(self.java.jvm(), blob, key, memory));
        self.blobs.insert(place, Rc::clone(&known));
        Ok(known)
    }

    /// Returns the compiled method that a blob is.
    pub(super) fn compiled(
        &mut self,
        blob: &KnownBlob,
        memory: &dyn Memory,
    ) -> Result<Rc<CompiledCode>, MethodError> {
        let key = blob.key.ok_or(MethodError::NoCode(blob.blob.code.start))?;
        self.java.compiled(key, memory)
    }

    /// Returns what an interpreter frame executes.
    pub(super) fn interpreted(
        &mut self,
        frame: InterpreterFrame,
        memory: &dyn Memory,
    ) -> Result<JavaFrame, MethodError> {
        self.java.interpreted(frame, memory)
    }

    /// Returns what a frame of the interpreter executes that is entering a method.
    pub(super) fn entered(
        &mut self,
        method: MethodPointer,
        memory: &dyn Memory,
    ) -> Result<JavaFrame, MethodError> {
        Ok(JavaFrame {
            method: Ok(self.java.method(method, memory)?),
            bci: None,
        })
    }

    /// Returns true if a call of Java code returns to an address of a blob.
    pub(super) fn is_call(
        &mut self,
        blob: &KnownBlob,
        returns: Address,
        memory: &dyn Memory,
    ) -> bool {
        if blob.blob.kind == BlobKind::Interpreter {
            return true;
        }
        let compiled = self.compiled(blob, memory);
        let frames = compiled.and_then(|code| code.frames_at(FrameAddress::Return(returns)));
        frames.is_ok_and(|frames| frames.precision == Precision::Exact)
    }
}

impl KnownBlob {
    /// Reads how the frames of a blob are made. What cannot be read is taken for code that makes none.
    fn read(jvm: &Jvm, blob: CodeBlob, key: Option<CodeKey>, memory: &dyn Memory) -> Self {
        let start = blob.memory.start;
        let read = |member| number(start, member, memory);
        let layout = &jvm.layout.code_blob;
        let words = read(layout.frame_size).filter(|words| *words > 0);
        let complete = read(layout.frame_complete).and_then(|bytes| u64::try_from(bytes).ok());
        let entry = key.and_then(|_| match jvm.layout.nmethod.entries {
            EntryPoints::Pointers { verified, .. } => {
                let entry = Address::new(read(verified)?.cast_unsigned());
                entry.offset_from(blob.code.start)
            }
            EntryPoints::Offsets { verified, .. } => u64::try_from(read(verified)?).ok(),
        });
        Self {
            key,
            words: words.and_then(|words| u32::try_from(words).ok()),
            entry: entry.unwrap_or(0),
            complete: complete.unwrap_or(0),
            code: OnceCell::new(),
            blob,
        }
    }

    /// What its code is for.
    pub(super) fn kind(&self) -> BlobKind {
        self.blob.kind
    }

    /// The name of its code at an address, for a profile.
    pub(super) fn name(&self, address: Address, jvm: &Jvm) -> String {
        self.blob.display_name(address, jvm)
    }

    /// Returns how its frames are left.
    pub(super) fn frames(&self, memory: &dyn Memory) -> CodeFrames<'_> {
        match (self.blob.kind, self.words) {
            (BlobKind::Interpreter, _) => CodeFrames::Interpreter,
            (BlobKind::Compiled | BlobKind::NativeWrapper | BlobKind::Runtime, Some(words)) => {
                CodeFrames::Fixed {
                    words,
                    start: self.blob.code.start,
                    prologue: Prologue {
                        code: self.code(memory),
                        entry: usize::try_from(self.entry).unwrap_or(0),
                        complete: usize::try_from(self.complete).unwrap_or(0),
                    },
                }
            }
            _ => CodeFrames::Routine,
        }
    }

    /// Returns the instructions in a part of it. Empty if they cannot be read.
    pub(super) fn code_in(&self, part: &Range<Address>, memory: &dyn Memory) -> &[u8] {
        let offset = |at: Address| at.offset_from(self.blob.code.start)?.try_into().ok();
        let range = offset(part.start).zip(offset(part.end));
        let code = range.and_then(|(start, end): (usize, usize)| self.code(memory).get(start..end));
        code.unwrap_or_default()
    }

    /// Returns its instructions. Empty if they cannot be read.
    fn code(&self, memory: &dyn Memory) -> &[u8] {
        self.code.get_or_init(|| {
            let code = &self.blob.code;
            let size = code.end.offset_from(code.start).unwrap_or(0).min(MAX_CODE);
            let mut bytes = vec![0; size as usize];
            match memory.read(code.start.get(), &mut bytes) {
                Ok(()) => bytes.into(),
                Err(_) => Box::default(),
            }
        })
    }
}

/// Reads a signed number of a structure.
fn number(structure: Address, member: Member, memory: &dyn Memory) -> Option<i64> {
    let mut bytes = [0; 8];
    let size = member.width.bytes() as usize;
    let at = member.offset.from(structure);
    memory.read(at.get(), bytes.get_mut(..size)?).ok()?;
    let unused = 64_u32.saturating_sub(member.width.bytes().saturating_mul(8));
    let value = i64::from_le_bytes(bytes);
    Some(value.checked_shl(unused)?.checked_shr(unused)?)
}
