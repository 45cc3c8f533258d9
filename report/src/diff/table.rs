//! The columns of a comparison's table.

use std::borrow::Cow;

use super::{
    Quantity,
    comparison::{Comparison, DiffRow, DiffTable, SideValue},
    total::relative,
};
use crate::{
    columns::{OutputFormat, Value, probability_text},
    sheet::{Sheet, SheetLine, SheetRole},
    view::GroupBy,
};

/// The minimum width in columns for image names and additional numbers in text.
const WIDTH_WITH_ALL: usize = 120;

type Cell = fn(&Comparison, &DiffRow) -> Value<'static>;

struct Column {
    name: Cow<'static, str>,
    dash: bool,
    cell: Cell,
}

fn column(name: impl Into<Cow<'static, str>>, cell: Cell) -> Column {
    Column {
        name: name.into(),
        dash: true,
        cell,
    }
}

/// Makes the table for one format.
pub fn sheet(comparison: &Comparison, table: &DiffTable, format: OutputFormat) -> Sheet<'static> {
    let limits = comparison.view.view.text;
    let columns = match format {
        OutputFormat::Text => {
            let is_wide = limits.width.is_none_or(|width| width >= WIDTH_WITH_ALL);
            text_columns(comparison, table.by, is_wide)
        }
        OutputFormat::Json | OutputFormat::Csv => data_columns(comparison, table.by),
    };
    filled(comparison, table, &columns, format)
}

/// Makes the table with all rows, and all columns of text.
pub fn wide_sheet(comparison: &Comparison, table: &DiffTable) -> Sheet<'static> {
    let columns = text_columns(comparison, table.by, true);
    filled(comparison, table, &columns, OutputFormat::Json)
}

fn filled(
    comparison: &Comparison,
    table: &DiffTable,
    columns: &[Column],
    format: OutputFormat,
) -> Sheet<'static> {
    let limits = comparison.view.view.text;
    let mut sheet = Sheet {
        role: SheetRole::Rows,
        intro: None,
        replacement: None,
        header: columns.iter().map(|column| column.name.clone()).collect(),
        dashes: columns.iter().map(|column| column.dash).collect(),
        lines: Vec::new(),
        folded: None,
        hidden: table.hidden,
        width: limits.width,
    };
    let mut folded = 0usize;
    let is_folded = |row: &DiffRow| {
        let is_small = row.a.percent.max(row.b.percent) < limits.fold_below;
        let can_fold = format == OutputFormat::Text && table.by != GroupBy::Layer;
        can_fold && is_small && !row.is_significant()
    };
    // A single row is not folded, because the folded line would be as long.
    let folds = table.rows.iter().filter(|row| is_folded(row)).count() > 1;
    let mut is_significant = false;
    for row in &table.rows {
        if folds && is_folded(row) {
            folded = folded.saturating_add(1);
            continue;
        }
        if is_significant
            && !row.is_significant()
            && format == OutputFormat::Text
            && table.by != GroupBy::Layer
        {
            sheet.lines.push(SheetLine::Rule);
        }
        is_significant = row.is_significant();
        let cells = columns.iter().map(|column| (column.cell)(comparison, row));
        sheet.lines.push(SheetLine::Cells(cells.collect()));
    }
    sheet.folded = folds.then(|| {
        format!(
            "({folded} rows below {} % that are not significant; --all-rows shows them)",
            limits.fold_below
        )
    });
    sheet
}

/// Returns the short name of the unit of absolute values.
pub fn unit(comparison: &Comparison) -> &'static str {
    let mut sessions = comparison.sides.iter().copied().flatten();
    match sessions.next().map(|session| session.unit.as_str()) {
        Some("ns") => "ms",
        Some("bytes") => "MB",
        _ => "M",
    }
}

fn text_columns(comparison: &Comparison, by: GroupBy, is_wide: bool) -> Vec<Column> {
    let mut columns = match comparison.view.quantity {
        Quantity::Share => vec![
            column("A %", |_, row| number(&row.a, row.a.percent)),
            column("B %", |_, row| number(&row.b, row.b.percent)),
            column("points", |_, row| {
                Value::Change(row.change(Quantity::Share))
            }),
        ],
        Quantity::Absolute => {
            let unit = unit(comparison);
            vec![
                column(format!("A {unit}"), |_, row| {
                    number(&row.a, row.a.absolute.unwrap_or_default())
                }),
                column(format!("B {unit}"), |_, row| {
                    number(&row.b, row.b.absolute.unwrap_or_default())
                }),
                column("change", |_, row| {
                    Value::Change(row.change(Quantity::Absolute))
                }),
            ]
        }
    };
    if is_wide {
        columns.push(column("change %", |comparison, row| {
            match (row.a.samples, row.b.samples) {
                (0, _) => "new".into(),
                (_, 0) => "gone".into(),
                _ => relative_change(comparison, row),
            }
        }));
        let counted = comparison
            .measure()
            .map_or("samples", |measure| &measure.name);
        columns.push(column(format!("A {counted}"), |_, row| {
            row.a.samples.into()
        }));
        columns.push(column(format!("B {counted}"), |_, row| {
            row.b.samples.into()
        }));
    }
    columns.push(column("q", |_, row| {
        let Some(test) = row.test else {
            return Value::Absent;
        };
        let mark = if test.is_significant { " *" } else { "" };
        format!("{}{mark}", probability_text(test.rate)).into()
    }));
    columns.extend(text_labels(by, is_wide && !comparison.view.by_symbol_only));
    columns
}

/// A value in text. Absent if the row has no sample.
fn number(side: &SideValue, value: f64) -> Value<'static> {
    match side.samples {
        0 => Value::Absent,
        _ => Value::Percent(value),
    }
}

fn relative_change(comparison: &Comparison, row: &DiffRow) -> Value<'static> {
    let (a, b) = row.values(comparison.view.quantity);
    relative(a, b).map_or(Value::Absent, Value::Change)
}

fn text_labels(by: GroupBy, is_wide: bool) -> Vec<Column> {
    let layer = column("layer", layer);
    let image_name = column("image name", |_, row| row.key.image.clone().into());
    let symbol_name = column("symbol name", |_, row| {
        let name = row.key.symbol.clone();
        name.map(|name| Value::Name(name.into())).into()
    });
    match by {
        GroupBy::Layer => vec![layer],
        GroupBy::Image => vec![layer, image_name],
        GroupBy::Symbol if is_wide => vec![layer, image_name, symbol_name],
        GroupBy::Symbol => vec![layer, symbol_name],
        GroupBy::Line => {
            let source_line = column("source line", |_, row| {
                let line = row.key.line.as_ref().map(|(file, line)| {
                    let file = file.rsplit('/').next().unwrap_or(file);
                    format!("{file}:{line}")
                });
                line.into()
            });
            let image = is_wide.then_some(image_name);
            let labels = [layer, source_line].into_iter().chain(image);
            labels.chain([symbol_name]).collect()
        }
        GroupBy::Thread => vec![column("process", process), column("thread", thread)],
        GroupBy::Process => vec![column("process", process)],
        GroupBy::Service => vec![column("service", service)],
        GroupBy::Activity => vec![column("activity", activity)],
    }
}

fn layer(_: &Comparison, row: &DiffRow) -> Value<'static> {
    row.key.layer.map(|layer| layer.name()).into()
}

fn process(_: &Comparison, row: &DiffRow) -> Value<'static> {
    row.key.process.clone().into()
}

fn thread(_: &Comparison, row: &DiffRow) -> Value<'static> {
    row.key.thread.clone().into()
}

fn service(_: &Comparison, row: &DiffRow) -> Value<'static> {
    row.key.service.clone().into()
}

fn activity(_: &Comparison, row: &DiffRow) -> Value<'static> {
    row.key.activity.map(|activity| activity.name()).into()
}

fn data_labels(by: GroupBy) -> Vec<Column> {
    let layer = column("layer", layer);
    let image = column("image", |_, row| row.key.image.clone().into());
    let symbol = column("symbol", |_, row| row.key.symbol.clone().into());
    match by {
        GroupBy::Layer => vec![layer],
        GroupBy::Image => vec![layer, image],
        GroupBy::Symbol => vec![layer, image, symbol],
        GroupBy::Line => vec![
            layer,
            image,
            symbol,
            column("file", |_, row| {
                row.key.line.as_ref().map(|(file, _)| file.clone()).into()
            }),
            column("line", |_, row| {
                row.key.line.as_ref().map(|(_, line)| *line).into()
            }),
        ],
        GroupBy::Thread => vec![column("process", process), column("thread", thread)],
        GroupBy::Process => vec![column("process", process)],
        GroupBy::Service => vec![column("service", service)],
        GroupBy::Activity => vec![column("activity", activity)],
    }
}

fn data_columns(comparison: &Comparison, by: GroupBy) -> Vec<Column> {
    let mut columns = data_labels(by);
    columns.extend([
        column("a_samples", |_, row| row.a.samples.into()),
        column("b_samples", |_, row| row.b.samples.into()),
        column("a_percent", |_, row| Value::Percent(row.a.percent)),
        column("b_percent", |_, row| Value::Percent(row.b.percent)),
        column("points", |_, row| {
            Value::Change(row.change(Quantity::Share))
        }),
    ]);
    if comparison.per.is_ok() {
        columns.extend([
            column("a_absolute", |_, row| absolute(&row.a)),
            column("b_absolute", |_, row| absolute(&row.b)),
            column("absolute_change", |_, row| {
                Value::Change(row.change(Quantity::Absolute))
            }),
        ]);
    }
    columns.extend([
        column("p", |_, row| {
            row.test
                .map_or(Value::Absent, |test| Value::Probability(test.probability))
        }),
        column("q", |_, row| {
            row.test
                .map_or(Value::Absent, |test| Value::Probability(test.rate))
        }),
        column("significant", |_, row| match row.is_significant() {
            true => Value::True,
            false => Value::Absent,
        }),
    ]);
    columns
}

fn absolute(side: &SideValue) -> Value<'static> {
    side.absolute.map_or(Value::Absent, Value::Percent)
}
