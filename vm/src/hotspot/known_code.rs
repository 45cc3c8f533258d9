//! The code of a process's HotSpot that was seen, and how its frames are made.

use super::jvm::Jvm;
use super::layout::EntryPoints;
use super::member::Member;
use super::methods::{
    BlobKind, CodeBlob, CodeKey, CompiledCode, JavaCode, JavaMethod, MethodError, MethodPointer,
    NamingLayout, Precision,
};
use super::unwinding::{CodeAt, CodeFrames, Prologue};
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};
use varid_model::{Address, FrameAddress};
use varid_tunnel::Memory;

/// The most bytes of a blob's code that are read to see how its frames are made.
const MAX_CODE: u64 = 1 << 20;
/// How long it is believed that code and methods are still where they were. It takes the VM a second or more to free code and to use its
/// memory again, and each look costs a few reads.
const BELIEVED: Duration = Duration::from_millis(500);
/// The most blobs that are kept.
const MAX_BLOBS: usize = 1 << 13;

/// The code that was seen.
#[derive(Debug)]
pub(super) struct KnownCode {
    java: JavaCode,
    /// What is known of the process for a while: code is freed, classes are unloaded, and their memory is reused.
    current: Current,
    /// The code that was read last, by the address of its first byte.
    last: Blobs,
    blobs: HashMap<BlobKey, Rc<KnownBlob>>,
}

/// Code blobs by the address of their first byte.
type Blobs = BTreeMap<Address, Rc<KnownBlob>>;

#[derive(Debug)]
struct Current {
    since: Instant,
    blobs: Blobs,
    /// Addresses that no blob has.
    unknown: HashMap<Address, MethodError>,
    methods: HashMap<MethodPointer, Rc<JavaMethod>>,
}

impl Default for Current {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            blobs: Blobs::new(),
            unknown: HashMap::new(),
            methods: HashMap::new(),
        }
    }
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
            current: Current::default(),
            last: Blobs::new(),
            blobs: HashMap::new(),
        }
    }

    /// Forgets what may be another's by the next batch of samples.
    pub(super) fn end_batch(&mut self) {
        if self.current.since.elapsed() < BELIEVED {
            return;
        }
        let current = std::mem::take(&mut self.current);
        self.last.extend(current.blobs);
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
        if let Some(known) = blob_in(&self.current.blobs, address) {
            return Ok(known);
        }
        if let Some(error) = self.current.unknown.get(&address) {
            return Err(error.clone());
        }
        let found = match self.read(address, memory) {
            // The process has ended, and its last samples are read now.
            Err(error @ MethodError::Memory { .. }) => blob_in(&self.last, address).ok_or(error),
            other => other,
        };
        match &found {
            Ok(blob) => {
                let start = blob.blob.memory.start;
                self.current.blobs.insert(start, Rc::clone(blob));
            }
            Err(error) => {
                self.current.unknown.insert(address, error.clone());
            }
        }
        found
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

    /// Returns the method that a pointer leads to.
    pub(super) fn method(
        &mut self,
        pointer: MethodPointer,
        memory: &dyn Memory,
    ) -> Result<Rc<JavaMethod>, MethodError> {
        if let Some(known) = self.current.methods.get(&pointer) {
            return Ok(Rc::clone(known));
        }
        let method = self.java.method(pointer, memory)?;
        self.current.methods.insert(pointer, Rc::clone(&method));
        Ok(method)
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
            (BlobKind::Runtime, _) if self.code_at(memory).is_linked() => {
                CodeFrames::Stub(self.code_at(memory))
            }
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
            (BlobKind::Adapter | BlobKind::VtableStub | BlobKind::MethodHandle, _) => {
                CodeFrames::Passed
            }
            _ => CodeFrames::Routines(self.code_at(memory)),
        }
    }

    /// Returns its instructions at their address.
    pub(super) fn code_at(&self, memory: &dyn Memory) -> CodeAt<'_> {
        CodeAt {
            start: self.blob.code.start,
            bytes: self.code(memory),
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

/// Returns the blob that has an address.
fn blob_in(blobs: &Blobs, address: Address) -> Option<Rc<KnownBlob>> {
    let (_, blob) = blobs.range(..=address).next_back()?;
    let has_address = blob.blob.memory.contains(&address);
    has_address.then(|| Rc::clone(blob))
}

/// Reads a signed number of a structure.
fn number(structure: Address, member: Member, memory: &dyn Memory) -> Option<i64> {
    let mut bytes = [0; 8];
    let size = member.width.bytes() as usize;
    let at = member.offset.from(structure);
    memory.read(at.get(), bytes.get_mut(..size)?).ok()?;
    let unused = 64_u32.saturating_sub(member.width.bytes().saturating_mul(8));
    let value = i64::from_le_bytes(bytes);
    value.checked_shl(unused)?.checked_shr(unused)
}
