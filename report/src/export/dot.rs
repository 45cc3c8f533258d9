//! The DOT format of graphviz: a graph of the methods with the largest shares and their calls.

use std::{
    collections::HashMap,
    io::{self, Write},
};

use super::{Content, ExportFormat, FormatMeasures, palette::colours, walk::Walk};
use crate::{
    frames::{FrameId, SymbolId},
    scope::percent,
    shares::Share,
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
    let (weights, all) = (walk.weights(), walk.all());
    let share = |weight: Weight| percent(walk.value(weight), walk.value(all));
    let symbol = |frame: FrameId| walk.frame(frame).map(|frame| frame.symbol);
    let found = weights.by_frame(symbol);
    let found_all = found.len();
    let nodes = nodes(found, share);
    writeln!(out, "digraph {} {{", quoted(&walk.title()))?;
    writeln!(
        out,
        "  graph [rankdir=TB, fontname=\"sans-serif\", labelloc=t, label={}];",
        quoted(&format!(
            "{}: {} {}, {} of {found_all} methods",
            walk.title(),
            walk.measures.count(all),
            walk.measures.count_unit(),
            nodes.len(),
        ))
    )?;
    writeln!(
        out,
        "  node [shape=box, style=filled, fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\", fontsize=9];"
    )?;
    let mut ids = HashMap::new();
    for (number, (id, node)) in nodes.iter().enumerate() {
        ids.insert(*id, number);
        let layer = walk.symbol_layer(Some(*id));
        let (own, total) = (share(node.own), share(node.total));
        let label = format!(
            "{}\n{own:.2} % ({}) of {total:.2} % ({})",
            walk.symbol_name(Some(*id)),
            walk.value(node.own),
            walk.value(node.total)
        );
        writeln!(
            out,
            "  n{number} [label={}, fontsize={:.0}, fillcolor=\"{}\", tooltip={}];",
            quoted(&label),
            8.0 + own.sqrt() * 3.0,
            colours(layer).light,
            quoted(layer.name()),
        )?;
    }
    let calls = weights.by_call(symbol, symbol).into_iter();
    let edge = |((caller, callee), weight)| {
        let wide = share(weight) >= MIN_EDGE;
        let ends = (*ids.get(&caller)?, *ids.get(&callee)?);
        wide.then_some((ends, weight))
    };
    let mut edges: Vec<((usize, usize), Weight)> = calls.filter_map(edge).collect();
    edges.sort_by_key(|(ends, _)| *ends);
    for ((caller, callee), weight) in edges {
        let percent = share(weight);
        writeln!(
            out,
            "  n{caller} -> n{callee} [label=\"{percent:.2} %\", weight={:.0}, penwidth={:.2}];",
            1.0 + percent,
            0.5 + percent / 20.0,
        )?;
    }
    writeln!(out, "}}")
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
