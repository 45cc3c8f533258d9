//! A code blob of a process that was seen: its code, and at which times it was there.

use super::jvm::Jvm;
use super::methods::{BlobKind, CodeBlob, CodeKey};
use super::unwinding::{CodeAt, pushed_by_call};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;
use varid_model::{Address, FrameAddress, Machine, MonotonicNs};
use varid_tunnel::Memory;

/// The most bytes of a blob's code that are read to see how its frames are made.
const MAX_CODE: u64 = 1 << 20;

/// Code blobs by the address of their first byte. They do not overlap.
pub(super) type Blobs = BTreeMap<Address, Rc<KnownBlob>>;

/// A code blob with its code.
#[derive(Debug)]
pub(super) struct KnownBlob {
    pub(super) blob: CodeBlob,
    pub(super) machine: Machine,
    /// Its instructions. Empty if they cannot be read.
    code: Box<[u8]>,
    /// What samples have executed at its addresses was this blob from this time on.
    since: MonotonicNs,
    /// When it was there the last time.
    pub(super) seen: Cell<MonotonicNs>,
    /// True if it was used since the least used code was dropped.
    pub(super) is_used: Cell<bool>,
    /// True if a leaf was sampled in it.
    pub(super) was_sampled: Cell<bool>,
}

impl KnownBlob {
    /// A blob that was found at a time. `since`: what samples have executed at its addresses was this blob from this time on.
    pub(super) fn new(
        blob: CodeBlob,
        machine: Machine,
        code: Box<[u8]>,
        found: MonotonicNs,
        since: MonotonicNs,
    ) -> Self {
        Self {
            blob,
            machine,
            code,
            since,
            seen: Cell::new(found),
            is_used: Cell::new(true),
            was_sampled: Cell::new(false),
        }
    }

    /// Returns true if it is what a sample at a time has executed, not what was there before or afterwards. `reused_after`: the VM takes longer
    /// to put other code into its place.
    pub(super) fn was_there(&self, time: MonotonicNs, reused_after: Duration) -> bool {
        self.since <= time && time.since(self.seen.get()) <= reused_after
    }

    /// What its code is for.
    pub(super) fn kind(&self) -> BlobKind {
        self.blob.kind
    }

    /// Returns true if it is code that the VM never frees: it makes one of the kind for all methods.
    pub(super) fn is_permanent(&self) -> bool {
        match self.blob.kind {
            BlobKind::Interpreter
            | BlobKind::Adapter
            | BlobKind::VtableStub
            | BlobKind::MethodHandle
            | BlobKind::StubRoutines => true,
            // Compilers' scratch memory looks as other code of the VM does.
            BlobKind::Compiled | BlobKind::NativeWrapper | BlobKind::Runtime => false,
        }
    }

    /// Returns true if it puts frames of a virtual thread back on the stack. The outermost of those that are there returns to it.
    pub(super) fn thaws_frames(&self) -> bool {
        // The name has a space more before JDK 25.
        self.blob.name.starts_with("StubRoutines (continuation")
    }

    /// Identifies its compiled method.
    pub(super) fn key(&self) -> Option<CodeKey> {
        self.blob.key()
    }

    /// The name of its code at an address, for a profile.
    pub(super) fn name(&self, address: Address, jvm: &Jvm) -> String {
        self.blob.display_name(address, jvm)
    }

    /// Returns its instructions.
    pub(super) fn code(&self) -> &[u8] {
        &self.code
    }

    /// Returns its instructions at their address.
    pub(super) fn code_at(&self) -> CodeAt<'_> {
        CodeAt {
            machine: self.machine,
            start: self.blob.code.start,
            bytes: &self.code,
        }
    }

    /// Returns the instructions in a part of it. Empty if they are not known.
    pub(super) fn code_in(&self, part: &Range<Address>) -> &[u8] {
        let range = self.offset(part.start).zip(self.offset(part.end));
        let code = range.and_then(|(start, end)| self.code.get(start..end));
        code.unwrap_or_default()
    }

    /// Returns how many bytes an address is behind its first instruction.
    pub(super) fn offset(&self, address: Address) -> Option<usize> {
        let offset = address.offset_from(self.blob.code.start)?;
        usize::try_from(offset).ok()
    }

    /// Returns how many words a frame has beside those of its fixed size, for a call that returns to it.
    pub(super) fn words_pushed(&self, address: FrameAddress) -> u32 {
        let returns = match (self.machine, address) {
            (Machine::Aarch64, FrameAddress::Return(returns)) => self.offset(returns),
            _ => None,
        };
        returns.map_or(0, |at| pushed_by_call(&self.code, at))
    }

    /// Its size in memory, in bytes.
    pub(super) fn size(&self) -> usize {
        size_of::<Self>()
            .saturating_add(self.blob.name.len())
            .saturating_add(self.code.len())
    }
}

/// Reads the instructions of a blob. Empty if they cannot be read.
pub(super) fn read_code(blob: &CodeBlob, memory: &dyn Memory) -> Box<[u8]> {
    let size = blob.code.end.offset_from(blob.code.start).unwrap_or(0);
    let mut bytes = vec![0; size.min(MAX_CODE) as usize];
    match memory.read(blob.code.start.get(), &mut bytes) {
        Ok(()) => bytes.into(),
        Err(_) => Box::default(),
    }
}

/// Returns the blob that has an address.
pub(super) fn blob_in(blobs: &Blobs, address: Address) -> Option<&Rc<KnownBlob>> {
    let (_, blob) = blobs.range(..=address).next_back()?;
    blob.blob.memory.contains(&address).then_some(blob)
}

/// Removes the blobs that overlap with some memory, and returns them.
pub(super) fn remove_overlapping(blobs: &mut Blobs, memory: &Range<Address>) -> Vec<Rc<KnownBlob>> {
    let before = blobs.range(..memory.end).rev();
    let overlapping = before.take_while(|(_, blob)| blob.blob.memory.end > memory.start);
    let starts: Vec<_> = overlapping.map(|(start, _)| *start).collect();
    let removed = starts.iter().filter_map(|start| blobs.remove(start));
    removed.collect()
}
