//! Which frames does a stack have in common with one that was unwound before?

use crate::native_stack::{NativeFrame, NativeStack};
use crate::stack_slice::StackSlice;
use varid_model::{Address, BeyondCopy};

/// Bytes that are compared at once.
const BLOCK: usize = 64;

/// The copy of a thread's stack and all its frames, for the thread's next sample.
///
/// From sample to sample the outer frames of a thread are mostly the same. The callers of a frame follow from its registers, from
/// the stack above its stack pointer, from where frame pointers lead beyond the copy, and from the code of the process. Where these are
/// equal, so are the callers.
#[derive(Debug, Default)]
pub struct UnwoundStack {
    start: Address,
    stack: Vec<u8>,
    beyond: BeyondCopy,
    /// Leaf first, to the outermost; empty: nothing is known.
    frames: Vec<NativeFrame>,
    end: Option<Address>,
}

/// What a stack has in common with one of before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Common<'a> {
    before: &'a UnwoundStack,
    /// From there to its end.
    from: Address,
}

impl UnwoundStack {
    /// Takes the copy of a stack, whose first byte is at `start`, with what frame pointers lead to outside of it, and its frames. What
    /// was kept before takes their places: its memory can be used for the next sample.
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
        // Where unwinding did not come to the outermost frame, more may be known next time.
        if native.stopped.is_some() {
            self.frames.clear();
        }
    }

    /// What a stack has in common with this one, if both copies end at the same address and lead to the same frames beyond it.
    pub(crate) fn in_common(&self, stack: StackSlice<'_>) -> Option<Common<'_>> {
        let before = StackSlice::new(self.start, &self.stack);
        let beyond = Some(&self.beyond).filter(|beyond| !beyond.links.is_empty());
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
    /// The callers of a frame, if the stack of before had the same frame, and where the last one ends.
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

/// Block by block: comparing slices of bytes is a call, of a function that compares byte by byte where libc is musl.
fn are_equal(one: &[u8; BLOCK], other: &[u8; BLOCK]) -> bool {
    let (one, _) = one.as_chunks::<16>();
    let (other, _) = other.as_chunks::<16>();
    let differ = one.iter().zip(other).fold(0, |all, (one, other)| {
        all | (u128::from_le_bytes(*one) ^ u128::from_le_bytes(*other))
    });
    differ == 0
}
