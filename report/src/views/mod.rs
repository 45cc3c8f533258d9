//! Which tables does a view have? A file for each kind of view: its rows and its columns.

mod callgraph;
mod events;
mod groups;
mod ratios;
pub mod rows;
mod sampled_frames;
mod side_by_side;
mod tree;

use crate::{
    columns::{OutputFormat, Sheet},
    scope::Scope,
    view::{GroupBy, ReportTable, View},
};

/// The table of layers, which all reports have first. Nothing is cut from it.
pub fn layers<'p>(scope: &Scope<'p>, format: OutputFormat) -> Sheet<'p> {
    let everything = View {
        percent_of: scope.view.percent_of,
        ..View::default()
    };
    groups::sheet(scope, GroupBy::Layer, &everything, format)
}

/// The tables of a view, in the order in which people are shown them.
pub fn sheets<'p>(scope: &Scope<'p>, format: OutputFormat) -> Vec<Sheet<'p>> {
    match scope.view.table {
        ReportTable::Overview => groups::overview(scope, format),
        ReportTable::SideBySide(by) => side_by_side::sheets(scope, by, format),
        ReportTable::By(by) => groups::sheets(scope, by, format),
        ReportTable::Callgraph => callgraph::sheets(scope, format),
        ReportTable::Events => events::sheets(scope, format),
        ReportTable::Tree(direction) => tree::sheets(scope, direction, format),
        ReportTable::SampledFrames => sampled_frames::sheets(scope, format),
    }
}

/// What the rows of a view are called in JSON.
pub const fn rows_are(table: ReportTable) -> &'static str {
    match table {
        ReportTable::By(by) | ReportTable::SideBySide(by) => by.name(),
        ReportTable::Overview | ReportTable::Callgraph => GroupBy::Symbol.name(),
        ReportTable::Events => "event",
        ReportTable::Tree(direction) => direction.name(),
        ReportTable::SampledFrames => "dim",
    }
}
