//! The calling contexts of both sides, as a tree of symbols.

use std::collections::HashMap;

use varid_model::Layer;

use super::{Side, session::file_name};
use crate::{
    measures::ShownMeasures, profile::Profile, scope::percent, shares::StackWeights, stacks::NONE,
};

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
    symbol_ids: HashMap<TreeSymbol, u32>,
    /// By node. Parents precede their children.
    nodes: Vec<Node>,
    /// By parent index, or [`NONE`], and symbol index.
    node_ids: HashMap<(u32, u32), u32>,
    /// By [`Side`]: the number of sessions.
    sessions: [f64; 2],
}

#[derive(Debug, Clone, Copy)]
struct Node {
    parent: u32,
    symbol: u32,
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
        let mut nodes = vec![NONE; profile.stacks.len()];
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
            let parent = parent.and_then(|parent| nodes.get(parent.index()).copied());
            let node = self.node(parent.unwrap_or(NONE), symbol);
            if let Some(of_stack) = nodes.get_mut(stack.index()) {
                *of_stack = node;
            }
            let totals = usize::try_from(node)
                .ok()
                .and_then(|node| self.nodes.get_mut(node));
            if let Some(sum) = totals.and_then(|node| node.totals.get_mut(side.index())) {
                *sum += percent(total, all);
            }
        }
    }

    /// Returns the contexts that have at least this percentage on either side. Callers precede callees, and siblings
    /// are sorted by name.
    pub fn drawn(&self, min_percent: f64) -> Vec<DrawnNode<'_>> {
        let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
        for (node, number) in self.nodes.iter().zip(0u32..) {
            if self
                .totals(node)
                .into_iter()
                .any(|total| total >= min_percent)
            {
                children.entry(node.parent).or_default().push(number);
            }
        }
        let node = |number: u32| self.nodes.get(usize::try_from(number).ok()?);
        let symbol = |node: &Node| self.symbols.get(usize::try_from(node.symbol).ok()?);
        for siblings in children.values_mut() {
            siblings.sort_by_key(|number| std::cmp::Reverse(node(*number).and_then(symbol)));
        }
        let mut drawn = Vec::new();
        let roots = children.remove(&NONE).unwrap_or_default();
        let mut waiting: Vec<(u32, usize)> = roots.into_iter().map(|root| (root, 0)).collect();
        while let Some((number, depth)) = waiting.pop() {
            let Some((node, symbol)) = node(number).and_then(|node| Some((node, symbol(node)?)))
            else {
                continue;
            };
            let totals = self.totals(node);
            drawn.push(DrawnNode {
                depth,
                symbol,
                totals,
            });
            let below = children.remove(&number).unwrap_or_default();
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

    fn symbol(&mut self, symbol: TreeSymbol) -> u32 {
        let next = u32::try_from(self.symbols.len()).unwrap_or(NONE);
        *self.symbol_ids.entry(symbol).or_insert_with_key(|symbol| {
            self.symbols.push(symbol.clone());
            next
        })
    }

    fn node(&mut self, parent: u32, symbol: u32) -> u32 {
        let next = u32::try_from(self.nodes.len()).unwrap_or(NONE);
        let nodes = &mut self.nodes;
        *self.node_ids.entry((parent, symbol)).or_insert_with(|| {
            nodes.push(Node {
                parent,
                symbol,
                totals: [0.0; 2],
            });
            next
        })
    }
}
