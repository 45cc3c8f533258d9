//! The calling contexts of both sides, as a tree of symbols.

use std::collections::HashMap;

use varid_model::Layer;

use super::{Side, session::file_name};
use crate::{measures::ShownMeasures, profile::Profile, scope::percent, shares::StackWeights};

/// The identity of a symbol across sessions.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TreeSymbol {
    pub name: String,
    pub layer: Layer,
    image: String,
}

/// A prefix tree of symbols with their callers.
#[derive(Debug, Clone, Default)]
pub struct DiffTree {
    symbols: Vec<TreeSymbol>,
    symbol_ids: HashMap<TreeSymbol, TreeSymbolId>,
    /// By node. Parents precede their children.
    nodes: Vec<Node>,
    node_ids: HashMap<Context, DiffNodeId>,
    /// By [`Side`]: the number of sessions.
    sessions: [f64; 2],
}

varid_model::index_types! {
    /// Index of a symbol in a [`DiffTree`].
    TreeSymbolId;
    /// Index of a node in a [`DiffTree`].
    DiffNodeId;
}

/// A symbol with all its callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Context {
    callers: Option<DiffNodeId>,
    symbol: TreeSymbolId,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    context: Context,
    /// By [`Side`]: the sum over the sessions of the percentage of samples with this context.
    totals: [f64; 2],
}

/// A context in the flame graph.
#[derive(Debug, Clone, Copy)]
pub struct DrawnNode<'t> {
    /// Number of callers.
    pub depth: usize,
    pub symbol: &'t TreeSymbol,
    /// By [`Side`]: percentages.
    pub totals: [f64; 2],
}

impl DiffTree {
    /// Adds the weights of a session's stacks.
    pub fn add(&mut self, side: Side, profile: &Profile, measures: &ShownMeasures) {
        let counters = measures.counters();
        let weights = StackWeights::new(&profile.stacks, &profile.weights, &counters);
        let all = measures.value(profile.weights.sum(&counters));
        if let Some(sessions) = self.sessions.get_mut(side.index()) {
            *sessions += 1.0;
        }
        let mut nodes = vec![None; profile.stacks.len()];
        for stack in profile.stacks.ids() {
            let total = measures.value(weights.share(stack).total);
            let frame = profile.stacks.frame(stack);
            let symbol = frame.and_then(|frame| profile.frames.symbol_of(frame));
            let (Some(symbol), true) = (symbol, total > 0) else {
                continue;
            };
            let image = profile.frames.image(symbol.image);
            let inlined = if symbol.inlined { " (inlined)" } else { "" };
            let symbol = self.symbol(TreeSymbol {
                name: format!("{}{inlined}", symbol.name),
                layer: symbol.layer,
                image: image.map_or("", |image| file_name(&image.name)).to_owned(),
            });
            let parent = profile.stacks.parent(stack);
            let callers = parent.and_then(|parent| nodes.get(parent.index()).copied().flatten());
            let node = self.node(Context { callers, symbol });
            if let Some(of_stack) = nodes.get_mut(stack.index()) {
                *of_stack = Some(node);
            }
            let totals = self.nodes.get_mut(node.index());
            if let Some(sum) = totals.and_then(|node| node.totals.get_mut(side.index())) {
                *sum += percent(total, all);
            }
        }
    }

    /// Returns the contexts that have at least this percentage on either side. Callers precede callees, and siblings
    /// are sorted by name.
    pub fn drawn(&self, min_percent: f64) -> Vec<DrawnNode<'_>> {
        let mut children: HashMap<Option<DiffNodeId>, Vec<DiffNodeId>> = HashMap::new();
        for (id, node) in (0..).map(DiffNodeId).zip(&self.nodes) {
            if self
                .totals(node)
                .into_iter()
                .any(|total| total >= min_percent)
            {
                let siblings = children.entry(node.context.callers);
                siblings.or_default().push(id);
            }
        }
        let node = |id: DiffNodeId| self.nodes.get(id.index());
        let symbol = |node: &Node| self.symbols.get(node.context.symbol.index());
        for siblings in children.values_mut() {
            siblings.sort_by_key(|id| std::cmp::Reverse(node(*id).and_then(symbol)));
        }
        let mut drawn = Vec::new();
        let roots = children.remove(&None).unwrap_or_default();
        let mut waiting: Vec<(DiffNodeId, usize)> =
            roots.into_iter().map(|root| (root, 0)).collect();
        while let Some((id, depth)) = waiting.pop() {
            let Some((node, symbol)) = node(id).and_then(|node| Some((node, symbol(node)?))) else {
                continue;
            };
            let totals = self.totals(node);
            drawn.push(DrawnNode {
                depth,
                symbol,
                totals,
            });
            let below = children.remove(&Some(id)).unwrap_or_default();
            waiting.extend(
                below
                    .into_iter()
                    .map(|child| (child, depth.saturating_add(1))),
            );
        }
        drawn
    }

    /// Returns the means over the sessions.
    fn totals(&self, node: &Node) -> [f64; 2] {
        let [a, b] = node.totals;
        let [of_a, of_b] = self.sessions;
        [a / of_a.max(1.0), b / of_b.max(1.0)]
    }

    fn symbol(&mut self, symbol: TreeSymbol) -> TreeSymbolId {
        let next = TreeSymbolId::at(self.symbols.len());
        *self.symbol_ids.entry(symbol).or_insert_with_key(|symbol| {
            self.symbols.push(symbol.clone());
            next
        })
    }

    fn node(&mut self, context: Context) -> DiffNodeId {
        let next = DiffNodeId::at(self.nodes.len());
        let nodes = &mut self.nodes;
        *self.node_ids.entry(context).or_insert_with(|| {
            nodes.push(Node {
                context,
                totals: [0.0; 2],
            });
            next
        })
    }
}
