//! Caches what attribution found for the callers in a thread's last sample.
//!
//! From sample to sample, most outer frames of a thread stay the same. The addresses of a frame in a callchain follow from the frame, from
//! what is known about the process ([`Knowledge`]), and from the frame's callee, up to the next inner frame that has an address. If these
//! are equal, so are the addresses. The thread's number only selects the slot.

use varid_model::Address;
use varid_shim::{CapturedSample, ManagedFrame, PackedFrame};

/// The version of the knowledge about a process that addresses follow from. An entry with another version is never used, so the cache need
/// not be cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Knowledge {
    /// Counts changes of the mappings.
    pub mapped: u64,
    /// Counts changes of the VM and its methods.
    pub vm: u64,
}

/// The number of slots. Threads that share one only lose time.
const SLOTS: usize = 64;

/// The callers in the last samples of a process's threads.
#[derive(Debug, Default)]
pub(crate) struct CallchainCache(Vec<CachedCallers>);

impl CallchainCache {
    /// Removes a thread's entry.
    pub fn take(&mut self, tid: u32) -> CachedCallers {
        self.slot(tid).map(std::mem::take).unwrap_or_default()
    }

    /// Stores a thread's entry for its next sample.
    pub fn put(&mut self, tid: u32, stack: CachedCallers) {
        if self.0.is_empty() {
            self.0.resize_with(SLOTS, CachedCallers::default);
        }
        if let Some(place) = self.slot(tid) {
            *place = stack;
        }
    }

    /// Returns a thread's entry.
    pub fn of(&self, tid: u32) -> Option<&CachedCallers> {
        self.0.get(tid as usize % SLOTS)
    }

    /// Stores a record's whole callchain. Its callers must be those in its thread's entry.
    pub fn store(&mut self, record: &CapturedSample, callchain: &[Address]) {
        if let Some(stack) = self.slot(record.tid.get()) {
            stack.flags = record.flags;
            stack.packed.clear();
            stack.packed.extend_from_slice(record.frames.packed());
            stack.callchain.clear();
            stack.callchain.extend_from_slice(callchain);
        }
    }

    /// Returns the callchain that was stored for a thread, with another leaf.
    pub fn with_leaf(&mut self, tid: u32, leaf: Address) -> Option<&[Address]> {
        let callchain = &mut self.slot(tid)?.callchain;
        *callchain.first_mut()? = leaf;
        Some(callchain)
    }

    fn slot(&mut self, tid: u32) -> Option<&mut CachedCallers> {
        self.0.get_mut(tid as usize % SLOTS)
    }
}

/// Frames and their addresses in a callchain, outermost first: what differs from sample to sample is at the end.
#[derive(Debug, Default)]
pub(crate) struct CachedCallers {
    frames: Vec<ManagedFrame>,
    /// The addresses of all frames, outermost first.
    addresses: Vec<Address>,
    /// By frame: the number of addresses of it and its callers.
    counts: Vec<usize>,
    /// True if native frames were left out before the innermost one. None if that is not known.
    native_frames_omitted: Option<bool>,
    /// The knowledge that the addresses follow from.
    knowledge: Knowledge,
    /// The record whose callers these are: its flags, its frames including the innermost, and its callchain. Without frames there is no
    /// such record.
    flags: u32,
    packed: Vec<PackedFrame>,
    callchain: Vec<Address>,
    /// By frame to be added, innermost first: where its addresses start in the callchain. None if they are not certain.
    pub starts: Vec<Option<usize>>,
}

impl CachedCallers {
    /// Keeps only the outer frames that `frames`, innermost first, has in common with the entry and whose addresses are still right.
    /// Returns how many are left. `native_frames_omitted`: native frames are left out before the innermost.
    pub fn retain_common(
        &mut self,
        frames: &[ManagedFrame],
        native_frames_omitted: bool,
        knowledge: Knowledge,
    ) -> usize {
        self.starts.clear();
        self.packed.clear();
        let is_same = self.native_frames_omitted == Some(native_frames_omitted)
            && self.knowledge == knowledge;
        if is_same && are_equal(&self.frames, frames) {
            return frames.len();
        }
        let pairs = self.frames.iter().zip(frames.iter().rev());
        let same = pairs.take_while(|(known, frame)| known == frame).count();
        let kept = match self.knowledge == knowledge {
            // The callee of the next inner frame may have changed.
            true => (0..same).rev().find(|inside| self.is_shown(*inside)),
            false => None,
        };
        let kept = kept.unwrap_or(0);
        (self.knowledge, self.native_frames_omitted) = (knowledge, Some(native_frames_omitted));
        self.frames.truncate(kept);
        self.counts.truncate(kept);
        self.addresses
            .truncate(self.counts.last().copied().unwrap_or(0));
        kept
    }

    /// Returns true if these are all the callers of a record that differs at most in the innermost frame's pc.
    pub fn are_callers_of(&self, record: &CapturedSample, knowledge: Knowledge) -> bool {
        let (cached, sampled) = (&self.packed, record.frames.packed());
        let lengths = cached.len() ^ sampled.len();
        let changed =
            (self.knowledge.mapped ^ knowledge.mapped) | (self.knowledge.vm ^ knowledge.vm);
        if changed | u64::from(self.flags ^ record.flags) | lengths as u64 != 0 {
            return false;
        }
        let differ = |all, (one, other): (&PackedFrame, &PackedFrame)| {
            all | (u128::from_le_bytes(*one) ^ u128::from_le_bytes(*other))
        };
        let mut pairs = cached.iter().zip(sampled);
        // The second word is the pc.
        let innermost = pairs.next().map(|pair| differ(0, pair) as u64);
        innermost == Some(0) && pairs.fold(0, differ) == 0
    }

    /// Returns true if a frame, counted from the outermost, has an address.
    fn is_shown(&self, frame: usize) -> bool {
        let count = |frame: usize| self.counts.get(frame).copied();
        let outside = frame.checked_sub(1).and_then(count).unwrap_or(0);
        count(frame).is_some_and(|count| count > outside)
    }

    /// Returns the addresses of the frames, innermost first.
    pub fn addresses(&self) -> impl ExactSizeIterator<Item = Address> {
        self.addresses.iter().rev().copied()
    }

    /// Returns true if these addresses, innermost first, are all of the thread's callers.
    pub fn are_all(&self, addresses: &[Address], knowledge: Knowledge) -> bool {
        let is_known = self.knowledge == knowledge && self.native_frames_omitted.is_some();
        is_known && self.addresses().eq(addresses.iter().copied())
    }

    /// Adds inner frames, innermost first. Their addresses are those in `callchain` at the positions in [`CachedCallers::starts`].
    pub fn add(&mut self, inner: &[ManagedFrame], callchain: &[Address]) {
        let certain = self.starts.iter().rev().take_while(|start| start.is_some());
        let from = self.starts.len().saturating_sub(certain.count());
        if from > 0 {
            self.native_frames_omitted = None;
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

/// Returns true if two lists are equal, one of them reversed. There is no branch for each frame, because the lists are mostly equal.
fn are_equal(some: &[ManagedFrame], others: &[ManagedFrame]) -> bool {
    let pairs = some.iter().zip(others.iter().rev());
    some.len() == others.len()
        && pairs.fold(0, |all, (one, other)| all | one.difference(other)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use varid_model::Address;
    use varid_shim::FramePc;

    fn frame(n: u64) -> ManagedFrame {
        let at = Address::new(n);
        match n & 1 {
            0 => ManagedFrame::new(at, FramePc::Absolute(at), false),
            _ => ManagedFrame::new(at, FramePc::Native { method: at }, false),
        }
    }

    /// Successive numbers differ in one of the two.
    fn known(number: u64) -> Knowledge {
        Knowledge {
            mapped: number / 2,
            vm: number % 2,
        }
    }

    fn addresses(stack: &CachedCallers) -> Vec<u64> {
        stack.addresses().map(Address::get).collect()
    }

    /// What stands for each frame: nothing for some, a mark before those that one with a flag was
    /// called by.
    fn all(frames: &[ManagedFrame], native_frames_omitted: bool, space: u64) -> Vec<Vec<u64>> {
        let mut marked = native_frames_omitted;
        let mut answer = |frame: &ManagedFrame| {
            let mut addresses = Vec::new();
            let at = frame.address().get();
            if !at.is_multiple_of(3) {
                addresses.extend(std::mem::take(&mut marked).then_some(7));
                addresses.push(at * 10 + space * 100);
            }
            marked |= frame.is_quick();
            addresses
        };
        frames.iter().map(&mut answer).collect()
    }

    /// A sample: a thread, its frames' numbers from the outermost on, what is mapped.
    type Sample = (u32, Vec<u64>, u64);

    fn samples() -> impl Strategy<Value = Vec<Sample>> {
        let stack = prop::collection::vec(0u64..6, 0..6);
        prop::collection::vec(
            (0u32..3, stack, prop::sample::select(vec![2u64, 2, 2, 3, 4])),
            1..20,
        )
    }

    /// Keeps what stands for frames, as for a sample of theirs.
    fn learn(stack: &mut CachedCallers, frames: &[ManagedFrame], answers: &[Vec<u64>]) {
        let mut callchain = vec![0];
        for answer in answers.iter().take(frames.len()) {
            stack.starts.push(Some(callchain.len()));
            callchain.extend(answer);
        }
        let callchain: Vec<_> = callchain.into_iter().map(Address::new).collect();
        stack.add(frames, &callchain);
    }

    proptest! {
        #[test]
        fn what_is_kept_is_what_would_be_found_again(samples in samples()) {
            let mut callers = CallchainCache::default();
            for (thread, outermost_first, space) in samples {
                // Two of the three share a place.
                let tid = thread * SLOTS as u32 / 2;
                let frames: Vec<_> = outermost_first.iter().rev().map(|n| frame(*n)).collect();
                let native_frames_omitted = frames.len() % 2 == 0;
                let expected = all(&frames, native_frames_omitted, space);
                let mut stack = callers.take(tid);
                let kept = stack.retain_common(&frames, native_frames_omitted, known(space));
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
        let mut stack = CachedCallers::default();
        assert_eq!(stack.retain_common(&frames, false, known(7)), 0);
        learn(&mut stack, &frames, &answers);
        assert_eq!(stack.retain_common(&frames, false, known(7)), 5);
        assert_eq!(stack.retain_common(&frames, true, known(7)), 4);
        assert_eq!(addresses(&stack), answers[1..].concat());
        learn(&mut stack, &frames[..1], &all(&frames, true, 7));
        assert_eq!(stack.retain_common(&frames[2..], false, known(7)), 2);
        assert_eq!(addresses(&stack), answers[3..].concat());
        assert_eq!(
            stack.retain_common(&frames, true, known(6)),
            0,
            "something else is mapped"
        );
        assert!(addresses(&stack).is_empty());
    }

    #[test]
    fn outside_a_frame_that_is_not_known_for_certain_all_is_kept() {
        let frames: Vec<_> = [1, 2, 4].map(frame).into();
        let mut stack = CachedCallers::default();
        stack.retain_common(&frames, false, known(7));
        stack.starts = vec![Some(0), None, Some(2)];
        stack.add(&frames, &[10, 20, 40].map(Address::new));
        assert_eq!(addresses(&stack), [40]);
        assert_eq!(stack.retain_common(&frames, false, known(7)), 0);
    }
}
