//! Finds or adds the stack of a sample's callchain.
//!
//! Most callchains occur more than once, so the whole callchain is looked up first. A new callchain mostly shares its
//! outer frames with the previous one of its thread; only the other frames are resolved.

use std::hash::{Hash, Hasher};

use varid_model::{Address, FrameAddress, Reason, Tid};
use varid_recording::{CpuMode, Sample, remap};

use crate::{
    fast_hash::{FastMap, Fingerprint, Fingerprints},
    frames::FrameId,
    naming::{Resolver, SpaceState},
    stack_filter::{StackFilter, StackOption, StackSelector},
    stack_table_builder::StackTableBuilder,
    stacks::StackId,
};

/// The result for a callchain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChainStack {
    /// An option excludes the sample.
    Excluded(StackOption),
    /// The sample counts.
    Counted {
        /// None if no frame is known.
        stack: Option<StackId>,
        /// The reason, if the frames are not attributed.
        reason: Option<Reason>,
    },
}

/// The known callchains and their results.
#[derive(Debug)]
pub(crate) struct CallchainTable {
    selector: StackSelector,
    known: FastMap<Fingerprint, ChainStack>,
    fingerprints: Fingerprints,
    /// Indexed by the last bits of the thread id.
    recent: Vec<RecentChain>,
    /// Frames of the callchain that is being resolved.
    frames: SampleFrames,
}

/// The frames of a sample.
#[derive(Debug, Default)]
pub(crate) struct SampleFrames {
    /// Leaf first.
    frames: Vec<FrameId>,
    /// For each address of the user callchain, the index in `frames` after its last frame.
    ends: Vec<usize>,
}

/// The user part of the last resolved callchain, outermost first.
#[derive(Debug, Clone, Default)]
struct RecentChain {
    space: SpaceState,
    addresses: Vec<RecentAddress>,
}

#[derive(Debug, Clone, Copy)]
struct RecentAddress {
    address: Address,
    /// The stack that ends at its frames.
    stack: Option<StackId>,
}

/// The most cached callchains, 32 bytes each. A full cache is cleared.
const MAX_KNOWN: usize = 1 << 21;
/// Must be a power of two.
const RECENT: usize = 1 << 7;

impl CallchainTable {
    pub fn new(filter: StackFilter) -> Self {
        Self {
            selector: StackSelector::new(filter),
            known: FastMap::default(),
            fingerprints: Fingerprints::default(),
            recent: vec![RecentChain::default(); RECENT],
            frames: SampleFrames::default(),
        }
    }

    /// Returns the stack of a sample's callchain.
    pub fn stack_of(
        &mut self,
        resolver: &mut Resolver,
        stacks: &mut StackTableBuilder,
        sample: &Sample<&[Address]>,
    ) -> ChainStack {
        let space = resolver.space_state(sample.pid);
        let key = self.fingerprints.of(ChainKey { space, sample });
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let found = self.look_up(resolver, stacks, space, sample);
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert(key, found);
        found
    }

    fn look_up(
        &mut self,
        resolver: &mut Resolver,
        stacks: &mut StackTableBuilder,
        space: SpaceState,
        sample: &Sample<&[Address]>,
    ) -> ChainStack {
        let mut no_recent = RecentChain::default();
        let is_plain = !self.selector.is_active() && !sample.precision.is_approximate();
        let recent = match self.recent.get_mut(slot(sample.tid)) {
            Some(recent) if is_plain => recent,
            _ => &mut no_recent,
        };
        recent.keep_shared(space, sample.user);
        let shared = recent.addresses.len();
        let kernel = self.frames.resolve(resolver, space, sample, shared);
        let (frames, ends) = (&self.frames.frames, &self.frames.ends);
        if let Some(option) = self.selector.excluded_by(frames, resolver) {
            return ChainStack::Excluded(option);
        }
        let mut stack = recent.addresses.last().and_then(|last| last.stack);
        let mut push = |frames: &[FrameId]| {
            for frame in frames.iter().rev() {
                stack = stacks.child(stack, *frame);
            }
            stack
        };
        for (depth, address) in sample.user.iter().enumerate().take(ends.len()).rev() {
            let start = match depth.checked_sub(1) {
                Some(before) => ends.get(before).copied(),
                None => Some(kernel),
            };
            let range = start.zip(ends.get(depth).copied());
            let frames = range.and_then(|(start, end)| frames.get(start..end));
            let stack = push(frames.unwrap_or_default());
            let address = *address;
            recent.addresses.push(RecentAddress { address, stack });
        }
        let stack = push(frames.get(..kernel).unwrap_or_default());
        ChainStack::Counted {
            stack,
            reason: remap::unattributed(sample.user),
        }
    }
}

impl SampleFrames {
    /// Returns the frames of a sample, leaf first.
    pub fn of(&mut self, resolver: &mut Resolver, sample: &Sample<&[Address]>) -> &[FrameId] {
        let space = resolver.space_state(sample.pid);
        self.resolve(resolver, space, sample, 0);
        &self.frames
    }

    /// Resolves the frames of a sample's callchain except the outermost `shared` addresses. Returns the number of
    /// kernel frames.
    fn resolve(
        &mut self,
        resolver: &mut Resolver,
        space: SpaceState,
        sample: &Sample<&[Address]>,
        shared: usize,
    ) -> usize {
        let new = sample.user.len().saturating_sub(shared);
        let frames = &mut self.frames;
        frames.clear();
        self.ends.clear();
        for frame in sample.kernel_frames() {
            frames.extend_from_slice(resolver.kernel_frames(frame));
        }
        let kernel = frames.len();
        // The instruction of the innermost method may be approximate.
        let mut is_approximate = sample.precision.is_approximate();
        for frame in sample.user_frames().take(new) {
            let first = frames.len();
            frames.extend_from_slice(resolver.user_frames_in(sample.pid, space, frame));
            if is_approximate && resolver.is_in_method(sample.pid, frame) {
                is_approximate = false;
                for frame in frames.iter_mut().skip(first) {
                    *frame = resolver.approximate(*frame);
                }
            }
            self.ends.push(frames.len());
        }
        if !frames.is_empty() || shared > 0 {
            return kernel;
        }
        let leaf = FrameAddress::Instruction(sample.original_ip);
        frames.extend_from_slice(match sample.mode {
            CpuMode::Kernel => resolver.kernel_frames(leaf),
            CpuMode::User => resolver.user_frames_in(sample.pid, space, leaf),
        });
        self.ends.clear();
        frames.len()
    }
}

impl RecentChain {
    /// Keeps the outermost frames shared with another callchain. The leaf is never shared, because it is not a return
    /// address.
    fn keep_shared(&mut self, space: SpaceState, user: &[Address]) {
        let callers = user.get(1..).unwrap_or_default().iter().rev();
        let own_callers = self.addresses.len().saturating_sub(1);
        let both = self.addresses.iter().take(own_callers).zip(callers);
        let shared = match self.space == space {
            true => both
                .take_while(|(own, other)| own.address == **other)
                .count(),
            false => 0,
        };
        self.space = space;
        self.addresses.truncate(shared);
    }
}

fn slot(tid: Tid) -> usize {
    usize::try_from(tid.get()).unwrap_or(0) & RECENT.saturating_sub(1)
}

/// All inputs that determine the result for a callchain.
struct ChainKey<'s> {
    space: SpaceState,
    sample: &'s Sample<&'s [Address]>,
}

impl Hash for ChainKey<'_> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let sample = self.sample;
        let chains = [sample.kernel, sample.user];
        let lengths = chains.map(|chain| chain.len() as u64);
        write_pair(hasher, self.space.fingerprint());
        write_pair(hasher, lengths);
        for chain in chains {
            write_addresses(hasher, chain);
        }
        hasher.write_u128(u128::from(sample.precision.is_approximate()));
        if lengths == [0, 0] {
            sample.mode.hash(hasher);
            hasher.write_u64(sample.original_ip.get());
        }
    }
}

/// Adds addresses to a hash, two at once: the hash function takes 128 bits in one step. The caller adds the number of
/// addresses, because an odd number is filled up with a zero.
fn write_addresses<H: Hasher>(hasher: &mut H, addresses: &[Address]) {
    let (pairs, last) = addresses.as_chunks();
    for pair in pairs {
        write_pair(hasher, pair.map(Address::get));
    }
    if let [last] = last {
        write_pair(hasher, [last.get(), 0]);
    }
}

fn write_pair<H: Hasher>(hasher: &mut H, [first, second]: [u64; 2]) {
    hasher.write_u128(u128::from(first) | u128::from(second) << 64);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};
    use varid_model::{MonotonicNs, Period, Pid, Precision};

    /// Few different callchains, many of which begin with another one or differ in where the user's addresses start.
    fn sample() -> impl Strategy<Value = Sample> {
        let chain = || vec((0..2u64).prop_map(Address::new), 0..4);
        let flags = (any::<bool>(), any::<bool>(), 0..2u64);
        (chain(), chain(), flags).prop_map(|(kernel, user, (approximate, in_kernel, ip))| Sample {
            event: 0,
            time: MonotonicNs::new(1),
            pid: Pid::new(1),
            tid: Tid::new(1),
            cpu: 0,
            period: Period::new(1),
            original_ip: Address::new(ip),
            interrupt: None,
            mode: match in_kernel {
                true => CpuMode::Kernel,
                false => CpuMode::User,
            },
            uid: 0,
            frame: None,
            precision: match approximate {
                true => Precision::Approximate,
                false => Precision::Exact,
            },
            kernel,
            user,
        })
    }

    proptest! {
        #[test]
        fn samples_have_the_same_key_exactly_if_they_have_the_same_frames(
            first in sample(),
            second in sample(),
        ) {
            let fingerprints = Fingerprints::default();
            let key = |sample: &Sample| fingerprints.of(ChainKey {
                space: SpaceState::default(),
                sample: &sample.borrowed(),
            });
            let frames = |sample: &Sample| {
                let has_none = sample.kernel.is_empty() && sample.user.is_empty();
                let leaf = has_none.then_some((sample.mode, sample.original_ip));
                (sample.kernel.clone(), sample.user.clone(), leaf, sample.precision.is_approximate())
            };
            prop_assert_eq!(key(&first) == key(&second), frames(&first) == frames(&second));
        }
    }

    #[test]
    fn a_callchain_shares_the_callers_of_the_one_before_it_and_not_its_leaf() {
        let stack = StackId::at;
        let recent = || RecentChain {
            space: SpaceState::default(),
            addresses: [(30, 0), (20, 1), (10, 2)]
                .map(|(address, node)| RecentAddress {
                    address: Address::new(address),
                    stack: stack(node),
                })
                .to_vec(),
        };
        for (user, shared) in [
            (&[11, 20, 30][..], 2),
            (&[10, 20, 30], 2),
            (&[9, 10, 20, 30], 2),
            // Here 20 is the leaf, an instruction instead of a return address.
            (&[20, 30], 1),
            (&[30], 0),
            (&[11, 21, 30], 1),
            (&[11, 20, 31], 0),
            (&[], 0),
        ] {
            let user: Vec<Address> = user.iter().copied().map(Address::new).collect();
            let mut recent = recent();
            recent.keep_shared(SpaceState::default(), &user);
            assert_eq!(recent.addresses.len(), shared, "{user:?}");
        }
    }
}
