//! The table of events, with ratios within their groups.

use super::{kind::TableKind, ratios::Ratios};
use crate::{
    columns::{Column, Columns, OutputFormat},
    scope::Scope,
    sheet::{Sheet, SheetRole},
    view::{ReportTable, TableChoice, TableNeed},
    weights::{EventId, SampleWeight},
};

/// An event with its count.
#[derive(Debug)]
struct Line<'p> {
    name: &'p str,
    weight: SampleWeight,
    /// The count, scaled up if the event was multiplexed.
    estimate: Option<u64>,
    ratios: Ratios,
}

/// The table.
pub static TABLE: TableKind = TableKind {
    table: ReportTable {
        name: "event",
        aliases: &[],
        about: "The session's events side by side; of a group the ratios",
        choice: TableChoice::ByName,
        rows: "event",
        needs: &[TableNeed::AllEvents],
        group: None,
        measures: &[],
    },
    sheets,
};

/// Makes one sheet with a row for each event, in the order of the recording.
fn sheets<'s>(scope: &'s Scope<'_>, format: OutputFormat) -> Vec<Sheet<'s>> {
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
    let events = profile.events.iter().map(|event| event.event);
    let counts: Vec<_> = events.map(|event| (event, weight(scope, event))).collect();
    let periods: Vec<_> = counts
        .iter()
        .map(|(event, weight)| (*event, weight.period()))
        .collect();
    let lines = counts.iter().zip(Ratios::of_group(profile, &periods));
    lines
        .map(|(&(event, weight), ratios)| {
            let description = profile.description(event);
            Line {
                name: &description.name,
                weight,
                estimate: description.estimate(weight.period()),
                ratios,
            }
        })
        .collect()
}

/// Returns the weight of the event's samples whose leaf is in the view's layer and symbols.
fn weight(scope: &Scope, event: EventId) -> SampleWeight {
    let mut sum = SampleWeight::default();
    for row in scope.profile.weights.sample_rows(event) {
        if scope.selects_leaf(row.stack) {
            sum.add(row.weight);
        }
    }
    sum
}

fn columns<'p>() -> Columns<'p, Line<'p>> {
    type LineColumn<'p> = Column<'p, Line<'p>>;
    let name: LineColumn = Column::new(|_, line| line.name.into());
    let samples: LineColumn = Column::new(|_, line| line.weight.samples().into());
    let period: LineColumn = Column::new(|_, line| line.weight.period().into());
    let estimate: LineColumn = Column::new(|_, line| line.estimate.into());
    let ipc: LineColumn = Column::new(|_, line| line.ratios.per_cycle());
    let per_thousand: LineColumn = Column::new(|_, line| line.ratios.per_thousand());
    Columns {
        labels: vec![name.text("event").data("event")],
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
