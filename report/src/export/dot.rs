//! The DOT format of graphviz: a graph of the methods with the largest shares and their calls.

use std::{
    collections::HashMap,
    io::{self, Write},
};

use super::{Content, ExportFormat, FormatMeasures, palette::colours, walk::Walk};
use crate::{
    frames::{FrameId, SymbolId},
    scope::percent,
    shares::{Share, StackWeights},
    weights::Weight,
};

/// The most nodes, those with the largest totals first.
const MAX_NODES: usize = 80;
/// Methods with a smaller total are not drawn.
const MIN_NODE: f64 = 0.5;
/// Calls with a smaller share are not drawn.
const MIN_EDGE: f64 = 0.1;

/// This format.
pub static FORMAT: ExportFormat = ExportFormat {
    name: "dot",
    aliases: &[],
    about: "A call graph for graphviz",
    endings: &[".dot"],
    needs: &[],
    measures: FormatMeasures::One,
    content: Content::Text,
    write: |input, out| Ok(write(&input.walk, out)?),
};

/// Writes the graph. The font size represents a method's own share, and the width of an arrow the share of a call.
fn write(walk: &Walk, out: &mut dyn Write) -> io::Result<()> {
    let graph = Graph {
        walk,
        weights: walk.weights(),
        all: walk.all(),
    };
    let found = graph.weights.by_frame(|frame| graph.symbol(frame));
    let found_all = found.len();
    let nodes = nodes(found, |weight| graph.percent(weight));
    graph.write_head(nodes.len(), found_all, out)?;
    let mut ids = HashMap::new();
    for (number, (id, share)) in nodes.iter().enumerate() {
        ids.insert(*id, number);
        graph.write_node(number, *id, *share, out)?;
    }
    graph.write_calls(&ids, out)?;
    writeln!(out, "}}")
}

struct Graph<'w, 'p> {
    walk: &'w Walk<'p>,
    weights: StackWeights<'p>,
    all: Weight,
}

impl Graph<'_, '_> {
    fn percent(&self, weight: Weight) -> f64 {
        percent(self.walk.value(weight), self.walk.value(self.all))
    }

    fn symbol(&self, frame: FrameId) -> Option<SymbolId> {
        self.walk.frame(frame).map(|frame| frame.symbol)
    }

    /// Writes the start of the graph, with so many of `found_all` methods.
    fn write_head(&self, shown: usize, found_all: usize, out: &mut dyn Write) -> io::Result<()> {
        let walk = self.walk;
        writeln!(out, "digraph {} {{", quoted(&walk.title()))?;
        let label = format!(
            "{}: {} {}, {shown} of {found_all} methods",
            walk.title(),
            walk.measures.count(self.all),
            walk.measures.count_unit(),
        );
        writeln!(
            out,
            "  graph [rankdir=TB, fontname=\"sans-serif\", labelloc=t, label={}];",
            quoted(&label)
        )?;
        writeln!(
            out,
            "  node [shape=box, style=filled, fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\", fontsize=9];"
        )
    }

    fn write_node(
        &self,
        number: usize,
        id: SymbolId,
        share: Share,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let walk = self.walk;
        let layer = walk.symbol_layer(Some(id));
        let (own, total) = (self.percent(share.own), self.percent(share.total));
        let label = format!(
            "{}\n{own:.2} % ({}) of {total:.2} % ({})",
            walk.symbol_name(Some(id)),
            walk.value(share.own),
            walk.value(share.total)
        );
        writeln!(
            out,
            "  n{number} [label={}, fontsize={:.0}, fillcolor=\"{}\", tooltip={}];",
            quoted(&label),
            8.0 + own.sqrt() * 3.0,
            colours(layer).light,
            quoted(layer.name()),
        )
    }

    /// Writes the calls between the nodes with these numbers.
    fn write_calls(
        &self,
        numbers: &HashMap<SymbolId, usize>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let symbol = |frame| self.symbol(frame);
        let calls = self.weights.by_call(symbol, symbol).into_iter();
        let edge = |((caller, callee), weight)| {
            let ends = (*numbers.get(&caller)?, *numbers.get(&callee)?);
            Some((ends, self.percent(weight)))
        };
        let edges = calls.filter_map(edge);
        let mut edges: Vec<_> = edges.filter(|(_, percent)| *percent >= MIN_EDGE).collect();
        edges.sort_by_key(|(ends, _)| *ends);
        for ((caller, callee), percent) in edges {
            writeln!(
                out,
                "  n{caller} -> n{callee} [label=\"{percent:.2} %\", weight={:.0}, penwidth={:.2}];",
                1.0 + percent,
                0.5 + percent / 20.0,
            )?;
        }
        Ok(())
    }
}

/// Returns the methods in the graph, sorted by descending total.
fn nodes(
    found: HashMap<SymbolId, Share>,
    percent: impl Fn(Weight) -> f64,
) -> Vec<(SymbolId, Share)> {
    let found = found.into_iter();
    let mut nodes: Vec<_> = found
        .filter(|(_, share)| percent(share.total) >= MIN_NODE)
        .collect();
    nodes.sort_by(|(id, share), (other_id, other)| {
        let larger = percent(other.total).total_cmp(&percent(share.total));
        larger.then(id.cmp(other_id))
    });
    nodes.truncate(MAX_NODES);
    nodes
}

/// Formats a string of DOT. Backslashes are escaped, because `\N` and the like would be expanded by graphviz.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", text.replace('\n', "\\n"))
}
