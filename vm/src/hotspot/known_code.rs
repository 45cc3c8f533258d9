//! The code of a process's HotSpot that was seen, and how its frames are made.
//!
//! Code is freed and its memory reused, also between two samples. So what is known of an address holds for the samples that the session handles
//! in one turn. In the next turn, one request reads the headers of all known blobs, and of all known methods, to which its samples may refer. What
//! has not changed need not be read. Two kinds of blobs are not looked up again: those that the VM never frees, and compiled methods of which the
//! kernel has told the compilation with the sample.

use super::jvm::Jvm;
use super::known_blob::{Blobs, KnownBlob, blob_in, read_code, remove_overlapping};
use super::methods::gathered::GatheredMemory;
use super::methods::java_code::FoundMethod;
use super::methods::reuse::{CODE_REUSED_SOON_AFTER, REUSED_AFTER, SMALL_CODE_CACHE, before};
use super::methods::{
    BlobKind, CodeBlob, CodeKey, CompiledCode, JavaCode, JavaMethod, MethodError, MethodPointer,
    Precision,
};
use super::unwinding::{CodeFrames, FrameState, Prologue};
use crate::seam::CodeChange;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;
use varid_model::{Address, FrameAddress, MonotonicNs};
use varid_process::clock;
use varid_process::reader::BatchMemory;
use varid_tunnel::Memory;

/// The name of the blob that flushes an instruction cache: it pushes nothing. The VM writes each line of its code cache so while it starts.
const FRAMELESS: &str = "flush_icache_stub";
/// The most bytes of blobs that are kept.
const MAX_BLOBS: usize = 1 << 24;
/// The most addresses, and the most methods, that are looked up before a sample needs them.
const MAX_EXPECTED: usize = 1 << 12;

/// Turns without a change after which a VM is taken to go on without it: one to three seconds.
const QUIET_TURNS: u32 = 200;

/// The code that was seen.
#[derive(Debug)]
pub(super) struct KnownCode {
    java: JavaCode,
    clock: fn() -> MonotonicNs,
    /// The memory that all code heaps are in.
    heaps: Range<Address>,
    turn: Turn,
    expected: Expected,
    /// The code that was there the last time.
    blobs: Blobs,
    /// Their size in bytes.
    size: usize,
    /// How many turns have ended since new code, or a new method, was seen.
    turns_without_new: u32,
    /// How many turns have ended since compiled code was found in the place of other compiled code.
    turns_without_replaced: u32,
    /// True if the VM has put other code soon into the place of code that was executed, or has little room for code.
    reuses_code_soon: bool,
    /// True if the kernel walks the frames of samples, and tells their methods and compilations.
    has_walk: bool,
}

/// What holds for the samples of a turn.
#[derive(Debug, Default)]
struct Turn {
    blobs: Blobs,
    /// Addresses that no blob has.
    unknown: HashMap<Address, MethodError>,
    /// Compiled methods that cannot be read.
    failed: HashMap<CodeKey, MethodError>,
    methods: HashMap<MethodPointer, Result<FoundMethod, MethodError>>,
}

/// What samples of a turn may refer to, and has not been looked up.
#[derive(Debug, Default)]
struct Expected {
    addresses: BTreeSet<Address>,
    /// Methods that were read before.
    methods: BTreeSet<MethodPointer>,
}

/// What is found at addresses.
#[derive(Debug, Default)]
struct Found {
    /// Blobs that are known already.
    same: Blobs,
    /// Known blobs of which it cannot be read whether they are still there: the process has ended.
    unread: Blobs,
    /// Others, by the address of their first byte.
    other: BTreeMap<Address, CodeBlob>,
    unknown: HashMap<Address, MethodError>,
}

impl KnownCode {
    pub(super) fn new(jvm: Rc<Jvm>) -> Self {
        Self::with_clock(jvm, clock::now)
    }

    fn with_clock(jvm: Rc<Jvm>, clock: fn() -> MonotonicNs) -> Self {
        let reserved = || jvm.code_heaps.iter().map(|heap| &heap.reserved);
        let start = reserved().map(|heap| heap.start).min();
        let end = reserved().map(|heap| heap.end).max();
        let sizes = reserved().map(|heap| heap.end.offset_from(heap.start).unwrap_or(0));
        let size = sizes.fold(0, u64::saturating_add);
        Self {
            heaps: start.unwrap_or_default()..end.unwrap_or_default(),
            java: JavaCode::with_clock(jvm, clock),
            clock,
            turn: Turn::default(),
            expected: Expected::default(),
            blobs: Blobs::new(),
            size: 0,
            turns_without_new: 0,
            turns_without_replaced: 0,
            reuses_code_soon: size < SMALL_CODE_CACHE,
            has_walk: false,
        }
    }

    /// How the VM has changed what it executes in the last turns. A VM that is new has changed all of it. Code of known compilations need not be
    /// read before other code may be in its place, only before it is freed.
    pub(super) fn change(&self) -> CodeChange {
        let is_replaced = self.turns_without_replaced < QUIET_TURNS;
        if self.java.replaces_methods() || (is_replaced && !self.has_walk) {
            CodeChange::Replaced
        } else if is_replaced || self.turns_without_new < QUIET_TURNS {
            CodeChange::Added
        } else {
            CodeChange::None
        }
    }

    /// Notes that the kernel walks the frames of samples, and tells their methods and compilations.
    pub(super) const fn note_walk(&mut self) {
        self.has_walk = true;
    }

    /// Returns true if the kernel walks the frames of samples.
    pub(super) const fn has_walk(&self) -> bool {
        self.has_walk
    }

    /// Ends a turn: what is known may be another's at the next samples.
    pub(super) fn end_turn(&mut self) {
        self.turn = Turn::default();
        self.expected = Expected::default();
        self.turns_without_new = self.turns_without_new.saturating_add(1);
        self.turns_without_replaced = self.turns_without_replaced.saturating_add(1);
    }

    /// Notes that a sample of this turn may refer to what a word leads to: code that it returns to, or a method that it interprets.
    pub(super) fn expect_word(&mut self, word: u64) {
        let address = Address::new(word);
        if self.heaps.contains(&address) {
            self.expect(FrameAddress::Return(address));
        } else if self.java.has_method(MethodPointer(address)) {
            self.expect_method(MethodPointer(address));
        }
    }

    /// Notes that a sample of this turn interprets a method.
    pub(super) fn expect_method(&mut self, pointer: MethodPointer) {
        if self.expected.methods.len() < MAX_EXPECTED {
            self.expected.methods.insert(pointer);
        }
    }

    /// Notes that a sample of this turn has a frame of this code.
    pub(super) fn expect_blob(&mut self, sampled: CodeKey) {
        let known = blob_in(&self.blobs, sampled.blob);
        if known.is_none_or(|known| !is_sampled(known, sampled)) {
            self.expect_address(sampled.blob);
        }
    }

    /// Notes that a sample of this turn may have a frame at an address.
    pub(super) fn expect(&mut self, address: FrameAddress) {
        let address = address.lookup();
        let known = blob_in(&self.blobs, address);
        if known.is_none_or(|known| !known.is_permanent()) {
            self.expect_address(address);
        }
    }

    fn expect_address(&mut self, address: Address) {
        if self.heaps.contains(&address) && self.expected.addresses.len() < MAX_EXPECTED {
            self.expected.addresses.insert(address);
        }
    }

    /// Returns the blob that had an address at the time of a sample of this turn.
    pub(super) fn at(
        &mut self,
        address: Address,
        time: MonotonicNs,
        memory: &dyn BatchMemory,
    ) -> Result<Rc<KnownBlob>, MethodError> {
        let found = self.found_at(address, memory)?;
        match found.is_permanent() || found.was_there(time, self.code_reused_after()) {
            true => Ok(found),
            false => Err(MethodError::NoCode(address)),
        }
    }

    /// Returns the blob that had an address when it was sampled. `sampled`: the code there, as it was recorded with the sample.
    ///
    /// # Errors
    ///
    /// No blob has the address, its memory cannot be read, or other code is there by now.
    pub(super) fn sampled_at(
        &mut self,
        address: Address,
        sampled: CodeKey,
        memory: &dyn BatchMemory,
    ) -> Result<Rc<KnownBlob>, MethodError> {
        let known = blob_in(&self.blobs, address);
        if let Some(known) = known.filter(|known| is_sampled(known, sampled)) {
            known.is_used.set(true);
            return Ok(Rc::clone(known));
        }
        let found = self.found_at(address, memory)?;
        // Stubs have no compilation.
        let is_same = match found.key() {
            Some(key) => key == sampled,
            None => found.blob.memory.start == sampled.blob,
        };
        match is_same {
            true => Ok(found),
            false => Err(MethodError::Replaced {
                blob: sampled.blob,
                expected: sampled.compile_id,
            }),
        }
    }

    /// Returns the blob that has an address in this turn.
    fn found_at(
        &mut self,
        address: Address,
        memory: &dyn BatchMemory,
    ) -> Result<Rc<KnownBlob>, MethodError> {
        let known = blob_in(&self.blobs, address);
        if let Some(known) = known.filter(|known| known.is_permanent()) {
            known.is_used.set(true);
            return Ok(Rc::clone(known));
        }
        let turn = &self.turn;
        if blob_in(&turn.blobs, address).is_none() && !turn.unknown.contains_key(&address) {
            self.expected.addresses.insert(address);
            self.look_up(memory);
        }
        let unknown = || self.turn.unknown.get(&address).cloned();
        let found = blob_in(&self.turn.blobs, address).map(Rc::clone);
        found.ok_or_else(|| unknown().unwrap_or(MethodError::NoCode(address)))
    }

    /// Looks up all that is expected, in as few requests as possible.
    fn look_up(&mut self, memory: &dyn BatchMemory) {
        let expected = std::mem::take(&mut self.expected);
        let pointers: Vec<_> = expected.methods.into_iter().collect();
        let start = (self.clock)();
        let (found, methods) = GatheredMemory::of(memory).run(|memory| {
            let found = self.find(&expected.addresses, memory);
            (found, self.java.read(&[], &pointers, memory))
        });
        self.turn
            .methods
            .extend(self.java.keep(methods, memory).methods);
        for blob in found.same.values() {
            blob.seen.set(start);
            blob.is_used.set(true);
        }
        self.turn.blobs.extend(found.same);
        self.turn.blobs.extend(found.unread);
        self.turn.unknown.extend(found.unknown);
        let read = start..(self.clock)();
        self.read_blobs(found.other.into_values().collect(), read, memory);
    }

    /// Finds the blobs that have some addresses.
    fn find(&self, addresses: &BTreeSet<Address>, memory: &dyn Memory) -> Found {
        let mut found = Found::default();
        let mut checks = HashMap::new();
        for address in addresses {
            let known = blob_in(&self.blobs, *address);
            let is_current = known.map(|known| {
                let check = checks.entry(known.blob.memory.start);
                check
                    .or_insert_with(|| self.java.has_blob(&known.blob, memory))
                    .clone()
            });
            match (known, is_current) {
                (Some(known), Some(Ok(true))) => {
                    found.same.insert(known.blob.memory.start, Rc::clone(known));
                }
                (Some(known), Some(Err(MethodError::Memory { .. }))) => {
                    found
                        .unread
                        .insert(known.blob.memory.start, Rc::clone(known));
                }
                _ => match self.java.blob_at(*address, memory) {
                    Ok(blob) => {
                        found.other.insert(blob.memory.start, blob);
                    }
                    Err(error) => {
                        found.unknown.insert(*address, error);
                    }
                },
            }
        }
        found
    }

    /// Reads blobs that were found between two times. Their methods are read after that: until then, others may have been in the place of these.
    fn read_blobs(
        &mut self,
        blobs: Vec<CodeBlob>,
        found: Range<MonotonicNs>,
        memory: &dyn BatchMemory,
    ) {
        if blobs.is_empty() {
            return;
        }
        self.turns_without_new = 0;
        let keys: Vec<_> = blobs.iter().filter_map(CodeBlob::key).collect();
        let (known, keys): (Vec<_>, Vec<_>) = keys
            .into_iter()
            .partition(|key| self.java.has_compiled(key));
        let (mut codes, compiled) = GatheredMemory::of(memory).run(|memory| {
            let codes = blobs.iter().map(|blob| read_code(blob, memory));
            let codes: Vec<_> = codes.collect();
            (codes, self.java.read(&keys, &[], memory))
        });
        let kept = self.java.keep(compiled, memory);
        if !known.is_empty() {
            self.drop_replaced(&blobs, &mut codes, memory);
        }
        self.turn.methods.extend(kept.methods);
        let failed = kept.compiled.into_iter();
        let failed = failed.filter_map(|(key, code)| Some((key, code.err()?)));
        self.turn.failed.extend(failed);
        for (blob, code) in blobs.into_iter().zip(codes) {
            self.insert(blob, code, &found);
        }
    }

    /// Drops the instructions of blobs that were replaced while they were read. Compiled methods that are read for the first time are checked
    /// otherwise.
    fn drop_replaced(&self, blobs: &[CodeBlob], codes: &mut [Box<[u8]>], memory: &dyn BatchMemory) {
        let checks = GatheredMemory::of(memory).run(|memory| {
            let checks = blobs.iter().map(|blob| self.java.has_blob(blob, memory));
            checks.collect::<Vec<_>>()
        });
        for (code, check) in codes.iter_mut().zip(checks) {
            if matches!(check, Ok(false)) {
                *code = Box::default();
            }
        }
    }

    fn insert(&mut self, blob: CodeBlob, code: Box<[u8]>, found: &Range<MonotonicNs>) {
        let replaced = remove_overlapping(&mut self.blobs, &blob.memory);
        for blob in replaced.iter().filter(|blob| blob.key().is_some()) {
            self.turns_without_replaced = 0;
            self.reuses_code_soon |= found.start.since(blob.seen.get()) < REUSED_AFTER;
        }
        let sizes = replaced.iter().map(|blob| blob.size());
        self.size = self.size.saturating_sub(sizes.sum());
        let start = blob.memory.start;
        let since = match replaced.is_empty() {
            true => before(found.end, self.code_reused_after()),
            false => found.end,
        };
        let machine = self.java.jvm().machine;
        let known = Rc::new(KnownBlob::new(blob, machine, code, found.start, since));
        self.size = self.size.saturating_add(known.size());
        if self.size > MAX_BLOBS {
            self.drop_unused();
        }
        self.blobs.insert(start, Rc::clone(&known));
        self.turn.blobs.insert(start, known);
    }

    /// The VM takes longer than this to put other code into the place of code that was executed.
    fn code_reused_after(&self) -> Duration {
        let reused_after = self.java.code_reused_after();
        match self.reuses_code_soon {
            true => reused_after.min(CODE_REUSED_SOON_AFTER),
            false => reused_after,
        }
    }

    /// Drops the blobs that were not used since the last time, or all if there are few of them.
    fn drop_unused(&mut self) {
        self.blobs.retain(|_, blob| blob.is_used.take());
        self.size = self.blobs.values().map(|blob| blob.size()).sum();
        if self.size > MAX_BLOBS / 2 {
            self.blobs.clear();
            self.size = 0;
        }
    }

    /// Returns the compiled method that a blob is.
    pub(super) fn compiled(
        &mut self,
        blob: &KnownBlob,
        memory: &dyn BatchMemory,
    ) -> Result<Rc<CompiledCode>, MethodError> {
        let key = blob.key();
        let key = key.ok_or(MethodError::NoCode(blob.blob.code.start))?;
        if let Some(error) = self.turn.failed.get(&key) {
            return Err(error.clone());
        }
        let compiled = self.java.compiled(key, memory);
        if let Err(error) = &compiled {
            self.turn.failed.insert(key, error.clone());
        }
        compiled
    }

    /// Returns the method that a pointer led to at the time of a sample of this turn.
    pub(super) fn method(
        &mut self,
        pointer: MethodPointer,
        time: MonotonicNs,
        memory: &dyn BatchMemory,
    ) -> Result<Rc<JavaMethod>, MethodError> {
        let found = self.found_method(pointer, memory)?;
        match found.since <= time {
            true => Ok(found.method),
            false => Err(MethodError::OtherMethod(pointer.0)),
        }
    }

    /// Returns the method that a pointer leads to in this turn.
    fn found_method(
        &mut self,
        pointer: MethodPointer,
        memory: &dyn BatchMemory,
    ) -> Result<FoundMethod, MethodError> {
        if !self.turn.methods.contains_key(&pointer) {
            if !self.java.has_method(pointer) {
                self.turns_without_new = 0;
            }
            self.expected.methods.insert(pointer);
            self.look_up(memory);
        }
        let found = self.turn.methods.get(&pointer).cloned();
        found.unwrap_or(Err(MethodError::NoCode(pointer.0)))
    }

    /// Returns how a frame of a blob is left.
    pub(super) fn frames<'b>(
        &mut self,
        blob: &'b KnownBlob,
        address: FrameAddress,
        memory: &dyn BatchMemory,
    ) -> CodeFrames<'b> {
        match (blob.kind(), blob.blob.frame_words) {
            (BlobKind::Interpreter, _) => CodeFrames::Interpreter,
            _ if blob.blob.name == FRAMELESS => CodeFrames::Fixed {
                words: 1,
                state: FrameState::Called,
            },
            (BlobKind::Runtime, _) if blob.code_at().is_linked() => {
                CodeFrames::Stub(blob.code_at())
            }
            (BlobKind::Compiled | BlobKind::NativeWrapper | BlobKind::Runtime, Some(words)) => {
                CodeFrames::Fixed {
                    words: words.saturating_add(blob.words_pushed(address)),
                    state: self.frame_state(blob, address, memory),
                }
            }
            (BlobKind::Adapter | BlobKind::VtableStub | BlobKind::MethodHandle, _) => {
                CodeFrames::Passed(blob.code_at())
            }
            _ => CodeFrames::Routines(blob.code_at()),
        }
    }

    /// Returns what of a frame of a fixed size there is. Only an interrupted instruction may be where it is made or left.
    fn frame_state(
        &mut self,
        blob: &KnownBlob,
        address: FrameAddress,
        memory: &dyn BatchMemory,
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
            code: blob.code(),
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
        memory: &dyn BatchMemory,
    ) -> bool {
        if blob.kind() == BlobKind::Interpreter {
            return true;
        }
        let compiled = self.compiled(blob, memory);
        let frames = compiled.and_then(|code| code.frames_at(FrameAddress::Return(returns)));
        frames.is_ok_and(|frames| frames.precision == Precision::Exact)
    }
}

/// Returns true if a blob is certainly the code that was sampled.
fn is_sampled(known: &KnownBlob, sampled: CodeKey) -> bool {
    match known.key() {
        Some(key) => key == sampled,
        None => known.is_permanent() && known.blob.memory.start == sampled.blob,
    }
}

#[cfg(test)]
mod tests;
