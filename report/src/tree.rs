//! How much did each symbol, image or layer take, by itself and with what it called?

use std::{collections::HashMap, hash::Hash};

use crate::profile::{SymbolId, TaskId};

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
    /// A symbol that was called by its parent's.
    Symbol(SymbolId),
}

/// A weighted call tree: the threads, below them their stacks, outermost frame first.
#[derive(Debug, Clone, Default)]
pub struct CallTree {
    /// A parent comes before its children.
    nodes: Vec<Node>,
    /// The child of a node (`usize::MAX`: of none) with a key.
    index: HashMap<(usize, Key), usize>,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    parent: usize,
    key: Key,
    own: Weight,
}

/// Instead of a parent for the roots.
const NO_NODE: usize = usize::MAX;

impl CallTree {
    /// Adds a sample: its frames from the outermost to the leaf.
    pub fn add(
        &mut self,
        task: TaskId,
        frames: impl IntoIterator<Item = SymbolId>,
        weight: Weight,
    ) {
        let mut at = self.child(NO_NODE, Key::Task(task));
        for symbol in frames {
            at = self.child(at, Key::Symbol(symbol));
        }
        if let Some(node) = self.nodes.get_mut(at) {
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
        let mut shares: HashMap<G, Share> = HashMap::new();
        let mut on_path: HashMap<G, u32> = HashMap::new();
        self.walk(|step| match step {
            Step::Enter {
                key, own, total, ..
            } => {
                let Some(group) = group(key) else { return };
                let share = shares.entry(group).or_default();
                share.own.add(own);
                if enter(&mut on_path, group) {
                    share.total.add(total);
                }
            }
            Step::Leave { key, .. } => {
                if let Some(group) = group(key) {
                    leave(&mut on_path, group);
                }
            }
        });
        shares
    }

    /// The samples in which one symbol called another, each counted once for the pair.
    #[must_use]
    pub fn calls(&self) -> HashMap<(SymbolId, SymbolId), Weight> {
        let mut calls: HashMap<_, Weight> = HashMap::new();
        let mut on_path = HashMap::new();
        self.walk(|step| match step {
            Step::Enter {
                parent: Some(Key::Symbol(caller)),
                key: Key::Symbol(callee),
                total,
                ..
            } => {
                let is_first = enter(&mut on_path, (caller, callee));
                let call = calls.entry((caller, callee)).or_default();
                if is_first {
                    call.add(total);
                }
            }
            Step::Leave {
                parent: Some(Key::Symbol(caller)),
                key: Key::Symbol(callee),
            } => leave(&mut on_path, (caller, callee)),
            _ => {}
        });
        calls
    }

    /// The child of a node with this key, made if there is none.
    fn child(&mut self, parent: usize, key: Key) -> usize {
        let next = self.nodes.len();
        let node = *self.index.entry((parent, key)).or_insert(next);
        if node == next {
            self.nodes.push(Node {
                parent,
                key,
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
            if let Some(parent) = totals.get_mut(node.parent) {
                parent.add(total);
            }
        }
        totals
    }

    /// Visits every node before and after what is below it. Stacks may be thousands deep:
    /// not by recursion.
    fn walk(&self, mut visit: impl FnMut(Step)) {
        let totals = self.totals();
        let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
        for (at, node) in self.nodes.iter().enumerate() {
            children.entry(node.parent).or_default().push(at);
        }
        let mut todo: Vec<(usize, bool)> = Vec::new();
        let push = |todo: &mut Vec<(usize, bool)>, of| {
            let below = children.get(&of).map_or(&[][..], Vec::as_slice);
            todo.extend(below.iter().rev().map(|&child| (child, true)));
        };
        push(&mut todo, NO_NODE);
        while let Some((at, entering)) = todo.pop() {
            let Some(node) = self.nodes.get(at) else {
                continue;
            };
            let parent = self.nodes.get(node.parent).map(|parent| parent.key);
            let key = node.key;
            if entering {
                let (own, total) = (node.own, totals.get(at).copied().unwrap_or_default());
                visit(Step::Enter {
                    parent,
                    key,
                    own,
                    total,
                });
                todo.push((at, false));
                push(&mut todo, at);
            } else {
                visit(Step::Leave { parent, key });
            }
        }
    }
}

enum Step {
    Enter {
        parent: Option<Key>,
        key: Key,
        own: Weight,
        total: Weight,
    },
    Leave {
        parent: Option<Key>,
        key: Key,
    },
}

/// Notes one more occurrence on the path; whether it is the only one.
fn enter<G: Eq + Hash>(on_path: &mut HashMap<G, u32>, group: G) -> bool {
    let count = on_path.entry(group).or_default();
    *count = count.saturating_add(1);
    *count == 1
}

fn leave<G: Eq + Hash>(on_path: &mut HashMap<G, u32>, group: G) {
    if let Some(count) = on_path.get_mut(&group) {
        *count = count.saturating_sub(1);
    }
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
            Key::Symbol(SymbolId(id)) => Some(id),
            Key::Task(_) => None,
        }
    }

    fn tree(stacks: &[Vec<u32>]) -> CallTree {
        let mut tree = CallTree::default();
        for (index, stack) in stacks.iter().enumerate() {
            let task = TaskId(index as u32 % 2);
            tree.add(task, stack.iter().copied().map(SymbolId), ONE);
        }
        tree
    }

    #[test]
    fn recursion_counts_a_sample_once() {
        let tree = tree(&[vec![1, 2, 1, 2, 2], vec![1, 2]]);
        let shares = tree.shares(by_symbol);
        assert_eq!((shares[&1].own.samples, shares[&1].total.samples), (0, 2));
        assert_eq!((shares[&2].own.samples, shares[&2].total.samples), (2, 2));
        let calls = tree.calls();
        let call = |from, to| calls[&(SymbolId(from), SymbolId(to))].samples;
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
            let calls = tree.calls();
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
                    let call = calls.get(&(SymbolId(symbol), SymbolId(callee)));
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
