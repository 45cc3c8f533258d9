//! The calling contexts in a page: a tree of symbols, in which all lines of a symbol share one node.

use crate::{
    export::walk::Walk,
    fast_hash::FastMap,
    frames::SymbolId,
    stacks::{NONE, StackId},
};

/// A prefix tree of symbols in preorder. Siblings are sorted by name.
#[derive(Debug)]
pub struct SymbolTree {
    /// By node: the number of its callers, and its symbol.
    pub nodes: Vec<(u32, SymbolId)>,
    /// By [`StackId`]: its node, or [`NONE`] if the stack has no samples.
    node_of: Vec<u32>,
}

impl SymbolTree {
    /// Makes the tree of these stacks. `is_used` is indexed by [`StackId`]; the parents of a used stack must also be used.
    pub fn new(walk: &Walk, is_used: &[bool]) -> Self {
        let merged = Merged::new(walk, is_used);
        let (nodes, place_of) = merged.in_preorder(&ranks(walk));
        let place = |node: u32| *at(&place_of, node).unwrap_or(&NONE);
        let node_of = merged.node_of.iter().map(|node| place(*node)).collect();
        Self { nodes, node_of }
    }

    /// Returns the node of a stack. None if it has no samples.
    pub fn node(&self, stack: StackId) -> Option<u32> {
        let node = self.node_of.get(stack.index()).copied();
        node.filter(|node| *node != NONE)
    }
}

/// Nodes in the order of the stacks: parents precede their children.
struct Merged {
    /// By node: its parent, or [`NONE`], and its symbol.
    nodes: Vec<(u32, SymbolId)>,
    /// By [`StackId`].
    node_of: Vec<u32>,
}

impl Merged {
    fn new(walk: &Walk, is_used: &[bool]) -> Self {
        let stacks = &walk.profile.stacks;
        let mut nodes = Vec::new();
        let mut node_of = vec![NONE; stacks.len()];
        let mut ids: FastMap<(u32, SymbolId), u32> = FastMap::default();
        for stack in stacks.ids() {
            let frame = stacks.frame(stack).and_then(|frame| walk.frame(frame));
            let (Some(frame), Some(true)) = (frame, is_used.get(stack.index())) else {
                continue;
            };
            let parent = stacks.parent(stack);
            let parent = parent.and_then(|parent| node_of.get(parent.index()).copied());
            let node = (parent.unwrap_or(NONE), frame.symbol);
            // There are at most as many nodes as stacks.
            let next = u32::try_from(nodes.len()).unwrap_or(NONE);
            let id = *ids.entry(node).or_insert(next);
            if id == next {
                nodes.push(node);
            }
            if let Some(of_stack) = node_of.get_mut(stack.index()) {
                *of_stack = id;
            }
        }
        Self { nodes, node_of }
    }

    /// Returns the nodes in preorder as depths and symbols, and the new index of each node.
    fn in_preorder(&self, ranks: &[u32]) -> (Vec<(u32, SymbolId)>, Vec<u32>) {
        let len = self.nodes.len();
        let rank = |node: &u32| {
            let symbol = at(&self.nodes, *node).map(|(_, symbol)| symbol.0);
            symbol.and_then(|symbol| at(ranks, symbol)).copied()
        };
        let mut order: Vec<u32> = (0..u32::try_from(len).unwrap_or(NONE)).collect();
        order.sort_by_key(rank);
        let mut first_children = vec![NONE; len];
        let mut next_siblings = vec![NONE; len];
        let mut first_root = NONE;
        for node in order.into_iter().rev() {
            let parent = at(&self.nodes, node).map_or(NONE, |(parent, _)| *parent);
            let head = match parent {
                NONE => Some(&mut first_root),
                parent => at_mut(&mut first_children, parent),
            };
            if let (Some(head), Some(next)) = (head, at_mut(&mut next_siblings, node)) {
                *next = std::mem::replace(head, node);
            }
        }
        let mut nodes = Vec::with_capacity(len);
        let mut place_of = vec![NONE; len];
        let mut waiting = vec![(first_root, 0u32)];
        while let Some((node, depth)) = waiting.pop() {
            let (Some((_, symbol)), Some(place)) =
                (at(&self.nodes, node), at_mut(&mut place_of, node))
            else {
                continue;
            };
            *place = u32::try_from(nodes.len()).unwrap_or(NONE);
            nodes.push((depth, *symbol));
            let next = |list: &[u32]| at(list, node).copied().unwrap_or(NONE);
            waiting.push((next(&next_siblings), depth));
            waiting.push((next(&first_children), depth.saturating_add(1)));
        }
        (nodes, place_of)
    }
}

/// By [`SymbolId`]: the rank of its name in alphabetical order.
fn ranks(walk: &Walk) -> Vec<u32> {
    let symbols = walk.profile.frames.symbols();
    let mut order: Vec<_> = symbols.iter().zip(0u32..).collect();
    order.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
    let mut ranks = vec![0; symbols.len()];
    for ((_, symbol), rank) in order.into_iter().zip(0u32..) {
        if let Some(place) = at_mut(&mut ranks, symbol) {
            *place = rank;
        }
    }
    ranks
}

/// Returns the item at an index. None for [`NONE`].
fn at<T>(items: &[T], number: u32) -> Option<&T> {
    items.get(usize::try_from(number).ok()?)
}

fn at_mut<T>(items: &mut [T], number: u32) -> Option<&mut T> {
    items.get_mut(usize::try_from(number).ok()?)
}
