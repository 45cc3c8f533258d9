//! How does a view look to spreadsheets?

mod dim;

use std::io::{self, Write};

use varid_recording::terminal::one_line;

use crate::{
    callgraph,
    profile::Profile,
    rows::{self, Row},
    tree::Weight,
    view::{By, PercentOf, Table, View},
};

/// Writes the view's rows behind a header. Of a call graph the rows are its pairs.
pub fn write(profile: &Profile, view: &View, out: &mut dyn Write) -> io::Result<()> {
    let by = match view.table {
        Table::By(by) => by,
        Table::Overview => By::Symbol,
        Table::Callgraph => return callgraph(profile, view, out),
        Table::Dim => return dim::write(profile, view, out),
    };
    let labels: &[&str] = match by {
        By::Layer => &["layer"],
        By::Image => &["layer", "image"],
        By::Symbol => &["layer", "image", "symbol"],
        By::Line => &["layer", "image", "symbol", "file", "line"],
        By::Service => &["service"],
        By::Process => &["pid", "process"],
        By::Thread => &["pid", "process", "tid", "thread"],
        By::Calls => &["layer", "image", "symbol", "calls", "returns", "unwinds"],
    };
    let numbers = [
        "self",
        "self_percent",
        "total",
        "total_percent",
        "self_period",
        "total_period",
    ];
    record(labels.iter().chain(&numbers).map(ToString::to_string), out)?;
    let all = profile.weight();
    for row in rows::rows(profile, by, view).shown {
        let labels = labels.iter().map(|label| cell(&row, label));
        let share = row.share;
        let numbers = [
            share.own.samples.to_string(),
            percent(view.percent_of, share.own, all),
            share.total.samples.to_string(),
            percent(view.percent_of, share.total, all),
            share.own.period.to_string(),
            share.total.period.to_string(),
        ];
        record(labels.chain(numbers), out)?;
    }
    Ok(())
}

/// One record for each pair of caller and callee, from the entries' callers and callees.
fn callgraph(profile: &Profile, view: &View, out: &mut dyn Write) -> io::Result<()> {
    let header = [
        "layer",
        "image",
        "symbol",
        "relation",
        "other_layer",
        "other_image",
        "other_symbol",
        "samples",
        "percent",
        "period",
    ];
    record(header.into_iter().map(str::to_owned), out)?;
    let (entries, _) = callgraph::entries(profile, view);
    for entry in entries {
        let all = entry.row.share.total;
        let callers = entry.callers.iter().map(|call| ("caller", call));
        let callees = entry.callees.iter().map(|call| ("callee", call));
        let mut relation = |relation: &str, other: &Row, weight: Weight| {
            let labels = ["layer", "image", "symbol"];
            let method = labels.iter().map(|label| cell(&entry.row, label));
            let other = labels.iter().map(|label| cell(other, label));
            let numbers = [
                weight.samples.to_string(),
                percent(view.percent_of, weight, all),
                weight.period.to_string(),
            ];
            let relation = std::iter::once(relation.to_owned());
            record(method.chain(relation).chain(other).chain(numbers), out)
        };
        relation("self", &entry.row, entry.row.share.own)?;
        for (kind, call) in callers.chain(callees) {
            relation(kind, &call.row, call.weight)?;
        }
    }
    Ok(())
}

fn percent(of: PercentOf, part: Weight, all: Weight) -> String {
    format!("{:.6}", rows::percent(of.value(part), of.value(all)))
}

fn cell(row: &Row, label: &str) -> String {
    let number = |number: Option<u32>| number.map_or_else(String::new, |n| n.to_string());
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    match label {
        "layer" => row.layer.map_or("", |layer| layer.name()).to_owned(),
        "image" => text(&row.image),
        "symbol" => row.symbol_name(),
        "file" => row.file.as_deref().unwrap_or_default().to_owned(),
        "line" => number(row.line),
        "service" => text(&row.service),
        "pid" => number(row.pid),
        "process" => text(&row.process),
        "tid" => number(row.tid),
        "calls" => row.calls.unwrap_or_default().invokes.to_string(),
        "returns" => row.calls.unwrap_or_default().returns.to_string(),
        "unwinds" => row.calls.unwrap_or_default().unwinds.to_string(),
        _ => text(&row.thread),
    }
}

/// A record as RFC 4180 has it, except that lines end as they do on Unix.
fn record(fields: impl Iterator<Item = String>, out: &mut dyn Write) -> io::Result<()> {
    let fields: Vec<String> = fields.map(|field| quoted(&field)).collect();
    writeln!(out, "{}", fields.join(","))
}

/// A field in one line that no spreadsheet takes for a formula: an apostrophe is before what would be one.
fn quoted(field: &str) -> String {
    let mut text = one_line(field);
    if text.starts_with(['=', '+', '-', '@']) && text.parse::<i64>().is_err() {
        text.insert(0, '\'');
    }
    if text.contains([',', '"']) {
        text = format!("\"{}\"", text.replace('"', "\"\""));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_recorded_name_is_neither_a_formula_nor_a_line() {
        assert_eq!(
            quoted("=HYPERLINK(\"x\",1)"),
            "\"'=HYPERLINK(\"\"x\"\",1)\""
        );
        assert_eq!(quoted("-bash"), "'-bash");
        assert_eq!(quoted("-2"), "-2");
        assert_eq!(quoted("a\r\n\u{1b}[2J"), "a???[2J");
        assert_eq!(quoted("a = b"), "a = b");
    }
}
