//! The tables of views: one file for each kind, with its rows and columns.

mod callgraph;
mod events;
mod groups;
mod kind;
mod measured;
mod ratios;
pub mod rows;
mod sampled_frames;
mod side_by_side;
mod tree;

use crate::{
    columns::OutputFormat,
    scope::Scope,
    sheet::Sheet,
    view::{GroupBy, ReportTable, TableChoice, TreeDirection, View},
};
use kind::TableKind;

/// All tables, in the order of help texts.
static TABLES: &[&TableKind] = &[
    &groups::OVERVIEW,
    &groups::IMAGE,
    &groups::SYMBOL,
    &groups::LINE,
    &groups::THREAD,
    &groups::PROCESS,
    &groups::SERVICE,
    &groups::LAYER,
    &groups::ACTIVITY,
    &groups::CALLS,
    &events::TABLE,
    &sampled_frames::TABLE,
    &callgraph::TABLE,
    &tree::TOP_DOWN,
    &tree::BOTTOM_UP,
];

/// The table of layers, with which all reports start. View limits do not apply to it.
pub fn layers<'s>(scope: &'s Scope<'_>, format: OutputFormat) -> Sheet<'s> {
    groups::sheet(scope, GroupBy::Layer, &View::default(), format)
}

/// The tables of a view in display order.
pub fn sheets<'s>(scope: &'s Scope<'_>, format: OutputFormat) -> Vec<Sheet<'s>> {
    let view = scope.view;
    match view.table.group.filter(|_| view.side_by_side) {
        Some(by) => side_by_side::sheets(scope, by, format),
        None => {
            let kind = TABLES.iter().find(|kind| kind.table == *view.table);
            kind.map_or_else(Vec::new, |kind| (kind.sheets)(scope, format))
        }
    }
}

impl ReportTable {
    /// Layers, then images, then symbols. In JSON and CSV, the rows are symbols.
    pub const OVERVIEW: &'static Self = &groups::OVERVIEW.table;
    /// Symbols with their callers and callees.
    pub const CALLGRAPH: &'static Self = &callgraph::TABLE.table;
    /// The profile's events side by side.
    pub const EVENTS: &'static Self = &events::TABLE.table;
    /// The frames in which threads were sampled.
    pub const VM_FRAMES: &'static Self = &sampled_frames::TABLE.table;

    /// Returns all tables.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        TABLES.iter().map(|kind| &kind.table)
    }

    /// Returns the table for a name or alias of `--by`.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::all().find(|table| {
            let is_named = table.name == name || table.aliases.contains(&name);
            is_named && table.choice != TableChoice::OwnOption
        })
    }

    /// Returns the table whose rows are these groups.
    #[must_use]
    pub const fn by(group: GroupBy) -> &'static Self {
        match group {
            GroupBy::Image => &groups::IMAGE.table,
            GroupBy::Symbol => &groups::SYMBOL.table,
            GroupBy::Line => &groups::LINE.table,
            GroupBy::Thread => &groups::THREAD.table,
            GroupBy::Process => &groups::PROCESS.table,
            GroupBy::Service => &groups::SERVICE.table,
            GroupBy::Layer => &groups::LAYER.table,
            GroupBy::Activity => &groups::ACTIVITY.table,
        }
    }

    /// Returns the table that shows whole stacks as a tree.
    #[must_use]
    pub const fn tree(direction: TreeDirection) -> &'static Self {
        match direction {
            TreeDirection::TopDown => &tree::TOP_DOWN.table,
            TreeDirection::BottomUp => &tree::BOTTOM_UP.table,
        }
    }
}

impl Default for &'static ReportTable {
    fn default() -> Self {
        ReportTable::OVERVIEW
    }
}
