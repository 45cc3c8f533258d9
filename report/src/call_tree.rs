//! The call tree of a view: top-down from the outermost frames, or bottom-up from the leaves.
//!
//! Consecutive frames of a recursive function are one node. A node below the view's limits is not expanded, so the cost
//! of a tree depends on what it shows.

use std::cmp::Reverse;

use crate::{
    frames::SymbolId, scope::Scope, shares::StackWeights, stacks::StackId, view::TreeDirection,
    weights::Weight,
};

/// Deeper nodes are not expanded: for a hostile recording, the time would grow with the square of its depth.
const MAX_DEPTH: usize = 1_000;

/// A node of a tree. A tree is a list of nodes in preorder: each node is followed by all nodes below it.
#[derive(Debug, Clone)]
pub(crate) struct TreeNode {
    /// Index of the parent in the list. None for a top-level node.
    pub parent: Option<usize>,
    /// Number of nodes above it.
    pub depth: usize,
    /// None for a frame without a function.
    pub symbol: Option<SymbolId>,
    /// Samples that pass through the node.
    pub total: Weight,
    /// The part of the total that ends here. Top-down, it has its leaf here. Bottom-up, it has its outermost frame here.
    pub own: Weight,
    /// The longest run of consecutive frames of the function that this node stands for.
    pub frames: usize,
    /// Number of nodes in the list that are direct children.
    pub children: usize,
    /// The other children.
    pub hidden: Hidden,
}

/// Children of one node that are not in the list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Hidden {
    pub nodes: usize,
    pub total: Weight,
}

impl Hidden {
    fn add(&mut self, total: Weight) {
        self.nodes = self.nodes.saturating_add(1);
        self.total.add(total);
    }
}

/// The tree of a view.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallTree {
    pub nodes: Vec<TreeNode>,
    /// Hidden top-level nodes.
    pub hidden: Hidden,
}

impl CallTree {
    /// Makes the tree of the samples whose leaf is in the view's layer and symbols.
    pub fn new(scope: &Scope, direction: TreeDirection) -> Self {
        let weights = scope.selected_weights();
        let growth = Growth {
            scope,
            weights: &weights,
            direction,
        };
        growth.grow()
    }

    /// The sum of all hidden nodes. The descendants of hidden nodes are not counted.
    pub fn all_hidden(&self) -> Hidden {
        let below = self.nodes.iter().map(|node| node.hidden);
        let mut all = self.hidden;
        for hidden in below {
            all.nodes = all.nodes.saturating_add(hidden.nodes);
            all.total.add(hidden.total);
        }
        all
    }
}

/// The stacks that form one node.
#[derive(Debug)]
struct Group {
    parent: Option<usize>,
    depth: usize,
    symbol: Option<SymbolId>,
    /// Stacks whose last frame belongs to the symbol, each with the weight that passes through it to the node.
    entries: Vec<(StackId, Weight)>,
    total: Weight,
}

/// A stack that is one frame longer than those of a node.
#[derive(Debug, Clone, Copy)]
struct Step {
    symbol: Option<SymbolId>,
    stack: StackId,
    weight: Weight,
}

/// The result of expanding a node.
#[derive(Debug, Default)]
struct Expansion {
    own: Weight,
    frames: usize,
    /// The stacks that are one frame longer.
    next: Vec<Step>,
}

#[derive(Debug, Clone, Copy)]
struct Growth<'g, 'p> {
    scope: &'g Scope<'p>,
    weights: &'g StackWeights<'p>,
    direction: TreeDirection,
}

impl Growth<'_, '_> {
    fn grow(self) -> CallTree {
        let limit = self.scope.view.limit;
        let mut tree = CallTree::default();
        // The list is a stack: the next node in preorder is its last element.
        let mut pending = self.groups(None, 0, self.top(), &mut tree.hidden);
        while let Some(group) = pending.pop() {
            let place = tree.nodes.len();
            let parent = group.parent.and_then(|parent| tree.nodes.get_mut(parent));
            if limit.is_some_and(|limit| place >= limit) {
                let hidden = parent.map_or(&mut tree.hidden, |parent| &mut parent.hidden);
                hidden.add(group.total);
                continue;
            }
            if let Some(parent) = parent {
                parent.children = parent.children.saturating_add(1);
            }
            let below = group.depth.saturating_add(1);
            let Expansion { own, frames, next } = match self.direction {
                TreeDirection::TopDown => self.callees(&group),
                TreeDirection::BottomUp => self.callers(&group),
            };
            let mut hidden = Hidden::default();
            pending.extend(self.groups(Some(place), below, next, &mut hidden));
            tree.nodes.push(TreeNode {
                parent: group.parent,
                depth: group.depth,
                symbol: group.symbol,
                total: group.total,
                own,
                frames,
                children: 0,
                hidden,
            });
        }
        tree
    }

    fn symbol(&self, stack: StackId) -> Option<SymbolId> {
        let frame = self.scope.profile.stacks.frame(stack)?;
        self.scope.symbol_of(frame)
    }

    /// The stacks of the top-level nodes.
    fn top(&self) -> Vec<Step> {
        let with_symbol = |(stack, weight)| Step {
            symbol: self.symbol(stack),
            stack,
            weight,
        };
        match self.direction {
            TreeDirection::TopDown => {
                let roots = self.weights.tree().roots();
                let roots = roots.map(|stack| (stack, self.weights.share(stack).total));
                roots.map(with_symbol).collect()
            }
            TreeDirection::BottomUp => {
                let stacks = self.scope.profile.stacks.ids();
                let leaves = stacks.map(|stack| (stack, self.weights.share(stack).own));
                let leaves = leaves.filter(|(_, own)| !own.is_zero());
                leaves.map(with_symbol).collect()
            }
        }
    }

    /// Groups stacks by symbol, sorted by ascending share. Groups below the view's limits are only counted.
    fn groups(
        &self,
        parent: Option<usize>,
        depth: usize,
        mut stacks: Vec<Step>,
        hidden: &mut Hidden,
    ) -> Vec<Group> {
        stacks.sort_unstable_by_key(|step| (step.symbol, step.stack));
        let mut groups = Vec::new();
        for group in stacks.chunk_by(|one, other| one.symbol == other.symbol) {
            let mut total = Weight::default();
            group.iter().for_each(|step| total.add(step.weight));
            let small = self.scope.percent(total) < self.scope.view.min_percent;
            if small || depth >= MAX_DEPTH {
                hidden.add(total);
                continue;
            }
            let entries = group.iter().map(|step| (step.stack, step.weight));
            groups.push(Group {
                parent,
                depth,
                symbol: group.first().and_then(|step| step.symbol),
                entries: entries.collect(),
                total,
            });
        }
        let frames = &self.scope.profile.frames;
        groups.sort_by_key(|group| {
            let symbol = group.symbol.and_then(|id| frames.symbol(id));
            let name = symbol.map(|symbol| (symbol.name.as_str(), symbol.layer));
            (self.scope.value(group.total), Reverse((name, group.symbol)))
        });
        groups
    }

    /// Returns the samples of the node's frames, and their callees.
    fn callees(&self, group: &Group) -> Expansion {
        let mut found = Expansion::default();
        let first = |&(stack, _): &(StackId, _)| (stack, 1_usize);
        let mut frames: Vec<_> = group.entries.iter().map(first).collect();
        while let Some((stack, nested)) = frames.pop() {
            found.frames = found.frames.max(nested);
            found.own.add(self.weights.share(stack).own);
            for child in self.weights.tree().children(stack) {
                let symbol = self.symbol(child);
                if symbol == group.symbol {
                    frames.push((child, nested.saturating_add(1)));
                } else {
                    found.next.push(Step {
                        symbol,
                        stack: child,
                        weight: self.weights.share(child).total,
                    });
                }
            }
        }
        found
    }

    /// Returns the callers of the node's frames.
    fn callers(&self, group: &Group) -> Expansion {
        let mut found = Expansion::default();
        let stacks = &self.scope.profile.stacks;
        for &(stack, weight) in &group.entries {
            let above = |stack: &StackId| self.symbol(*stack) == group.symbol;
            let nested = stacks.walk(stack).take_while(above).count();
            found.frames = found.frames.max(nested);
            match stacks.walk(stack).nth(nested) {
                Some(caller) => found.next.push(Step {
                    symbol: self.symbol(caller),
                    stack: caller,
                    weight,
                }),
                None => found.own.add(weight),
            }
        }
        found
    }
}
