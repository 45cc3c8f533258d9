//! What stood for the callers in a thread's last sample?
//!
//! From sample to sample a thread's outer frames are mostly the same. What stands for a frame
//! follows from the frame, from what is mapped, and from what it has called, as far as the next
//! frame inside that anything stands for: where these are the same, so is the answer. Whose frames
//! they were plays no part in it; a thread's number only says where to look.

use varid_shim::{ManagedFrame, PackedFrame, Record};

/// So many threads' callers are kept, by their numbers: two threads in one place only lose time.
const PLACES: usize = 64;

/// The callers in the last samples of a process's threads.
#[derive(Debug, Default)]
pub struct Callers(Vec<Stack>);

impl Callers {
    /// Takes out what is kept for a thread.
    pub fn take(&mut self, tid: u32) -> Stack {
        self.place(tid).map(std::mem::take).unwrap_or_default()
    }

    /// Keeps it for the thread's next sample.
    pub fn put(&mut self, tid: u32, stack: Stack) {
        if self.0.is_empty() {
            self.0.resize_with(PLACES, Stack::default);
        }
        if let Some(place) = self.place(tid) {
            *place = stack;
        }
    }

    /// What is kept for a thread.
    pub fn of(&self, tid: u32) -> Option<&Stack> {
        self.0.get(tid as usize % PLACES)
    }

    /// What is kept for a record's thread is all that stands for the callers in its callchain.
    pub fn are_of(&mut self, record: &Record, callchain: &[u64]) {
        if let Some(stack) = self.place(record.tid) {
            stack.flags = record.flags;
            stack.packed.clone_from(&record.packed);
            stack.callchain.clear();
            stack.callchain.extend_from_slice(callchain);
        }
    }

    /// That callchain with another leaf.
    pub fn with_leaf(&mut self, tid: u32, leaf: u64) -> Option<&[u64]> {
        let callchain = &mut self.place(tid)?.callchain;
        *callchain.first_mut()? = leaf;
        Some(callchain)
    }

    /// Nothing is known any more: what the answers follow from has changed.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    fn place(&mut self, tid: u32) -> Option<&mut Stack> {
        self.0.get_mut(tid as usize % PLACES)
    }
}

/// Frames, outermost first, and the addresses that stand for them in a callchain: what comes and
/// goes from sample to sample is at the end.
#[derive(Debug, Default)]
pub struct Stack {
    frames: Vec<ManagedFrame>,
    /// Of all frames, outermost first.
    addresses: Vec<u64>,
    /// By frame: how many addresses stand for it and those outside it.
    counts: Vec<usize>,
    /// Whether native frames were left out before the innermost; None: it is not known.
    stretch: Option<bool>,
    /// What was mapped then.
    space: u64,
    /// The record that they are all callers of: its flags, its frames with the innermost, and its
    /// callchain. No frames: there is no such record.
    flags: u32,
    packed: Vec<PackedFrame>,
    callchain: Vec<u64>,
    /// By frame that is to be added, innermost first: where its addresses start in the callchain;
    /// None: it is not to be kept.
    pub starts: Vec<Option<usize>>,
}

impl Stack {
    /// Forgets all but those outer frames for which the same stands if they are those of `frames`,
    /// while the same is mapped; says how many are left. `frames` come innermost first. `stretch`:
    /// native frames are left out before the innermost.
    pub fn keep(&mut self, frames: &[ManagedFrame], stretch: bool, space: u64) -> usize {
        self.starts.clear();
        self.packed.clear();
        let is_same = self.stretch == Some(stretch) && self.space == space;
        if is_same && are_equal(&self.frames, frames) {
            return frames.len();
        }
        let pairs = self.frames.iter().zip(frames.iter().rev());
        let same = pairs.take_while(|(known, frame)| known == frame).count();
        let kept = match self.space == space {
            // What the next one inside has called may be another.
            true => (0..same).rev().find(|inside| self.is_shown(*inside)),
            false => None,
        };
        let kept = kept.unwrap_or(0);
        (self.space, self.stretch) = (space, Some(stretch));
        self.frames.truncate(kept);
        self.counts.truncate(kept);
        self.addresses
            .truncate(self.counts.last().copied().unwrap_or(0));
        kept
    }

    /// Whether they are all callers of a record that differs in the innermost frame's pc at most.
    pub fn are_callers_of(&self, record: &Record, space: u64) -> bool {
        let (known, asked) = (&self.packed, &record.packed);
        let lengths = known.len() ^ asked.len();
        if (self.space ^ space) | u64::from(self.flags ^ record.flags) | lengths as u64 != 0 {
            return false;
        }
        let differ = |all, (one, other): (&PackedFrame, &PackedFrame)| {
            all | (u128::from_le_bytes(*one) ^ u128::from_le_bytes(*other))
        };
        let mut pairs = known.iter().zip(asked);
        // The second word is the pc.
        let innermost = pairs.next().map(|pair| differ(0, pair) as u64);
        innermost == Some(0) && pairs.fold(0, differ) == 0
    }

    /// Whether anything stands for a frame, counted from the outermost.
    fn is_shown(&self, frame: usize) -> bool {
        let count = |frame: usize| self.counts.get(frame).copied();
        let outside = frame.checked_sub(1).and_then(count).unwrap_or(0);
        count(frame).is_some_and(|count| count > outside)
    }

    /// What stands for the frames, innermost first.
    pub fn addresses(&self) -> impl ExactSizeIterator<Item = u64> {
        self.addresses.iter().rev().copied()
    }

    /// Whether these addresses, innermost first, stand for all of a thread's callers while this is
    /// mapped.
    pub fn are_all(&self, addresses: &[u64], space: u64) -> bool {
        let is_known = self.space == space && self.stretch.is_some();
        is_known && self.addresses().eq(addresses.iter().copied())
    }

    /// Adds what [`Stack::starts`] says of the frames inside, innermost first, whose addresses are
    /// those of `callchain`.
    pub fn add(&mut self, inner: &[ManagedFrame], callchain: &[u64]) {
        let wanted = self.starts.iter().rev().take_while(|start| start.is_some());
        let from = self.starts.len().saturating_sub(wanted.count());
        if from > 0 {
            self.stretch = None;
        }
        let starts = self.starts.get(from..).unwrap_or_default();
        let Some(start) = starts.first().copied().flatten() else {
            return;
        };
        let outside = self.addresses.len();
        let end = callchain.len();
        let count = |start: &Option<usize>| {
            let inside = end.saturating_sub(start.unwrap_or(end));
            inside.saturating_add(outside)
        };
        self.counts.extend(starts.iter().rev().map(count));
        let frames = inner.get(from..).unwrap_or_default();
        self.frames.extend(frames.iter().rev());
        let addresses = callchain.get(start..).unwrap_or_default();
        self.addresses.extend(addresses.iter().rev());
    }
}

/// Whether they are the same, one of them backwards, looked at without a branch for each: most often they are.
fn are_equal(some: &[ManagedFrame], others: &[ManagedFrame]) -> bool {
    let differ = |(one, other): (&ManagedFrame, &ManagedFrame)| {
        (one.addr ^ other.addr)
            | (one.method ^ other.method)
            | (one.pc ^ other.pc)
            | (one.flags ^ other.flags)
    };
    let pairs = some.iter().zip(others.iter().rev());
    some.len() == others.len() && pairs.fold(0, |all, pair| all | differ(pair)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(n: u64) -> ManagedFrame {
        ManagedFrame {
            addr: n,
            method: 0,
            pc: n,
            flags: n & 1,
        }
    }

    fn addresses(stack: &Stack) -> Vec<u64> {
        stack.addresses().collect()
    }

    /// What stands for each frame: nothing for some, a mark before those that one with a flag was
    /// called by.
    fn all(frames: &[ManagedFrame], stretch: bool, space: u64) -> Vec<Vec<u64>> {
        let mut marked = stretch;
        let mut answer = |frame: &ManagedFrame| {
            let mut addresses = Vec::new();
            if !frame.addr.is_multiple_of(3) {
                addresses.extend(std::mem::take(&mut marked).then_some(7));
                addresses.push(frame.addr * 10 + space * 100);
            }
            marked |= frame.flags > 0;
            addresses
        };
        frames.iter().map(&mut answer).collect()
    }

    /// A sample: a thread, its frames' numbers from the outermost on, what is mapped.
    type Sample = (u32, Vec<u64>, u64);

    fn samples() -> impl Strategy<Value = Vec<Sample>> {
        let stack = prop::collection::vec(0u64..6, 0..6);
        prop::collection::vec(
            (0u32..3, stack, prop::sample::select(vec![1u64, 1, 1, 2])),
            1..20,
        )
    }

    /// Keeps what stands for frames, as for a sample of theirs.
    fn learn(stack: &mut Stack, frames: &[ManagedFrame], answers: &[Vec<u64>]) {
        let mut callchain = vec![0];
        for answer in answers.iter().take(frames.len()) {
            stack.starts.push(Some(callchain.len()));
            callchain.extend(answer);
        }
        stack.add(frames, &callchain);
    }

    proptest! {
        #[test]
        fn what_is_kept_is_what_would_be_found_again(samples in samples()) {
            let mut callers = Callers::default();
            for (thread, outermost_first, space) in samples {
                // Two of the three share a place.
                let tid = thread * PLACES as u32 / 2;
                let frames: Vec<_> = outermost_first.iter().rev().map(|n| frame(*n)).collect();
                let stretch = frames.len() % 2 == 0;
                let expected = all(&frames, stretch, space);
                let mut stack = callers.take(tid);
                let kept = stack.keep(&frames, stretch, space);
                let new = frames.len() - kept;
                prop_assert_eq!(addresses(&stack), expected[new..].concat());
                learn(&mut stack, &frames[..new], &expected);
                prop_assert_eq!(addresses(&stack), expected.concat());
                callers.put(tid, stack);
            }
        }
    }

    #[test]
    fn the_same_stack_is_kept_and_what_was_called_by_another_is_not() {
        let frames: Vec<_> = [1, 2, 4, 5, 7].map(frame).into();
        let answers = all(&frames, false, 7);
        let mut stack = Stack::default();
        assert_eq!(stack.keep(&frames, false, 7), 0);
        learn(&mut stack, &frames, &answers);
        assert_eq!(stack.keep(&frames, false, 7), 5);
        assert_eq!(stack.keep(&frames, true, 7), 4);
        assert_eq!(addresses(&stack), answers[1..].concat());
        learn(&mut stack, &frames[..1], &all(&frames, true, 7));
        assert_eq!(stack.keep(&frames[2..], false, 7), 2);
        assert_eq!(addresses(&stack), answers[3..].concat());
        assert_eq!(stack.keep(&frames, true, 8), 0, "something else is mapped");
        assert!(addresses(&stack).is_empty());
    }

    #[test]
    fn outside_a_frame_that_is_not_known_for_certain_all_is_kept() {
        let frames: Vec<_> = [1, 2, 4].map(frame).into();
        let mut stack = Stack::default();
        stack.keep(&frames, false, 7);
        stack.starts = vec![Some(0), None, Some(2)];
        stack.add(&frames, &[10, 20, 40]);
        assert_eq!(addresses(&stack), [40]);
        assert_eq!(stack.keep(&frames, false, 7), 0);
    }
}
