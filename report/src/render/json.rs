//! Views as JSON, a public interface: `schema/report.schema.json`.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    io::{self, Write},
};

use serde::Serialize;
use varid_model::{Layer, Rate};
use varid_recording::{SampleSource, SessionState, SessionTarget};

use crate::{
    JSON_VERSION, JSON_VERSION_OF_MEASURES,
    columns::{OutputFormat, rounded},
    finding::{Finding, Place},
    measures::{Measure, MeasureOrigin},
    missing_files::MissingFile,
    scope::Scope,
    sheet::{Sheet, SheetRole},
    time_span::nanoseconds,
    views,
    weights::SampleWeight,
};

#[derive(Serialize)]
struct Report<'p> {
    version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    finding: Option<JsonFinding<'p>>,
    #[serde(flatten)]
    session: JsonSession<'p>,
    #[serde(flatten)]
    sampling: JsonSampling<'p>,
    #[serde(flatten)]
    samples: JsonSamples<'p>,
    #[serde(flatten)]
    losses: JsonLosses<'p>,
    #[serde(flatten)]
    tables: JsonTables<'p>,
    missing: Vec<JsonMissing<'p>>,
    notes: Vec<&'p String>,
}

#[derive(Serialize)]
struct JsonSession<'p> {
    session: String,
    state: SessionState,
    target: &'p SessionTarget,
    start: &'p str,
    duration_ns: u64,
}

/// The shown event, all events if there are several, and the source of samples.
#[derive(Serialize)]
struct JsonSampling<'p> {
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
}

/// The samples of the event.
#[derive(Serialize)]
struct JsonSamples<'p> {
    #[serde(skip_serializing_if = "String::is_empty")]
    selected_by: String,
    recorded: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    excluded: &'p BTreeMap<&'static str, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples_elsewhere: Option<u64>,
    samples: u64,
    period_sum: u64,
    attributed: u64,
    unattributed: &'p BTreeMap<&'static str, u64>,
}

/// What the session did not record.
#[derive(Serialize)]
struct JsonLosses<'p> {
    lost: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    malformed: Option<u64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    filtered: &'p BTreeMap<String, u64>,
    throttled: u64,
}

#[derive(Serialize)]
struct JsonTables<'p> {
    percent_of: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    measures: Vec<JsonMeasure<'p>>,
    layers: Sheet<'p>,
    #[serde(skip_serializing_if = "Option::is_none")]
    images: Option<Sheet<'p>>,
    by: &'static str,
    rows: Sheet<'p>,
    rows_hidden: usize,
}

/// A measure that the view names.
#[derive(Serialize)]
struct JsonMeasure<'p> {
    name: &'p str,
    unit: &'p str,
    exact: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    estimated: bool,
    sum: u64,
}

#[derive(Serialize)]
struct JsonFinding<'p> {
    text: String,
    percent: f64,
    layer: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<&'p str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    symbol: Option<&'p str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    activity: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    caller: Option<&'p str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    with_callees: Option<bool>,
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

/// Writes the view as one JSON object and a newline.
pub fn write(scope: &Scope, out: &mut dyn Write) -> io::Result<()> {
    let missing = scope.event.missing.iter();
    let notes = scope.profile.recording.notes.iter();
    let report = Report {
        version: match scope.measures.are_samples() {
            true => JSON_VERSION,
            false => JSON_VERSION_OF_MEASURES,
        },
        finding: Finding::of(scope).map(json_finding),
        session: json_session(scope),
        sampling: json_sampling(scope),
        samples: json_samples(scope),
        losses: json_losses(scope),
        tables: json_tables(scope),
        missing: missing
            .map(|missing| json_missing(scope, missing))
            .collect(),
        notes: notes.chain(&scope.event.notes).collect(),
    };
    serde_json::to_writer_pretty(&mut *out, &report)?;
    writeln!(out)
}

fn json_session<'p>(scope: &Scope<'p>) -> JsonSession<'p> {
    let recording = &scope.profile.recording;
    let manifest = &recording.manifest;
    JsonSession {
        session: recording.session.to_string_lossy().into_owned(),
        state: manifest.state,
        target: &manifest.target,
        start: &manifest.wall_start,
        duration_ns: nanoseconds(recording.duration),
    }
}

fn json_sampling<'p>(scope: &Scope<'p>) -> JsonSampling<'p> {
    let manifest = &scope.profile.recording.manifest;
    let share = scope.description.multiplexed();
    let several = manifest.events.len() > 1;
    let events = manifest.events.iter().filter(|_| several);
    JsonSampling {
        event: &scope.description.name,
        rate: scope.description.rate,
        running_percent: share.map(|share| rounded(share * 100.0)),
        period_estimate: share.and_then(|_| scope.description.estimate(scope.samples.period())),
        events: events.map(|event| event.name.as_str()).collect(),
        source: manifest.source,
    }
}

fn json_samples<'p>(scope: &Scope<'p>) -> JsonSamples<'p> {
    let (event, samples) = (scope.event, scope.samples.samples());
    JsonSamples {
        selected_by: scope.profile.options.describe(),
        recorded: event.recorded,
        excluded: &event.excluded,
        samples_elsewhere: scope.elsewhere().map(SampleWeight::samples),
        samples,
        period_sum: scope.samples.period(),
        attributed: samples.saturating_sub(event.unattributed_samples()),
        unattributed: &event.unattributed,
    }
}

fn json_losses<'p>(scope: &Scope<'p>) -> JsonLosses<'p> {
    let recording = &scope.profile.recording;
    let counts = &recording.manifest.counts;
    JsonLosses {
        lost: recording.lost,
        malformed: Some(counts.malformed).filter(|count| *count > 0),
        filtered: &counts.filtered,
        throttled: counts.throttled,
    }
}

fn json_tables<'s>(scope: &'s Scope) -> JsonTables<'s> {
    let mut tables = JsonTables {
        percent_of: scope.percent_of.name(),
        measures: measures(scope),
        layers: views::layers(scope, OutputFormat::Json),
        images: None,
        by: scope.view.table.rows,
        rows: Sheet::without_columns(SheetRole::Rows),
        rows_hidden: 0,
    };
    for sheet in views::sheets(scope, OutputFormat::Json) {
        match sheet.role {
            SheetRole::Images => tables.images = Some(sheet),
            SheetRole::Rows => {
                tables.rows_hidden = sheet.hidden;
                tables.rows = sheet;
            }
            SheetRole::TextOnly => {}
        }
    }
    tables
}

/// The measures that the view names. Empty if it shows samples.
fn measures<'s>(scope: &'s Scope) -> Vec<JsonMeasure<'s>> {
    let measures = scope.measures.list.iter().enumerate();
    let measures = measures.filter(|_| !scope.measures.are_samples());
    let measure = |(place, measure): (usize, &'s Measure)| JsonMeasure {
        name: &measure.name,
        unit: &measure.unit,
        exact: measure.origin == MeasureOrigin::Counted,
        estimated: measure.origin == MeasureOrigin::Estimated,
        sum: scope.all.get(place),
    };
    measures.map(measure).collect()
}

fn json_finding(finding: Finding<'_>) -> JsonFinding<'_> {
    let (layer, image, symbol) = match finding.place {
        Place::Kernel => (Layer::Kernel, None, None),
        Place::Own(_, name) | Place::With(_, name) => (finding.program.layer(), None, Some(name)),
        Place::Function(_, layer, image, name) => (layer, Some(image), Some(name)),
        Place::Image(layer, name) => (layer, Some(name), None),
        Place::Activity(_) => (Layer::Vm, None, None),
    };
    let activity = match finding.place {
        Place::Activity(activity) => Some(activity.name()),
        _ => None,
    };
    JsonFinding {
        text: finding.to_string(),
        percent: rounded(finding.percent),
        layer: layer.name(),
        image,
        symbol,
        activity,
        caller: finding.caller,
        line: finding.line.as_ref().map(ToString::to_string),
        with_callees: matches!(finding.place, Place::With(..)).then_some(true),
    }
}

fn json_missing<'p>(scope: &Scope, missing: &'p MissingFile) -> JsonMissing<'p> {
    JsonMissing {
        file: missing.file.to_string_lossy(),
        build_id: &missing.build_id,
        what: missing.part.name(),
        why: &missing.why,
        samples: missing.weight.samples(),
        period: missing.weight.period(),
        percent: rounded(scope.sample_percent(missing.weight)),
        fetch: &missing.fetch,
    }
}
