//! How does a view look to programs? A public interface: `schema/report.schema.json`.

mod dim;

use std::{
    borrow::Cow,
    collections::BTreeMap,
    io::{self, Write},
};

use serde::Serialize;
use varid_model::{Layer, Rate};
use varid_recording::{SampleSource, SessionState, SessionTarget};

use crate::{
    JSON_VERSION,
    callgraph::{self, Call},
    dim_rows,
    missing::Missing,
    profile::Profile,
    rows::{self, Row, Rows},
    view::{By, Table, View},
};
use dim::JsonDim;

#[derive(Serialize)]
struct Report<'p> {
    version: u32,
    session: String,
    state: SessionState,
    target: &'p SessionTarget,
    start: &'p str,
    duration_ns: u64,
    event: &'p str,
    #[serde(flatten)]
    rate: Rate,
    #[serde(skip_serializing_if = "Option::is_none")]
    running_percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    period_estimate: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<&'p str>,
    source: SampleSource,
    #[serde(skip_serializing_if = "String::is_empty")]
    selected_by: String,
    recorded: u64,
    samples: u64,
    period_sum: u64,
    attributed: u64,
    unattributed: &'p BTreeMap<&'static str, u64>,
    lost: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    malformed: Option<u64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    filtered: &'p BTreeMap<String, u64>,
    throttled: u64,
    percent_of: &'static str,
    layers: Vec<JsonRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    images: Option<Vec<JsonRow>>,
    by: &'static str,
    rows: JsonRows,
    rows_hidden: usize,
    missing: Vec<JsonMissing<'p>>,
    notes: &'p [String],
}

/// The rows of a table; what they are is in `by`.
#[derive(Serialize)]
#[serde(untagged)]
enum JsonRows {
    Symbols(Vec<JsonRow>),
    Dim(Vec<JsonDim>),
}

#[derive(Serialize)]
struct JsonMissing<'p> {
    file: Cow<'p, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    build_id: &'p str,
    what: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    why: &'p str,
    samples: u64,
    period: u64,
    percent: f64,
    fetch: &'p [String],
}

#[derive(Serialize)]
struct JsonRow {
    #[serde(flatten)]
    what: What,
    #[serde(rename = "self")]
    own: u64,
    total: u64,
    self_percent: f64,
    total_percent: f64,
    self_period: u64,
    total_period: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    returns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unwinds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    callers: Option<Vec<JsonCall>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    callees: Option<Vec<JsonCall>>,
}

#[derive(Serialize)]
struct JsonCall {
    #[serde(flatten)]
    what: What,
    samples: u64,
    period: u64,
    percent: f64,
}

#[derive(Serialize)]
struct What {
    #[serde(skip_serializing_if = "Option::is_none")]
    layer: Option<Layer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    symbol: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded_symbol: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    inlined: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<String>,
}

/// Writes the view as one JSON object and a newline.
pub fn write(profile: &Profile, view: &View, out: &mut dyn Write) -> io::Result<()> {
    let manifest = &profile.manifest;
    let weight = profile.weight();
    let everything = View {
        percent_of: view.percent_of,
        ..View::default()
    };
    let plain = |Rows { shown, hidden }: Rows| {
        let rows = shown.into_iter();
        let rows = rows.map(|row| json_row(profile, view, row)).collect();
        (rows, hidden)
    };
    let by = match view.table {
        Table::By(by) => by.name(),
        Table::Overview | Table::Callgraph => By::Symbol.name(),
        Table::Dim => "dim",
    };
    let symbols = |(rows, hidden)| (JsonRows::Symbols(rows), hidden);
    let (rows, rows_hidden) = match view.table {
        Table::Callgraph => symbols(callgraph(profile, view)),
        Table::Overview => symbols(plain(rows::rows(profile, By::Symbol, view))),
        Table::By(by) => symbols(plain(rows::rows(profile, by, view))),
        Table::Dim => {
            let (rows, hidden) = dim_rows::rows(profile, view);
            let rows = rows.into_iter().map(JsonDim::from);
            (JsonRows::Dim(rows.collect()), hidden)
        }
    };
    let images =
        (view.table == Table::Overview).then(|| plain(rows::rows(profile, By::Image, view)).0);
    let share = profile.event().multiplexed();
    let report = Report {
        version: JSON_VERSION,
        session: profile.session.to_string_lossy().into_owned(),
        state: manifest.state,
        target: &manifest.target,
        start: &manifest.wall_start,
        duration_ns: profile.duration_ns,
        event: &profile.event().name,
        rate: profile.event().rate,
        running_percent: share.map(|share| rounded(share * 100.0)),
        period_estimate: share.and_then(|_| profile.event().estimate(weight.period)),
        events: if manifest.events.len() > 1 {
            manifest
                .events
                .iter()
                .map(|event| event.name.as_str())
                .collect()
        } else {
            Vec::new()
        },
        source: manifest.source,
        selected_by: profile.options.describe(),
        recorded: profile.recorded,
        samples: weight.samples,
        period_sum: weight.period,
        attributed: weight
            .samples
            .saturating_sub(profile.unattributed_samples()),
        unattributed: &profile.unattributed,
        lost: profile.lost,
        filtered: &manifest.counts.filtered,
        malformed: Some(manifest.counts.malformed).filter(|count| *count > 0),
        throttled: manifest.counts.throttled,
        percent_of: view.percent_of.name(),
        layers: plain(rows::rows(profile, By::Layer, &everything)).0,
        images,
        by,
        rows,
        rows_hidden,
        missing: profile
            .missing
            .iter()
            .map(|missing| json_missing(profile, view, missing))
            .collect(),
        notes: &profile.notes,
    };
    serde_json::to_writer_pretty(&mut *out, &report)?;
    writeln!(out)
}

fn callgraph(profile: &Profile, view: &View) -> (Vec<JsonRow>, usize) {
    let (entries, hidden) = callgraph::entries(profile, view);
    let rows = entries.into_iter().map(|entry| {
        let all = view.percent_of.value(entry.row.share.total);
        let calls = |calls: Vec<Call>| {
            let calls = calls.into_iter().map(|Call { row, weight }| JsonCall {
                what: what(row),
                samples: weight.samples,
                period: weight.period,
                percent: rounded(rows::percent(view.percent_of.value(weight), all)),
            });
            Some(calls.collect())
        };
        JsonRow {
            callers: calls(entry.callers),
            callees: calls(entry.callees),
            ..json_row(profile, view, entry.row)
        }
    });
    (rows.collect(), hidden)
}

fn json_row(profile: &Profile, view: &View, row: Row) -> JsonRow {
    let all = view.percent_of.value(profile.weight());
    let percent = |weight| rounded(rows::percent(view.percent_of.value(weight), all));
    let (share, calls) = (row.share, row.calls);
    JsonRow {
        what: what(row),
        own: share.own.samples,
        total: share.total.samples,
        self_percent: percent(share.own),
        total_percent: percent(share.total),
        self_period: share.own.period,
        total_period: share.total.period,
        calls: calls.map(|calls| calls.invokes),
        returns: calls.map(|calls| calls.returns),
        unwinds: calls.map(|calls| calls.unwinds),
        callers: None,
        callees: None,
    }
}

fn json_missing<'p>(profile: &Profile, view: &View, missing: &'p Missing) -> JsonMissing<'p> {
    let value = |weight| view.percent_of.value(weight);
    JsonMissing {
        file: missing.file.to_string_lossy(),
        build_id: &missing.build_id,
        what: missing.lack.name(),
        why: &missing.why,
        samples: missing.weight.samples,
        period: missing.weight.period,
        percent: rounded(rows::percent(
            value(missing.weight),
            value(profile.weight()),
        )),
        fetch: &missing.fetch,
    }
}

fn what(row: Row) -> What {
    What {
        layer: row.layer,
        image: row.image,
        symbol: row.symbol,
        recorded_symbol: row.recorded,
        inlined: row.inlined,
        file: row.file.map(|file| file.to_string()),
        line: row.line,
        pid: row.pid,
        process: row.process,
        tid: row.tid,
        thread: row.thread,
        service: row.service,
    }
}

/// Six decimals tell all there is to tell of a percentage.
fn rounded(percent: f64) -> f64 {
    (percent * 1e6).round() / 1e6
}
