//! Metrics as text and as CSV.

use std::{
    cmp::Reverse,
    io::{self, Write},
};

use varid_recording::terminal::one_line;

use super::{ContextMetric, Metrics};
use crate::{columns::Value, render::csv};

/// The most frames of a call path in text.
const PATH: usize = 6;

/// A section of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsSection {
    /// The opcodes that ran.
    Opcodes,
    /// The call sites, those with most targets first.
    Sites,
    /// The methods.
    Methods,
    /// Calls by depth.
    Depth,
    /// The hottest contexts.
    Contexts,
}

impl MetricsSection {
    /// All sections, in the order of a report.
    pub const ALL: [Self; 5] = [
        Self::Opcodes,
        Self::Sites,
        Self::Methods,
        Self::Depth,
        Self::Contexts,
    ];

    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Opcodes => "opcodes",
            Self::Sites => "sites",
            Self::Methods => "methods",
            Self::Depth => "depth",
            Self::Contexts => "contexts",
        }
    }
}

/// A table: numbers first, names last.
struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<Value<'static>>>,
    /// Rows that are left out.
    more: usize,
}

/// Writes sections as tables with at most `limit` rows each, and the notes.
///
/// # Errors
///
/// Writing fails.
pub fn write_metrics_text(
    metrics: &Metrics,
    sections: &[MetricsSection],
    limit: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    for section in sections {
        let Some(table) = table(metrics, *section, limit, Some(PATH)) else {
            continue;
        };
        writeln!(out, "# {}", section.name())?;
        write_table(&table, out)?;
        if table.more > 0 {
            writeln!(out, "and {} more: -n shows them", table.more)?;
        }
        writeln!(out)?;
    }
    for note in &metrics.notes {
        writeln!(out, "note: {}", one_line(note))?;
    }
    Ok(())
}

/// Writes sections as CSV with at most `limit` rows each. Several are separated by an empty line.
///
/// # Errors
///
/// Writing fails.
pub fn write_metrics_csv(
    metrics: &Metrics,
    sections: &[MetricsSection],
    limit: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let tables = sections.iter();
    let tables = tables.filter_map(|section| table(metrics, *section, limit, None));
    for (index, table) in tables.enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        csv::record(table.header.iter().map(|name| (*name).into()), out)?;
        for row in &table.rows {
            csv::record(row.iter().map(|value| value.cell(6)), out)?;
        }
    }
    Ok(())
}

fn write_table(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    let header = table.header.iter().map(|name| (*name).to_owned());
    let cells = |row: &Vec<Value>| {
        let cells = row.iter().map(|value| one_line(&value.cell(2)));
        cells.collect::<Vec<_>>()
    };
    let lines: Vec<Vec<String>> = std::iter::once(header.collect())
        .chain(table.rows.iter().map(cells))
        .collect();
    let last = table.header.len().saturating_sub(1);
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    // Numbers end below each other, texts begin so.
    let is_text = |column: usize| {
        let mut cells = table.rows.iter().filter_map(|row| row.get(column));
        cells.any(|value| matches!(value, Value::Text(_) | Value::Name(_)))
    };
    let columns: Vec<_> = (0..last)
        .map(|column| (width(column), is_text(column)))
        .collect();
    for line in &lines {
        let cells = line.iter().zip(&columns);
        let mut text: String = cells
            .map(|(cell, (width, is_text))| match is_text {
                true => format!("{cell:<width$}  "),
                false => format!("{cell:>width$}  "),
            })
            .collect();
        text.push_str(line.last().map_or("", String::as_str));
        writeln!(out, "{}", text.trim_end())?;
    }
    Ok(())
}

/// Makes the table of a section. None if the metrics do not have it.
fn table(
    metrics: &Metrics,
    section: MetricsSection,
    limit: usize,
    path: Option<usize>,
) -> Option<Table> {
    let name = |text: &str| Value::from(text.to_owned());
    let has_bytecodes = metrics.opcodes.is_some();
    let (header, rows, all): (_, Vec<Vec<Value>>, _) = match section {
        MetricsSection::Opcodes => {
            let opcodes = metrics.opcodes.as_ref()?;
            let rows = opcodes.iter().take(limit).map(|row| {
                vec![
                    row.executions.into(),
                    Value::Percent(row.share),
                    name(&row.opcode),
                ]
            });
            (
                vec!["executions", "share", "opcode"],
                rows.collect(),
                opcodes.len(),
            )
        }
        MetricsSection::Sites => {
            let rows = metrics.sites.iter().take(limit).map(|row| {
                vec![
                    Value::Count(row.targets as u64),
                    row.calls.into(),
                    name(&format!("{}:{}", row.method, row.bci)),
                    row.declared.clone().into(),
                ]
            });
            let header = vec!["targets", "calls", "site", "declared"];
            (header, rows.collect(), metrics.sites.len())
        }
        MetricsSection::Methods => {
            let rows = metrics.methods.iter().take(limit).map(|row| {
                let mut cells = vec![row.calls.into()];
                cells.extend(has_bytecodes.then(|| row.bytecodes.into()));
                cells.extend([row.size.into(), name(&row.method)]);
                cells
            });
            let header = match has_bytecodes {
                true => vec!["calls", "bytecodes", "size", "method"],
                false => vec!["calls", "size", "method"],
            };
            (header, rows.collect(), metrics.methods.len())
        }
        MetricsSection::Depth => {
            let rows = metrics.depth.iter().take(limit);
            let rows =
                rows.map(|row| vec![row.calls.into(), row.contexts.into(), row.depth.into()]);
            let header = vec!["calls", "contexts", "depth"];
            (header, rows.collect(), metrics.depth.len())
        }
        MetricsSection::Contexts => {
            let rows = hottest(&metrics.contexts, limit).into_iter().map(|row| {
                let mut cells = vec![row.calls.into()];
                cells.extend(has_bytecodes.then(|| row.bytecodes.into()));
                cells.extend([
                    row.depth.into(),
                    name(&path_of(&metrics.contexts, row, path)),
                ]);
                cells
            });
            let header = match has_bytecodes {
                true => vec!["calls", "bytecodes", "depth", "path"],
                false => vec!["calls", "depth", "path"],
            };
            (header, rows.collect(), metrics.contexts.len())
        }
    };
    let more = all.saturating_sub(rows.len());
    Some(Table { header, rows, more })
}

/// Returns the contexts with the most bytecodes or, if those were not counted, calls.
fn hottest(contexts: &[ContextMetric], limit: usize) -> Vec<&ContextMetric> {
    let mut order: Vec<&ContextMetric> = contexts.iter().collect();
    order.sort_by_key(|context| Reverse((context.bytecodes, context.calls)));
    order.truncate(limit);
    order
}

/// Returns the methods from the outermost to a context's own, each caller with its call site. With `most`, only so many of the innermost.
fn path_of(contexts: &[ContextMetric], of: &ContextMetric, most: Option<usize>) -> String {
    let mut frames = vec![of.method.to_string()];
    let mut context = of;
    while let Some(caller) = context.caller.and_then(|caller| contexts.get(caller)) {
        if most.is_some_and(|most| frames.len() >= most) {
            frames.push("..".to_owned());
            break;
        }
        frames.push(match context.bci {
            Some(bci) => format!("{}:{bci}", caller.method),
            None => caller.method.to_string(),
        });
        context = caller;
    }
    frames.reverse();
    frames.join(" > ")
}
