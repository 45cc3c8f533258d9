//! Comparisons as JSON, a public interface: `schema/diff.schema.json`.

use std::io::{self, Write};

use serde::Serialize;

use super::{
    Quantity, Side,
    comparison::{Comparison, DiffTable},
    session::SessionShares,
    table, text,
    total::Total,
};
use crate::{
    JSON_VERSION, JSON_VERSION_OF_MEASURES,
    columns::{OutputFormat, rounded},
    measures::MeasureOrigin,
    sheet::{Sheet, SheetRole},
    time_span::nanoseconds,
    view::{GroupBy, RowOrder},
};

#[derive(Serialize)]
struct Document<'c> {
    version: u32,
    #[serde(flatten)]
    sessions: Sessions<'c>,
    #[serde(flatten)]
    values: Values<'c>,
    #[serde(flatten)]
    tables: Tables,
    notes: Vec<String>,
}

/// The sessions of each side, and the samples that were selected.
#[derive(Serialize)]
struct Sessions<'c> {
    a: Vec<Session<'c>>,
    b: Vec<Session<'c>>,
    event: &'c str,
    #[serde(skip_serializing_if = "str::is_empty")]
    selected_by: &'c str,
}

/// The compared values, and their sums.
#[derive(Serialize)]
struct Values<'c> {
    compared: &'static str,
    by_leaf: bool,
    percent_of: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    measure: Option<DiffMeasure<'c>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    absolute: Option<Absolute>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_absolute: Option<&'c str>,
}

/// The test of the rows, and the rows.
#[derive(Serialize)]
struct Tables {
    tested_by: &'static str,
    level: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    layers: Option<Sheet<'static>>,
    by: &'static str,
    rows_tested: usize,
    rows: Sheet<'static>,
    rows_hidden: usize,
}

/// The named measure. The `samples` and `period_sum` of sessions, and the values of rows, are its values.
#[derive(Serialize)]
struct DiffMeasure<'c> {
    name: &'c str,
    unit: &'c str,
    exact: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    estimated: bool,
}

#[derive(Serialize)]
struct Session<'c> {
    session: String,
    target: &'c str,
    start: &'c str,
    duration_ns: u64,
    samples: u64,
    period_sum: u64,
    unattributed: u64,
    lost: u64,
    throttled: u64,
}

/// The sum of the selected samples in the view's layer and symbols.
#[derive(Serialize)]
struct Absolute {
    unit: &'static str,
    per: &'static str,
    a: f64,
    b: f64,
    a_samples: u64,
    b_samples: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    change_percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p: Option<f64>,
}

/// Writes the comparison as one JSON object and a newline.
pub fn write(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    let document = Document {
        version: match comparison.measure() {
            Some(_) => JSON_VERSION_OF_MEASURES,
            None => JSON_VERSION,
        },
        sessions: sessions(comparison),
        values: values(comparison),
        tables: tables(comparison),
        notes: text::notes(comparison),
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

fn sessions<'c>(comparison: &'c Comparison) -> Sessions<'c> {
    let of = |side: Side| {
        let sessions = comparison.sides.get(side.index()).copied();
        let sessions = sessions.unwrap_or_default().iter();
        sessions.map(session).collect()
    };
    let first = comparison.sides.iter().copied().flatten().next();
    Sessions {
        a: of(Side::A),
        b: of(Side::B),
        event: first.map_or("", |session| &session.event),
        selected_by: first.map_or("", |session| &session.recording.selection),
    }
}

fn values<'c>(comparison: &'c Comparison) -> Values<'c> {
    let view = &comparison.view.view;
    Values {
        compared: match comparison.view.quantity {
            Quantity::Share => "shares",
            Quantity::Absolute => "absolute",
        },
        by_leaf: view.order != RowOrder::Total,
        percent_of: view.percent_of.name(),
        measure: comparison.measure().map(|measure| DiffMeasure {
            name: &measure.name,
            unit: &measure.unit,
            exact: measure.origin == MeasureOrigin::Counted,
            estimated: measure.origin == MeasureOrigin::Estimated,
        }),
        absolute: absolute(comparison),
        not_absolute: comparison.per.as_ref().err().map(String::as_str),
    }
}

fn tables(comparison: &Comparison) -> Tables {
    let sheet = |table: &DiffTable| table::sheet(comparison, table, OutputFormat::Json);
    let (first, last) = (comparison.tables.first(), comparison.tables.last());
    let layers = first.filter(|_| comparison.tables.len() > 1);
    Tables {
        tested_by: comparison.tested_by().name(),
        level: comparison.view.level,
        layers: layers.map(sheet),
        by: last.map_or(GroupBy::Symbol, |table| table.by).name(),
        rows_tested: last.map_or(0, |table| table.tested),
        rows_hidden: last.map_or(0, |table| table.hidden),
        rows: last.map_or_else(|| Sheet::without_columns(SheetRole::Rows), sheet),
    }
}

fn session(session: &SessionShares) -> Session<'_> {
    Session {
        session: session.recording.folder.to_string_lossy().into_owned(),
        target: &session.recording.target,
        start: &session.recording.start,
        duration_ns: nanoseconds(session.recording.duration),
        samples: session.count(session.all),
        period_sum: session.amount(session.all),
        unattributed: session.missing.unattributed,
        lost: session.missing.lost,
        throttled: session.missing.throttled,
    }
}

fn absolute(comparison: &Comparison) -> Option<Absolute> {
    let (total, per) = (
        comparison.total.as_ref().ok()?,
        comparison.per.as_ref().ok()?,
    );
    let value = |total: Total| rounded(total.value);
    Some(Absolute {
        unit: match table::unit(comparison) {
            "ms" => "milliseconds",
            _ => "millions",
        },
        per: per.name(),
        a: value(total.a),
        b: value(total.b),
        a_samples: total.a.samples,
        b_samples: total.b.samples,
        change_percent: total.percent().map(rounded),
        p: total.probability,
    })
}
