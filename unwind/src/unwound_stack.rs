//! Finds the frames that a stack shares with the thread's previous one.

use crate::native_stack::{NativeFrame, NativeStack};
use crate::stack_slice::StackSlice;
use varid_model::{Address, BeyondCopy};

/// Bytes that are compared at a time.
const BLOCK: usize = 64;

/// The copy of a thread's stack and all its frames, kept for the thread's next sample.
///
/// From sample to sample, most outer frames of a thread stay the same. The callers of a frame follow from its registers, from the stack
/// above its stack pointer, from the words that frame pointers beyond the copy lead to, and from the process's code. If these are equal, so
/// are the callers.
#[derive(Debug, Default)]
pub struct UnwoundStack {
    start: Address,
    stack: Vec<u8>,
    beyond: BeyondCopy,
    /// Leaf first, up to the outermost. Empty if nothing is known.
    frames: Vec<NativeFrame>,
    end: Option<Address>,
}

/// What a stack shares with the previous one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Common<'a> {
    before: &'a UnwoundStack,
    /// The stacks are equal from this address to their end.
    from: Address,
}

impl UnwoundStack {
    /// Takes over a copy of a stack, whose first byte is at `start`, with the words beyond the copy that frame pointers lead to, and the
    /// stack's frames. The previous contents take their place, so that their memory can be used for the next sample.
    pub fn replace(
        &mut self,
        native: &mut NativeStack,
        start: Address,
        (stack, beyond): (&mut Vec<u8>, &mut BeyondCopy),
    ) {
        std::mem::swap(&mut self.stack, stack);
        std::mem::swap(&mut self.beyond, beyond);
        std::mem::swap(&mut self.frames, &mut native.frames);
        (self.start, self.end) = (start, native.end);
        // Where unwinding stopped early, more may be known next time.
        if native.stopped.is_some() {
            self.frames.clear();
        }
    }

    /// Returns what a stack shares with this one, if both copies end at the same address and have the same words beyond the copy.
    pub(crate) fn in_common(&self, stack: StackSlice<'_>) -> Option<Common<'_>> {
        let before = StackSlice::new(self.start, &self.stack);
        let beyond = Some(&self.beyond).filter(|beyond| !beyond.is_empty());
        let is_same = before.end() == stack.end() && beyond == stack.beyond();
        if self.frames.is_empty() || !is_same {
            return None;
        }
        let (_, before) = before.bytes().as_rchunks::<BLOCK>();
        let (_, now) = stack.bytes().as_rchunks::<BLOCK>();
        let blocks = before.iter().rev().zip(now.iter().rev());
        let same = blocks.take_while(|(one, other)| are_equal(one, other));
        let same = same.count().saturating_mul(BLOCK);
        let from = stack.end()?.get().checked_sub(same as u64)?;
        Some(Common {
            before: self,
            from: Address::new(from),
        })
    }
}

impl<'a> Common<'a> {
    /// Returns the callers of a frame and the end of the last one, if the previous stack had the same frame.
    pub(crate) fn callers(
        self,
        frame: &NativeFrame,
    ) -> Option<(&'a [NativeFrame], Option<Address>)> {
        if frame.sp < self.from {
            return None;
        }
        let frames = &self.before.frames;
        let first = frames.partition_point(|before| before.sp < frame.sp);
        let candidates = frames.get(first..)?;
        let candidates = candidates.iter().take_while(|before| before.sp == frame.sp);
        let found = candidates.take_while(|before| *before != frame).count();
        let (same, callers) = frames.get(first.checked_add(found)?..)?.split_first()?;
        (same == frame).then_some((callers, self.before.end))
    }
}

/// Compares block by block. A comparison of byte slices is a call of a function that compares byte by byte where libc is musl.
fn are_equal(one: &[u8; BLOCK], other: &[u8; BLOCK]) -> bool {
    let (one, _) = one.as_chunks::<16>();
    let (other, _) = other.as_chunks::<16>();
    let differ = one.iter().zip(other).fold(0, |all, (one, other)| {
        all | (u128::from_le_bytes(*one) ^ u128::from_le_bytes(*other))
    });
    differ == 0
}
