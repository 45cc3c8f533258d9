//! The events of a profile side by side, with what those of one group say together.

use crate::{
    columns::{Column, Columns, OutputFormat, Sheet, SheetRole, Value},
    scope::Scope,
    weights::{EventId, ProfileCounter, SampleWeight},
};

/// An event with what was counted of it.
#[derive(Debug)]
struct Line<'p> {
    name: &'p str,
    weight: SampleWeight,
    /// Scaled to all of the time if it had a counter for a part of it.
    estimate: Option<u64>,
    /// Instructions in each cycle.
    ipc: Option<f64>,
    /// How much of the event in a thousand instructions.
    per_thousand: Option<f64>,
}

/// One sheet: a row for each event, in the order of the recording.
pub fn sheets<'p>(scope: &Scope<'p>, format: OutputFormat) -> Vec<Sheet<'p>> {
    let columns = columns().of(format);
    let mut sheet = Sheet::new(SheetRole::Rows, &columns, format);
    let lines = lines(scope);
    for line in &lines {
        sheet.push(&columns, scope, line);
    }
    sheet.width = scope.view.text.width;
    vec![sheet]
}

fn lines<'p>(scope: &Scope<'p>) -> Vec<Line<'p>> {
    let profile = scope.profile;
    let counts: Vec<_> = profile
        .events
        .iter()
        .map(|event| (event.event, weight(scope, event.event)))
        .collect();
    // Ratios are of events that were counted at the same times: those of one group.
    let group = |id: EventId| profile.description(id).leader.unwrap_or(id.index());
    let counted = |id: EventId, names: &[&str]| {
        let other = counts.iter().find(|(other, _)| {
            group(*other) == group(id) && names.contains(&plain(&profile.description(*other).name))
        });
        other.map(|(_, weight)| weight.period())
    };
    let line = |&(id, weight): &(EventId, SampleWeight)| {
        let description = profile.description(id);
        let instructions = counted(id, &["instructions"]);
        let cycles = counted(id, &["cycles", "cpu-cycles"]);
        let is_instructions = plain(&description.name) == "instructions";
        let ipc = cycles.and_then(|cycles| ratio(weight.period(), cycles));
        let per_thousand = instructions
            .and_then(|instructions| ratio(weight.period(), instructions))
            .map(|ratio| ratio * 1_000.0);
        Line {
            name: &description.name,
            weight,
            estimate: description.estimate(weight.period()),
            ipc: ipc.filter(|_| is_instructions),
            per_thousand: per_thousand.filter(|_| !is_instructions),
        }
    };
    counts.iter().map(line).collect()
}

/// What the samples of an event weigh whose leaf is of the view's layer and symbols.
fn weight(scope: &Scope, event: EventId) -> SampleWeight {
    let mut sum = SampleWeight::default();
    let counters = ProfileCounter::of_samples(event);
    for row in scope.profile.weights.rows(counters) {
        if scope.selects_leaf(row.stack) {
            sum.add(row.weight);
        }
    }
    sum
}

/// An event's name without its modifiers.
fn plain(name: &str) -> &str {
    name.split(':').next().unwrap_or(name)
}

#[allow(clippy::cast_precision_loss)] // six decimals are shown at most
fn ratio(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

fn columns<'p>() -> Columns<'p, Line<'p>> {
    type LineColumn<'p> = Column<'p, Line<'p>>;
    let name: LineColumn = Column::new(|_, line| line.name.into());
    let samples: LineColumn = Column::new(|_, line| line.weight.samples().into());
    let period: LineColumn = Column::new(|_, line| line.weight.period().into());
    let estimate: LineColumn = Column::new(|_, line| line.estimate.into());
    let ipc: LineColumn = Column::new(|_, line| line.ipc.map_or(Value::Absent, Value::Ratio));
    let per_thousand: LineColumn =
        Column::new(|_, line| line.per_thousand.map_or(Value::Absent, Value::Ratio));
    Columns {
        labels: vec![name.text("event").data("event")],
        counts: Vec::new(),
        shares: vec![
            samples.text("samples").data("samples"),
            period.text("count").data("period"),
            estimate.data("period_estimate"),
            ipc.text_or_dash("per cycle").data("per_cycle"),
            per_thousand
                .text_or_dash("per 1000 instr.")
                .data("per_1000_instructions"),
        ],
    }
}
