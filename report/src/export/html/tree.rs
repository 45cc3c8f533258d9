//! The calling contexts in a page: a tree of symbols, in which all lines of a symbol share one node.

use crate::{export::walk::Walk, fast_hash::FastMap, frames::SymbolId, stacks::StackId};

/// A node in preorder.
#[derive(Debug, Clone, Copy)]
pub struct TreeNode {
    /// The number of its callers.
    pub depth: u32,
    pub symbol: SymbolId,
}

/// A prefix tree of symbols in preorder. Siblings are sorted by name.
#[derive(Debug)]
pub struct SymbolTree {
    pub nodes: Vec<TreeNode>,
    /// By [`StackId`]: the index of its node. None if the stack has no samples.
    node_of: Vec<Option<u32>>,
}

impl SymbolTree {
    /// Makes the tree of these stacks. `is_used` is indexed by [`StackId`]; the parents of a used stack must also be used.
    pub fn new(walk: &Walk, is_used: &[bool]) -> Self {
        let merged = Merged::new(walk, is_used);
        let preorder = merged.in_preorder(&ranks(walk));
        let place = |node: MergedId| preorder.place_of.get(node.index()).copied().flatten();
        let node_of = merged.node_of.iter().map(|node| place((*node)?)).collect();
        Self {
            nodes: preorder.nodes,
            node_of,
        }
    }

    /// Returns the index of the node of a stack. None if it has no samples.
    pub fn node(&self, stack: StackId) -> Option<u32> {
        self.node_of.get(stack.index()).copied().flatten()
    }
}

varid_model::index_types! {
    /// Index of a node in the order of the stacks.
    MergedId;
}

/// A node in the order of the stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct MergedNode {
    parent: Option<MergedId>,
    symbol: SymbolId,
}

/// Nodes in the order of the stacks: parents precede their children.
struct Merged {
    /// By [`MergedId`].
    nodes: Vec<MergedNode>,
    /// By [`StackId`]. None if the stack has no samples.
    node_of: Vec<Option<MergedId>>,
}

/// The nodes in preorder.
struct Preorder {
    nodes: Vec<TreeNode>,
    /// By [`MergedId`]: the index in `nodes`.
    place_of: Vec<Option<u32>>,
}

impl Merged {
    fn new(walk: &Walk, is_used: &[bool]) -> Self {
        let stacks = &walk.profile.stacks;
        let mut nodes = Vec::new();
        let mut node_of = vec![None; stacks.len()];
        let mut ids: FastMap<MergedNode, MergedId> = FastMap::default();
        for stack in stacks.ids() {
            let frame = stacks.frame(stack).and_then(|frame| walk.frame(frame));
            let (Some(frame), Some(true)) = (frame, is_used.get(stack.index())) else {
                continue;
            };
            let parent = stacks.parent(stack);
            let node = MergedNode {
                parent: parent.and_then(|parent| node_of.get(parent.index()).copied().flatten()),
                symbol: frame.symbol,
            };
            let next = MergedId::at(nodes.len());
            let id = *ids.entry(node).or_insert(next);
            if id == next {
                nodes.push(node);
            }
            if let Some(of_stack) = node_of.get_mut(stack.index()) {
                *of_stack = Some(id);
            }
        }
        Self { nodes, node_of }
    }

    fn in_preorder(&self, ranks: &[u32]) -> Preorder {
        let len = self.nodes.len();
        let node = |id: MergedId| self.nodes.get(id.index());
        let rank = |id: &MergedId| ranks.get(node(*id)?.symbol.index()).copied();
        let mut order: Vec<MergedId> = (0..len).map(MergedId::at).collect();
        order.sort_by_key(rank);
        let mut first_children = vec![None; len];
        let mut next_siblings = vec![None; len];
        let mut first_root = None;
        for id in order.into_iter().rev() {
            let head = match node(id).and_then(|node| node.parent) {
                None => Some(&mut first_root),
                Some(parent) => first_children.get_mut(parent.index()),
            };
            if let (Some(head), Some(next)) = (head, next_siblings.get_mut(id.index())) {
                *next = head.replace(id);
            }
        }
        let mut nodes = Vec::with_capacity(len);
        let mut place_of = vec![None; len];
        let mut waiting: Vec<(MergedId, u32)> = Vec::new();
        waiting.extend(first_root.map(|root| (root, 0)));
        while let Some((id, depth)) = waiting.pop() {
            let (Some(node), Some(place)) = (node(id), place_of.get_mut(id.index())) else {
                continue;
            };
            *place = u32::try_from(nodes.len()).ok();
            let symbol = node.symbol;
            nodes.push(TreeNode { depth, symbol });
            let next = |list: &[Option<MergedId>]| list.get(id.index()).copied().flatten();
            let below = depth.saturating_add(1);
            waiting.extend(next(&next_siblings).map(|sibling| (sibling, depth)));
            waiting.extend(next(&first_children).map(|child| (child, below)));
        }
        Preorder { nodes, place_of }
    }
}

/// By [`SymbolId`]: the rank of its name in alphabetical order.
fn ranks(walk: &Walk) -> Vec<u32> {
    let symbols = walk.profile.frames.symbols();
    let mut order: Vec<_> = (0..).map(SymbolId).zip(symbols).collect();
    order.sort_by(|(_, one), (_, other)| one.name.cmp(&other.name));
    let mut ranks = vec![0; symbols.len()];
    for ((symbol, _), rank) in order.into_iter().zip(0u32..) {
        if let Some(place) = ranks.get_mut(symbol.index()) {
            *place = rank;
        }
    }
    ranks
}
