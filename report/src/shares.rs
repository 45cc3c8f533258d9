//! Computes the own and total share of each line, symbol, image and layer.

use std::{cell::OnceCell, collections::HashMap, hash::Hash};

use crate::{
    fast_hash::FastMap,
    frames::FrameId,
    index::compact_index_types,
    stacks::{StackId, StackTable, StackTree, Visit},
    weights::{MAX_COUNTERS, ProfileCounter, SampleWeight, Weight, WeightTable},
};

/// The own and total weight of an item.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share<W = Weight> {
    /// Weight of the samples whose leaf is the item, or of its own counts.
    pub own: W,
    /// Weight including its callees. Each sample counts once, even if the item is in the stack several times.
    pub total: W,
}

/// The share of an item in an event's samples.
pub type SampleShare = Share<SampleWeight>;

/// Converts weights of [`ProfileCounter::of_samples`].
impl From<Share> for SampleShare {
    fn from(share: Share) -> Self {
        Self {
            own: share.own.into(),
            total: share.total.into(),
        }
    }
}

/// Weights by [`StackId`], with exactly the shown counters for each stack.
#[derive(Debug, Clone)]
struct WeightList {
    counters: usize,
    values: Vec<u64>,
}

impl WeightList {
    fn new(counters: usize, len: usize) -> Self {
        let counters = counters.clamp(1, MAX_COUNTERS);
        let values = vec![0; len.saturating_mul(counters)];
        Self { counters, values }
    }

    fn place(&self, stack: StackId) -> std::ops::Range<usize> {
        let start = stack.index().saturating_mul(self.counters);
        start..start.saturating_add(self.counters)
    }

    fn get(&self, stack: StackId) -> Weight {
        let values = self.values.get(self.place(stack)).unwrap_or_default();
        Weight::new(values.iter().copied())
    }

    /// The values of all stacks.
    fn slices(&self) -> impl Iterator<Item = &[u64]> {
        self.values.chunks_exact(self.counters)
    }

    fn add(&mut self, stack: StackId, weight: Weight) {
        let place = self.place(stack);
        for (place, value) in self.values.get_mut(place).into_iter().flatten().enumerate() {
            *value = value.saturating_add(weight.get(place));
        }
    }
}

/// The weights of all stacks in some counters, alone and with their descendants.
#[derive(Debug, Clone)]
pub(crate) struct StackWeights<'s> {
    stacks: &'s StackTable,
    /// The own weight of each stack.
    own: WeightList,
    /// The weight of each stack with its descendants.
    totals: OnceCell<WeightList>,
    /// The tree of stacks with a weight. Other stacks belong to other events.
    tree: OnceCell<StackTree<'s>>,
}

impl<'s> StackWeights<'s> {
    pub fn new(stacks: &'s StackTable, weights: &WeightTable, counters: &[ProfileCounter]) -> Self {
        Self::of_leaves(stacks, weights, counters, |_| true)
    }

    /// Returns the weights of the stacks whose leaf passes a test, alone and with their descendants.
    pub fn of_leaves(
        stacks: &'s StackTable,
        weights: &WeightTable,
        counters: &[ProfileCounter],
        test: impl Fn(StackId) -> bool,
    ) -> Self {
        let mut own = WeightList::new(counters.len(), stacks.len());
        for row in weights.rows(counters) {
            if let Some(stack) = row.stack.filter(|stack| test(*stack)) {
                own.add(stack, row.weight);
            }
        }
        Self {
            stacks,
            own,
            totals: OnceCell::new(),
            tree: OnceCell::new(),
        }
    }

    /// Returns the own and total weight of a stack.
    pub fn share(&self, stack: StackId) -> Share {
        Share {
            own: self.own.get(stack),
            total: self.totals().get(stack),
        }
    }

    fn totals(&self) -> &WeightList {
        self.totals.get_or_init(|| {
            let mut totals = self.own.clone();
            for stack in self.stacks.ids().rev() {
                if let Some(parent) = self.stacks.parent(stack) {
                    let total = totals.get(stack);
                    totals.add(parent, total);
                }
            }
            totals
        })
    }

    /// The tree of stacks with a weight, for walks from callers to callees.
    pub fn tree(&self) -> &StackTree<'s> {
        self.tree.get_or_init(|| {
            let totals = self.totals();
            self.stacks.tree_of(|stack| !totals.get(stack).is_zero())
        })
    }

    /// Returns the shares of groups of frames that have a weight. Frames without a group are ignored, but their callees
    /// are not.
    pub fn by_frame<G: Copy + Eq + Hash>(
        &self,
        group: impl Fn(FrameId) -> Option<G>,
    ) -> HashMap<G, Share> {
        let mut numbers = GroupNumbers::default();
        // By frame: the index of its group, if already computed.
        let mut known: Vec<Option<Option<GroupIndex>>> = Vec::new();
        let mut number = |frame: FrameId| {
            let place = frame.index();
            if known.len() <= place {
                known.resize(place.saturating_add(1), None);
            }
            match known.get_mut(place) {
                Some(known) => *known.get_or_insert_with(|| numbers.of(group(frame)?)),
                None => None,
            }
        };
        let of_stack = |stack| number(self.stacks.frame(stack)?);
        let groups: Vec<_> = self.stacks.ids().map(of_stack).collect();
        self.grouped(numbers, &groups).collect()
    }

    /// Returns the weight of calls between groups, in no order. Each sample counts once for a pair of caller and callee.
    pub fn by_call<Caller: Copy + Eq + Hash, Callee: Copy + Eq + Hash>(
        &self,
        caller: impl Fn(FrameId) -> Option<Caller>,
        callee: impl Fn(FrameId) -> Option<Callee>,
    ) -> Vec<((Caller, Callee), Weight)> {
        let call = |stack| {
            let parent = self.stacks.parent(stack)?;
            Some((
                caller(self.stacks.frame(parent)?)?,
                callee(self.stacks.frame(stack)?)?,
            ))
        };
        let mut numbers = GroupNumbers::default();
        let of_stack = |stack| numbers.of(call(stack)?);
        let groups: Vec<_> = self.stacks.ids().map(of_stack).collect();
        let calls = self.grouped(numbers, &groups);
        calls.map(|(pair, share)| (pair, share.total)).collect()
    }

    /// Computes the shares of groups that have a weight. `groups` has the group of each [`StackId`].
    fn grouped<G: Copy + Eq + Hash>(
        &self,
        GroupNumbers(numbers): GroupNumbers<G>,
        groups: &[Option<GroupIndex>],
    ) -> impl Iterator<Item = (G, Share)> + use<G> {
        let shares = match numbers.len() <= MASK_BITS {
            true => self.few_groups(numbers.len(), groups),
            false => self.many_groups(numbers.len(), groups),
        };
        let share = move |(group, number): (G, GroupIndex)| {
            let share = shares.get(number.index()).copied();
            (group, share.unwrap_or_default())
        };
        let all = numbers.into_iter().map(share);
        all.filter(|(_, share)| !share.total.is_zero())
    }

    /// Computes the shares by group index, with one bit for each group in a word.
    fn few_groups(&self, count: usize, groups: &[Option<GroupIndex>]) -> Vec<Share> {
        let mut shares = vec![Share::<Weight>::default(); count];
        // By stack: the groups in it.
        let mut masks: Vec<u64> = Vec::with_capacity(groups.len());
        for ((stack, group), own) in self.stacks.ids().zip(groups).zip(self.own.slices()) {
            let parent = self.stacks.parent(stack);
            let parent = parent.and_then(|parent| masks.get(parent.index()));
            let mut mask = parent.copied().unwrap_or_default();
            let bit = group.and_then(|group| 1u64.checked_shl(group.number()));
            mask |= bit.unwrap_or_default();
            masks.push(mask);
            // Most stacks are only callers.
            if own.iter().all(|value| *value == 0) {
                continue;
            }
            let own = Weight::new(own.iter().copied());
            if let Some(share) = group.and_then(|group| shares.get_mut(group.index())) {
                share.own.add(own);
            }
            while mask != 0 {
                let lowest = usize::try_from(mask.trailing_zeros()).ok();
                if let Some(share) = lowest.and_then(|lowest| shares.get_mut(lowest)) {
                    share.total.add(own);
                }
                mask &= mask.saturating_sub(1);
            }
        }
        shares
    }

    /// Like [`Self::few_groups`], for any number of groups.
    fn many_groups(&self, count: usize, groups: &[Option<GroupIndex>]) -> Vec<Share> {
        let mut shares = vec![Share::<Weight>::default(); count];
        // How often each group occurs among the callers of the current stack.
        let mut on_path = vec![0u32; count];
        self.tree().visit(|visit| {
            let (Visit::Enter(stack) | Visit::Leave(stack)) = visit;
            let Some(group) = groups.get(stack.index()).copied().flatten() else {
                return;
            };
            let place = group.index();
            let (Some(share), Some(count)) = (shares.get_mut(place), on_path.get_mut(place)) else {
                return;
            };
            if matches!(visit, Visit::Leave(_)) {
                *count = count.saturating_sub(1);
                return;
            }
            *count = count.saturating_add(1);
            let here = self.share(stack);
            share.own.add(here.own);
            if *count == 1 {
                share.total.add(here.total);
            }
        });
        shares
    }
}

const MASK_BITS: usize = 64;

compact_index_types! {
    /// Index of a group.
    GroupIndex;
}

/// Assigns indices to groups in order of appearance.
struct GroupNumbers<G>(FastMap<G, GroupIndex>);

impl<G> Default for GroupNumbers<G> {
    fn default() -> Self {
        Self(FastMap::default())
    }
}

impl<G: Copy + Eq + Hash> GroupNumbers<G> {
    /// Returns the index of a group. None if there is no index left.
    fn of(&mut self, group: G) -> Option<GroupIndex> {
        let next = GroupIndex::at(self.0.len())?;
        Some(*self.0.entry(group).or_insert(next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        stack_table_builder::StackTableBuilder,
        tasks::TaskId,
        weights::{EventId, WeightTableBuilder},
    };
    use proptest::{collection::vec, prelude::*};
    use std::collections::HashSet;
    use varid_model::Period;

    const EVENT: EventId = EventId(0);
    const OTHER: EventId = EventId(1);

    /// Makes one sample for each stack, and a sample of another event that does not count.
    fn tables(stacks: &[Vec<u32>]) -> (StackTable, WeightTable) {
        let (mut table, mut weights) = Default::default();
        fn add(
            (table, weights): (&mut StackTableBuilder, &mut WeightTableBuilder),
            frames: &[u32],
            event: EventId,
            task: u32,
        ) {
            let stack = table.intern(frames.iter().copied().map(FrameId));
            weights.add_sample(TaskId(task), stack, event, Period::new(10));
        }
        add((&mut table, &mut weights), &[99, 1], OTHER, 0);
        for (index, stack) in stacks.iter().enumerate() {
            add((&mut table, &mut weights), stack, EVENT, index as u32 % 2);
        }
        (table.finish(), weights.finish())
    }

    fn weights((stacks, weights): &(StackTable, WeightTable)) -> StackWeights<'_> {
        StackWeights::new(stacks, weights, &ProfileCounter::of_samples(EVENT))
    }

    #[test]
    fn recursion_counts_a_sample_once() {
        let tables = tables(&[vec![1, 2, 1, 2, 2], vec![1, 2]]);
        let shares = weights(&tables).by_frame(Some);
        let samples = |frame| {
            let share = shares[&FrameId(frame)];
            (share.own.get(0), share.total.get(0))
        };
        assert_eq!((samples(1), samples(2)), ((0, 2), (2, 2)));
        let calls: HashMap<_, _> = weights(&tables).by_call(Some, Some).into_iter().collect();
        let call = |from, to| calls[&(FrameId(from), FrameId(to))].get(0);
        assert_eq!((call(1, 2), call(2, 1), call(2, 2)), (2, 1, 1));
    }

    #[test]
    fn a_stack_of_many_thousand_frames_is_walked() {
        let tables = tables(&[(0..200_000).collect()]);
        assert_eq!(
            weights(&tables).by_frame(Some)[&FrameId(0)].total,
            Weight::new([1, 10])
        );
    }

    proptest! {
        #[test]
        fn few_and_many_groups_take_the_same(stacks in vec(vec(0..5u32, 0..8), 0..30)) {
            let tables = tables(&stacks);
            let weights = weights(&tables);
            let of_stack = |stack| GroupIndex::at(weights.stacks.frame(stack)?.index() % 4);
            let groups: Vec<_> = weights.stacks.ids().map(of_stack).collect();
            prop_assert_eq!(weights.few_groups(3, &groups), weights.many_groups(3, &groups));
        }

        #[test]
        fn shares_and_calls_equal_a_count_over_the_stacks(
            stacks in vec(vec(0..5u32, 0..8), 0..30),
        ) {
            let tables = tables(&stacks);
            let shares = weights(&tables).by_frame(Some);
            let calls = weights(&tables).by_call(Some, Some);
            let calls: HashMap<_, _> = calls.into_iter().collect();
            let all = tables.1.sample_sum(EVENT);
            prop_assert_eq!(all.samples(), stacks.len() as u64);
            prop_assert!(!shares.contains_key(&FrameId(99)));
            let count = |test: &dyn Fn(&Vec<u32>) -> bool| {
                stacks.iter().filter(|stack| test(stack)).count() as u64
            };
            for symbol in 0..5 {
                let share = shares.get(&FrameId(symbol)).copied().unwrap_or_default();
                prop_assert_eq!(share.total.get(0), count(&|s| s.contains(&symbol)));
                prop_assert_eq!(share.own.get(0), count(&|s| s.last() == Some(&symbol)));
                prop_assert_eq!(share.own.get(1), 10 * share.own.get(0));
                for callee in 0..5 {
                    let call = calls.get(&(FrameId(symbol), FrameId(callee)));
                    let expected = count(&|s| {
                        s.windows(2).map(|w| (w[0], w[1])).collect::<HashSet<_>>()
                            .contains(&(symbol, callee))
                    });
                    prop_assert_eq!(call.map_or(0, |weight| weight.get(0)), expected);
                }
            }
        }
    }
}
