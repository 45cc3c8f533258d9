//! Sums the counts of calling contexts by the address of their instructions.

use varid_recording::{CounterId, NodeId};

use crate::{
    context_children::Children,
    fast_hash::FastMap,
    frames::{ImageId, ImageOffset},
    shares::Share,
};

/// An instruction with the values of a counter of calling contexts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedAddress {
    /// The file.
    pub image: ImageId,
    /// Offset of the instruction in the file.
    pub offset: u64,
    /// The counter.
    pub counter: CounterId,
    /// Own: the values at the instruction. Total: including those of all contexts that it called.
    pub share: Share<u64>,
}

/// Collects the instructions of calling contexts.
#[derive(Debug, Default)]
pub(crate) struct ContextAddresses {
    /// By [`NodeId`]. The default for a node that is not counted.
    calls: Vec<Call>,
    counts: Vec<PlaceCount>,
}

/// The call of a node.
#[derive(Debug, Clone, Copy, Default)]
struct Call {
    /// The calling node.
    caller: Option<NodeId>,
    /// The calling instruction. None if it is unknown.
    place: Option<ImageOffset>,
    /// Whether no call above it, up to the root of the tree, is by the same instruction.
    is_outermost: bool,
}

/// A value of a node at an instruction.
#[derive(Debug, Clone, Copy)]
struct PlaceCount {
    node: NodeId,
    place: ImageOffset,
    counter: CounterId,
    value: u64,
    /// Whether the instruction is among the calls that led to the node, whose totals have the value already.
    is_in_call: bool,
}

/// A place in a walk of the tree.
#[derive(Debug, Clone, Copy)]
enum Step {
    Enter(NodeId),
    Leave(NodeId),
}

impl ContextAddresses {
    /// Adds the call of a node. Callers are added before the nodes that they call.
    pub fn add_call(&mut self, node: NodeId, caller: NodeId, place: Option<ImageOffset>) {
        let after = node.index().saturating_add(1);
        if self.calls.len() < after {
            self.calls.resize(after, Call::default());
        }
        if let Some(call) = self.calls.get_mut(node.index()) {
            *call = Call {
                caller: Some(caller),
                place,
                is_outermost: false,
            };
        }
    }

    /// Adds a value of a node at an instruction.
    pub fn add_count(&mut self, node: NodeId, place: ImageOffset, counter: CounterId, value: u64) {
        self.counts.push(PlaceCount {
            node,
            place,
            counter,
            value,
            is_in_call: false,
        });
    }

    /// Returns the instructions that have values, sorted by file, offset and counter.
    pub fn finish(mut self) -> Vec<CountedAddress> {
        let last = self.counts.iter().map(|count| count.node.index()).max();
        let nodes = last.map_or(0, |last| last.saturating_add(1));
        self.calls
            .resize(nodes.max(self.calls.len()), Call::default());
        self.counts.sort_by_key(|count| count.node);
        self.mark_repeated();
        let mut shares: FastMap<(ImageOffset, CounterId), Share<u64>> = FastMap::default();
        for count in &self.counts {
            let share = shares.entry((count.place, count.counter)).or_default();
            share.own = share.own.saturating_add(count.value);
            if !count.is_in_call {
                share.total = share.total.saturating_add(count.value);
            }
        }
        let mut counters: Vec<CounterId> = self.counts.iter().map(|count| count.counter).collect();
        counters.sort_unstable();
        counters.dedup();
        for counter in counters {
            for (call, value) in self.calls.iter().zip(self.totals(counter)) {
                if let Some(place) = call.place.filter(|_| call.is_outermost && value > 0) {
                    let share = shares.entry((place, counter)).or_default();
                    share.total = share.total.saturating_add(value);
                }
            }
        }
        let row = |((place, counter), share): ((ImageOffset, CounterId), _)| CountedAddress {
            image: place.image,
            offset: place.offset,
            counter,
            share,
        };
        let mut rows: Vec<_> = shares.into_iter().map(row).collect();
        rows.sort_unstable_by_key(|row| (row.image, row.offset, row.counter));
        rows
    }

    /// By [`NodeId`]: the values of a counter in a node and in all nodes below it.
    fn totals(&self, counter: CounterId) -> Vec<u64> {
        let mut totals = vec![0_u64; self.calls.len()];
        for count in self.counts.iter().filter(|count| count.counter == counter) {
            if let Some(total) = totals.get_mut(count.node.index()) {
                *total = total.saturating_add(count.value);
            }
        }
        for (place, call) in self.calls.iter().enumerate().rev() {
            let value = totals.get(place).copied().unwrap_or_default();
            let caller = call
                .caller
                .and_then(|caller| totals.get_mut(caller.index()));
            if let Some(total) = caller {
                *total = total.saturating_add(value);
            }
        }
        totals
    }

    /// Walks the tree and marks the outermost calls of each instruction, and the counts at instructions that are among the
    /// calls above.
    fn mark_repeated(&mut self) {
        let (mut steps, children) = self.links();
        let mut on_path: FastMap<ImageOffset, u32> = FastMap::default();
        while let Some(step) = steps.pop() {
            let (Step::Enter(node) | Step::Leave(node)) = step;
            let Some(call) = self.calls.get_mut(node.index()) else {
                continue;
            };
            let depth = call.place.map(|place| on_path.entry(place).or_default());
            if let Step::Leave(_) = step {
                if let Some(depth) = depth {
                    *depth = depth.saturating_sub(1);
                }
                continue;
            }
            if let Some(depth) = depth {
                call.is_outermost = *depth == 0;
                *depth = depth.saturating_add(1);
            }
            let first = self.counts.partition_point(|count| count.node < node);
            let counts = self.counts.get_mut(first..).unwrap_or_default().iter_mut();
            for count in counts.take_while(|count| count.node == node) {
                count.is_in_call = on_path.get(&count.place).is_some_and(|depth| *depth > 0);
            }
            steps.push(Step::Leave(node));
            let mut child = children.first(node);
            while let Some(found) = child {
                steps.push(Step::Enter(found));
                child = children.next(found);
            }
        }
    }

    /// Returns the roots to walk from, and the children of each node.
    fn links(&self) -> (Vec<Step>, Children) {
        let callers = self.calls.iter().map(|call| call.caller);
        let nodes = (0..).map(NodeId).zip(callers.clone());
        let roots = nodes.filter(|(_, caller)| caller.is_none());
        let roots = roots.map(|(node, _)| Step::Enter(node)).collect();
        (roots, Children::new(callers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};
    use std::collections::BTreeMap;

    const CALLS: CounterId = CounterId(0);

    fn place(offset: u64) -> ImageOffset {
        let image = ImageId(0);
        ImageOffset { image, offset }
    }

    /// A node of a test: its caller, if there is one before it, the instruction that called it, and its value there.
    type TestNode = (u32, u64, u64);

    /// Computes the shares by walking from each value to the root.
    fn by_hand(nodes: &[TestNode]) -> BTreeMap<u64, (u64, u64)> {
        let mut found: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for (node, (_, _, value)) in nodes.iter().enumerate() {
            let own = node as u64 % 3;
            found.entry(own).or_default().0 += value;
            let mut path = vec![own];
            let mut at = node;
            while let Some(caller) = caller_of(at, nodes) {
                path.push(nodes[at].1);
                at = caller;
            }
            path.sort_unstable();
            path.dedup();
            path.iter()
                .for_each(|place| found.entry(*place).or_default().1 += value);
        }
        found.retain(|_, share| *share != (0, 0));
        found
    }

    fn caller_of(node: usize, nodes: &[TestNode]) -> Option<usize> {
        // A third of the nodes are roots.
        let (choice, ..) = nodes[node];
        (choice % 3 > 0 && node > 0).then(|| choice as usize % node)
    }

    proptest! {
        #[test]
        fn shares_equal_a_walk_from_each_value(
            nodes in vec((any::<u32>(), 0..5_u64, 0..9_u64), 0..40),
        ) {
            let mut addresses = ContextAddresses::default();
            for (node, (_, call, value)) in nodes.iter().enumerate() {
                let id = NodeId(node as u32);
                if let Some(caller) = caller_of(node, &nodes) {
                    addresses.add_call(id, NodeId(caller as u32), Some(place(*call)));
                }
                addresses.add_count(id, place(node as u64 % 3), CALLS, *value);
            }
            let rows = addresses.finish();
            let found = rows.iter().map(|row| (row.offset, (row.share.own, row.share.total)));
            let found: BTreeMap<_, _> = found.filter(|(_, share)| *share != (0, 0)).collect();
            prop_assert_eq!(found, by_hand(&nodes));
        }
    }

    #[test]
    fn a_tree_of_a_million_calls_in_a_row_is_walked() {
        let mut addresses = ContextAddresses::default();
        for node in 1..1_000_000 {
            addresses.add_call(NodeId(node), NodeId(node - 1), Some(place(7)));
        }
        addresses.add_count(NodeId(999_999), place(1), CALLS, 5);
        let rows = addresses.finish();
        let shares: Vec<_> = rows
            .iter()
            .map(|row| (row.offset, row.share.own, row.share.total))
            .collect();
        assert_eq!(shares, [(1, 5, 5), (7, 0, 5)]);
    }
}
