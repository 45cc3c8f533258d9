//! The code of a process's HotSpot that was seen, and how its frames are made.

use super::jvm::Jvm;
use super::methods::{
    BlobKind, CodeBlob, CodeKey, CompiledCode, JavaCode, JavaMethod, MethodError, MethodPointer,
    Precision,
};
use super::unwinding::{CodeAt, CodeFrames, FrameState, Prologue, pushed_by_call};
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};
use varid_model::{Address, FrameAddress, Machine};
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

/// A code blob, with its code once that was needed.
#[derive(Debug)]
pub(super) struct KnownBlob {
    blob: CodeBlob,
    key: Option<CodeKey>,
    machine: Machine,
    code: OnceCell<Box<[u8]>>,
}

impl KnownCode {
    pub(super) fn new(jvm: Rc<Jvm>) -> Self {
        Self {
            java: JavaCode::new(jvm),
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
        let known = Rc::new(KnownBlob {
            blob,
            key,
            machine: self.java.jvm().machine,
            code: OnceCell::new(),
        });
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

    /// Returns how a frame of a blob is left.
    pub(super) fn frames<'b>(
        &mut self,
        blob: &'b KnownBlob,
        address: FrameAddress,
        memory: &dyn Memory,
    ) -> CodeFrames<'b> {
        let of = &blob.blob;
        match (of.kind, of.frame_words) {
            (BlobKind::Interpreter, _) => CodeFrames::Interpreter,
            (BlobKind::Runtime, _) if blob.code_at(memory).is_linked() => {
                CodeFrames::Stub(blob.code_at(memory))
            }
            (BlobKind::Compiled | BlobKind::NativeWrapper | BlobKind::Runtime, Some(words)) => {
                CodeFrames::Fixed {
                    words: words.saturating_add(blob.words_pushed(address, memory)),
                    state: self.frame_state(blob, address, memory),
                }
            }
            (BlobKind::Adapter | BlobKind::VtableStub | BlobKind::MethodHandle, _) => {
                CodeFrames::Passed(blob.code_at(memory))
            }
            _ => CodeFrames::Routines(blob.code_at(memory)),
        }
    }

    /// Returns what of a frame of a fixed size there is. Only an interrupted instruction may be where it is made or left.
    fn frame_state(
        &mut self,
        blob: &KnownBlob,
        address: FrameAddress,
        memory: &dyn Memory,
    ) -> FrameState {
        let interrupted = match address {
            FrameAddress::Instruction(at) => blob.offset(at),
            FrameAddress::Return(_) => None,
        };
        let Some(at) = interrupted else {
            return FrameState::Complete;
        };
        let compiled = self.compiled(blob, memory).ok();
        let entered = compiled.and_then(|code| blob.offset(code.compiled.frame.entered));
        let prologue = Prologue {
            code: blob.code(memory),
            entry: entered.unwrap_or(0),
            complete: usize::try_from(blob.blob.frame_complete).unwrap_or(0),
        };
        prologue.state(blob.machine, at)
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
    /// What its code is for.
    pub(super) fn kind(&self) -> BlobKind {
        self.blob.kind
    }

    /// The name of its code at an address, for a profile.
    pub(super) fn name(&self, address: Address, jvm: &Jvm) -> String {
        self.blob.display_name(address, jvm)
    }

    /// Returns its instructions at their address.
    pub(super) fn code_at(&self, memory: &dyn Memory) -> CodeAt<'_> {
        CodeAt {
            machine: self.machine,
            start: self.blob.code.start,
            bytes: self.code(memory),
        }
    }

    /// Returns the instructions in a part of it. Empty if they cannot be read.
    pub(super) fn code_in(&self, part: &Range<Address>, memory: &dyn Memory) -> &[u8] {
        let range = self.offset(part.start).zip(self.offset(part.end));
        let code = range.and_then(|(start, end)| self.code(memory).get(start..end));
        code.unwrap_or_default()
    }

    /// Returns how many words a frame has beside those of its fixed size, for a call that returns to it.
    fn words_pushed(&self, address: FrameAddress, memory: &dyn Memory) -> u32 {
        let returns = match (self.machine, address) {
            (Machine::Aarch64, FrameAddress::Return(returns)) => self.offset(returns),
            _ => None,
        };
        returns.map_or(0, |at| pushed_by_call(self.code(memory), at))
    }

    /// Returns the offset of an address from its first instruction, in bytes. None in front of it.
    fn offset(&self, at: Address) -> Option<usize> {
        usize::try_from(at.offset_from(self.blob.code.start)?).ok()
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
