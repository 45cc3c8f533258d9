//! How much did each line, symbol, image or layer take, by itself and with what it called?

use std::{collections::HashMap, hash::Hash};

use crate::{place::PlaceId, tables::TaskId};

/// What a part of the profile weighs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weight {
    /// Samples.
    pub samples: u64,
    /// Sum of their periods: event counts, nanoseconds for cpu-clock.
    pub period: u64,
}

impl Weight {
    /// Adds another.
    pub const fn add(&mut self, other: Self) {
        self.samples = self.samples.saturating_add(other.samples);
        self.period = self.period.saturating_add(other.period);
    }
}

/// What something took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    /// With samples whose leaf it was.
    pub own: Weight,
    /// With samples in whose stack it was, each counted once however often it was there.
    pub total: Weight,
}

/// What a node stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// A thread under one of its names: the roots.
    Task(TaskId),
    /// A place that was called by its parent's, or is inlined there.
    Place(PlaceId),
}

/// A weighted call tree: the threads, below them their stacks, outermost frame first.
#[derive(Debug, Clone, Default)]
pub struct CallTree {
    /// A parent comes before its children.
    nodes: Vec<Node>,
    /// The child of a node with an id; of [`NO_NODE`] these are tasks, else places.
    index: HashMap<(u32, u32), u32>,
    /// The nodes of the sample added last: the next one mostly starts alike.
    last: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    parent: u32,
    /// Of a task if there is no parent, else of a place.
    id: u32,
    own: Weight,
}

impl Node {
    const fn key(self) -> Key {
        if self.parent == NO_NODE {
            Key::Task(TaskId(self.id))
        } else {
            Key::Place(PlaceId(self.id))
        }
    }
}

/// Instead of a parent for the roots, and of a group for what has none.
const NO_NODE: u32 = u32::MAX;

impl CallTree {
    /// Adds a sample: its frames from the outermost to the leaf.
    pub fn add(&mut self, task: TaskId, frames: impl IntoIterator<Item = PlaceId>, weight: Weight) {
        let ids = std::iter::once(task.0).chain(frames.into_iter().map(|place| place.0));
        let (mut at, mut depth, mut alike) = (NO_NODE, 0usize, true);
        for id in ids {
            let same =
                self.last.get(depth).copied().filter(|&node| {
                    alike && get(&self.nodes, node).is_some_and(|node| node.id == id)
                });
            at = if let Some(node) = same {
                node
            } else {
                if alike {
                    self.last.truncate(depth);
                    alike = false;
                }
                let node = self.child(at, id);
                self.last.push(node);
                node
            };
            depth = depth.saturating_add(1);
        }
        self.last.truncate(depth);
        if let Some(node) = usize::try_from(at)
            .ok()
            .and_then(|at| self.nodes.get_mut(at))
        {
            node.own.add(weight);
        }
    }

    /// What everything weighs.
    #[must_use]
    pub fn weight(&self) -> Weight {
        let mut sum = Weight::default();
        self.nodes.iter().for_each(|node| sum.add(node.own));
        sum
    }

    /// Number of nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no sample.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// What each group took. Nodes without a group take no part; what is below them does.
    pub fn shares<G: Copy + Eq + Hash>(
        &self,
        group: impl Fn(Key) -> Option<G>,
    ) -> HashMap<G, Share> {
        self.grouped(|node, _| group(node.key()))
    }

    /// The samples in which a place of one group called one of another, each counted once for
    /// the pair.
    pub fn calls<G: Copy + Eq + Hash>(
        &self,
        group: impl Fn(PlaceId) -> Option<G>,
    ) -> HashMap<(G, G), Weight> {
        let calls = self.grouped(|node, parent| match (parent?.key(), node.key()) {
            (Key::Place(caller), Key::Place(callee)) => Some((group(caller)?, group(callee)?)),
            _ => None,
        });
        let total = |(pair, share): (_, Share)| (pair, share.total);
        calls.into_iter().map(total).collect()
    }

    /// The child of a node with this id, made if there is none.
    fn child(&mut self, parent: u32, id: u32) -> u32 {
        // Nodes are far fewer than bytes of the recording; one too many joins its parent.
        let next = u32::try_from(self.nodes.len()).unwrap_or(NO_NODE);
        if next == NO_NODE {
            return self.index.get(&(parent, id)).copied().unwrap_or(parent);
        }
        let node = *self.index.entry((parent, id)).or_insert(next);
        if node == next {
            self.nodes.push(Node {
                parent,
                id,
                own: Weight::default(),
            });
        }
        node
    }

    /// The weight of each node with everything below it.
    fn totals(&self) -> Vec<Weight> {
        let mut totals: Vec<Weight> = self.nodes.iter().map(|node| node.own).collect();
        for (at, node) in self.nodes.iter().enumerate().rev() {
            let total = totals.get(at).copied().unwrap_or_default();
            if let Some(parent) = get_mut(&mut totals, node.parent) {
                parent.add(total);
            }
        }
        totals
    }

    /// What each group took, a node's group being made of itself and its parent.
    fn grouped<G: Copy + Eq + Hash>(
        &self,
        group: impl Fn(Node, Option<Node>) -> Option<G>,
    ) -> HashMap<G, Share> {
        // Groups by number, so that the walk needs no hashing.
        let mut numbers: HashMap<G, u32> = HashMap::new();
        let mut group_of = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let parent = get(&self.nodes, node.parent);
            let next = u32::try_from(numbers.len()).unwrap_or(NO_NODE);
            let group = group(*node, parent.copied());
            group_of.push(group.map_or(NO_NODE, |group| *numbers.entry(group).or_insert(next)));
        }
        let totals = self.totals();
        let mut shares = vec![Share::default(); numbers.len()];
        let mut on_path = vec![0u32; numbers.len()];
        self.walk(|node, entering| {
            let Some(&number) = get(&group_of, node) else {
                return;
            };
            let (Some(share), Some(count)) =
                (get_mut(&mut shares, number), get_mut(&mut on_path, number))
            else {
                return;
            };
            if !entering {
                *count = count.saturating_sub(1);
                return;
            }
            *count = count.saturating_add(1);
            share
                .own
                .add(get(&self.nodes, node).map_or(Weight::default(), |node| node.own));
            if *count == 1 {
                share
                    .total
                    .add(get(&totals, node).copied().unwrap_or_default());
            }
        });
        let share = |(group, number)| (group, get(&shares, number).copied().unwrap_or_default());
        numbers.into_iter().map(share).collect()
    }

    /// Visits every node before (`true`) and after (`false`) what is below it. Stacks may be
    /// thousands deep: not by recursion.
    fn walk(&self, mut visit: impl FnMut(u32, bool)) {
        // Each node's first child and next sibling; the roots are siblings.
        let mut first = vec![NO_NODE; self.nodes.len()];
        let mut next = vec![NO_NODE; self.nodes.len()];
        let mut root = NO_NODE;
        for (at, node) in self.nodes.iter().enumerate().rev() {
            let at = u32::try_from(at).unwrap_or(NO_NODE);
            let head = get_mut(&mut first, node.parent).unwrap_or(&mut root);
            let sibling = std::mem::replace(head, at);
            if let Some(next) = get_mut(&mut next, at) {
                *next = sibling;
            }
        }
        let mut at = root;
        while at != NO_NODE {
            visit(at, true);
            let mut child = get(&first, at).copied().unwrap_or(NO_NODE);
            // Up until there is a way on.
            while child == NO_NODE && at != NO_NODE {
                visit(at, false);
                child = get(&next, at).copied().unwrap_or(NO_NODE);
                at = get(&self.nodes, at).map_or(NO_NODE, |node| node.parent);
            }
            at = child;
        }
    }
}

fn get<T>(items: &[T], at: u32) -> Option<&T> {
    items.get(usize::try_from(at).ok()?)
}

fn get_mut<T>(items: &mut [T], at: u32) -> Option<&mut T> {
    items.get_mut(usize::try_from(at).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};
    use std::collections::HashSet;

    const ONE: Weight = Weight {
        samples: 1,
        period: 10,
    };

    fn by_symbol(key: Key) -> Option<u32> {
        match key {
            Key::Place(PlaceId(id)) => Some(id),
            Key::Task(_) => None,
        }
    }

    fn tree(stacks: &[Vec<u32>]) -> CallTree {
        let mut tree = CallTree::default();
        for (index, stack) in stacks.iter().enumerate() {
            let task = TaskId(index as u32 % 2);
            tree.add(task, stack.iter().copied().map(PlaceId), ONE);
        }
        tree
    }

    #[test]
    fn recursion_counts_a_sample_once() {
        let tree = tree(&[vec![1, 2, 1, 2, 2], vec![1, 2]]);
        let shares = tree.shares(by_symbol);
        assert_eq!((shares[&1].own.samples, shares[&1].total.samples), (0, 2));
        assert_eq!((shares[&2].own.samples, shares[&2].total.samples), (2, 2));
        let calls = tree.calls(Some);
        let call = |from, to| calls[&(PlaceId(from), PlaceId(to))].samples;
        assert_eq!((call(1, 2), call(2, 1), call(2, 2)), (2, 1, 1));
    }

    #[test]
    fn a_stack_of_many_thousand_frames_is_walked() {
        let deep: Vec<u32> = (0..200_000).collect();
        let tree = tree(&[deep]);
        assert_eq!(tree.shares(by_symbol)[&0].total, ONE);
    }

    proptest! {
        #[test]
        fn shares_and_calls_equal_a_count_over_the_stacks(
            stacks in vec(vec(0..5u32, 0..8), 0..30),
        ) {
            let tree = tree(&stacks);
            let shares = tree.shares(by_symbol);
            let calls = tree.calls(Some);
            prop_assert_eq!(tree.weight().samples, stacks.len() as u64);
            let count = |test: &dyn Fn(&Vec<u32>) -> bool| {
                stacks.iter().filter(|stack| test(stack)).count() as u64
            };
            for symbol in 0..5 {
                let share = shares.get(&symbol).copied().unwrap_or_default();
                prop_assert_eq!(share.total.samples, count(&|s| s.contains(&symbol)));
                prop_assert_eq!(share.own.samples, count(&|s| s.last() == Some(&symbol)));
                prop_assert_eq!(share.own.period, 10 * share.own.samples);
                for callee in 0..5 {
                    let call = calls.get(&(PlaceId(symbol), PlaceId(callee)));
                    let expected = count(&|s| {
                        s.windows(2).map(|w| (w[0], w[1])).collect::<HashSet<_>>()
                            .contains(&(symbol, callee))
                    });
                    prop_assert_eq!(call.map_or(0, |weight| weight.samples), expected);
                }
            }
        }
    }
}
