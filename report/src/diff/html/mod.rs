//! Comparisons as a self-contained HTML page, which works offline.
//!
//! The page contains the facts and tables as HTML. Its script `flame.js` draws the flame graph.

use std::io::{self, Write};

use serde_json::json;
use varid_model::Layer;
use varid_recording::terminal::one_line;

use super::{
    comparison::{Comparison, DiffTable},
    table, text,
    tree::DiffTree,
};
use crate::{
    columns::Value,
    error::Result,
    export::{escape, write_head},
    sheet::SheetLine,
};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("flame.js");

/// Contexts with a smaller share of both sides are not drawn.
const MIN_PERCENT: f64 = 0.1;
/// Contexts with more callers are not drawn.
const MAX_DEPTH: usize = 500;

const FLAME: &str = r#"<section>
<h2>Flame graph</h2>
<p class="quiet">Callers above, what they call below them. Red took a larger share in B, blue a smaller one; the stronger, the more points. A click zooms.</p>
<p><label>As wide as in <select id="side"><option value="1">B</option><option value="0">A</option></select></label>
<button id="reset" type="button">Reset zoom</button> <span id="details" role="status"></span></p>
<div id="flame" aria-hidden="true"></div>
</section>
"#;

/// Writes the page.
pub fn write(comparison: &Comparison, tree: &DiffTree, out: &mut dyn Write) -> Result<()> {
    write_head(STYLE, SCRIPT, out)?;
    writeln!(out, "<body>\n<main>\n<h1>varid diff</h1>\n<pre>")?;
    for fact in text::facts(comparison) {
        writeln!(out, "{}", escape(&one_line(&fact)))?;
    }
    writeln!(out, "</pre>")?;
    let drawn = tree.drawn(MIN_PERCENT);
    if !drawn.is_empty() {
        out.write_all(FLAME.as_bytes())?;
    }
    for table in &comparison.tables {
        write_table(comparison, table, out)?;
    }
    let drawn = drawn.iter().filter(|node| node.depth < MAX_DEPTH);
    let nodes: Vec<_> = drawn
        .map(|node| {
            let [a, b] = node.totals.map(thousandths);
            let layer = Layer::ALL
                .iter()
                .position(|layer| *layer == node.symbol.layer);
            json!([node.depth, one_line(&node.symbol.name), layer, a, b])
        })
        .collect();
    let data = json!({ "layers": Layer::ALL.map(Layer::name), "nodes": nodes }).to_string();
    // Escaped, so that no string can end the element.
    let data = data.replace('<', "\\u003c");
    writeln!(
        out,
        "</main>\n<script type=\"application/json\" id=\"data\">{data}</script>\n<script type=\"module\">{SCRIPT}</script>\n</body>\n</html>"
    )?;
    Ok(())
}

fn thousandths(percent: f64) -> f64 {
    (percent * 1e3).round() / 1e3
}

fn write_table(comparison: &Comparison, table: &DiffTable, out: &mut dyn Write) -> io::Result<()> {
    let sheet = table::wide_sheet(comparison, table);
    writeln!(
        out,
        "<section>\n<h2>By {}</h2>\n<table>\n<thead><tr>",
        table.by.name()
    )?;
    for name in &sheet.header {
        writeln!(out, "<th scope=\"col\">{}</th>", escape(name))?;
    }
    writeln!(out, "</tr></thead>\n<tbody>")?;
    let rows = sheet.lines.iter().filter_map(|line| match line {
        SheetLine::Cells(cells) => Some(cells),
        SheetLine::Rule | SheetLine::Deferred(_) => None,
    });
    for (cells, row) in rows.zip(&table.rows) {
        let class = match (
            row.is_significant(),
            row.change(comparison.view.quantity) > 0.0,
        ) {
            (false, _) => "",
            (true, true) => " class=\"more\"",
            (true, false) => " class=\"less\"",
        };
        write!(out, "<tr{class}>")?;
        for cell in cells {
            let is_text = matches!(cell, Value::Text(_));
            let class = if is_text { "" } else { " class=\"number\"" };
            let text = match one_line(&cell.cell(2)) {
                empty if empty.is_empty() => "-".to_owned(),
                text => text,
            };
            write!(out, "<td{class}>{}</td>", escape(&text))?;
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</tbody>\n</table>")?;
    if table.hidden > 0 {
        writeln!(out, "<p class=\"quiet\">{} more rows</p>", table.hidden)?;
    }
    writeln!(out, "</section>")
}
