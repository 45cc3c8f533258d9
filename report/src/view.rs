//! Describes what a view shows of a profile.

use crate::{code_filter::CodeFilter, weights::EventId};

/// A view of a profile. The default shows everything of the first event: layers, images and symbols.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct View {
    /// The event. None selects the first of [`Profile::events`](crate::Profile::events).
    pub event: Option<EventId>,
    /// The table.
    pub table: &'static ReportTable,
    /// Whether each row has the shares of all events. Applies to tables with groups: [`ReportTable::group`].
    pub side_by_side: bool,
    /// Only rows of these functions. In tables without layers or symbols in their rows, only samples whose leaf is in the
    /// layer or has the name. Percentages still refer to the whole profile.
    pub code: CodeFilter,
    /// The sort order of rows.
    pub order: RowOrder,
    /// The most rows.
    pub limit: Option<usize>,
    /// Minimum percentage of a row's total. In call graphs, also the minimum percentage of a caller or callee in its
    /// method's total. In trees, the minimum percentage of a branch.
    pub min_percent: f64,
    /// The names of the shown measures, from [`Profile::measures`](crate::Profile::measures). If empty, samples are
    /// shown, with percentages according to [`percent_of`](Self::percent_of).
    pub measures: Vec<String>,
    /// The value for percentages and sorting, if samples are shown.
    pub percent_of: PercentOf,
    /// Limits of the text output.
    pub text: TextLimits,
}

impl View {
    /// Returns true if the table has samples only: individually, or those of all events.
    pub(crate) fn shows_samples(&self) -> bool {
        let needs = [TableNeed::SampledFrames, TableNeed::AllEvents];
        self.side_by_side || needs.into_iter().any(|need| self.table.needs(need))
    }

    /// Removes the rows after the most.
    pub(crate) fn truncate<R>(&self, rows: &mut Vec<R>) {
        if let Some(limit) = self.limit {
            rows.truncate(limit);
        }
    }
}

/// How text is shortened to fit a terminal. The default shortens nothing. JSON and CSV are always complete.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TextLimits {
    /// Width of the terminal in columns. Names are shortened in wider tables.
    pub width: Option<usize>,
    /// Whether large shares are highlighted in colour.
    pub colour: bool,
    /// Rows whose total is below this percentage are folded into one line with their number and their sum.
    pub fold_below: f64,
    /// The most entries of [`EventSummary::missing`](crate::EventSummary::missing), those with the most samples first.
    pub missing: Option<usize>,
}

impl TextLimits {
    /// Returns true if lines are long enough to show image names beside other names.
    pub(crate) fn has_room_for_images(&self) -> bool {
        self.width.is_none_or(|width| width >= 120)
    }
}

/// A table of a report. Each table has a file in `views/` and an entry in the list of tables there.
#[derive(Debug)]
pub struct ReportTable {
    /// Its name on the command line.
    pub name: &'static str,
    /// Other names on the command line.
    pub aliases: &'static [&'static str],
    /// Describes its rows in help texts.
    pub about: &'static str,
    /// How the user selects it.
    pub choice: TableChoice,
    /// The kind of its rows in JSON.
    pub rows: &'static str,
    /// The data that a profile needs for it.
    pub needs: &'static [TableNeed],
    /// The groups of its rows, if it supports several events side by side and comparisons.
    pub group: Option<GroupBy>,
    /// The measures that it shows by default. Empty for samples.
    pub measures: &'static [&'static str],
}

/// How a table is selected on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableChoice {
    /// `--by NAME`.
    ByName,
    /// `--by NAME`, but not listed in help texts.
    Hidden,
    /// By an option of its own, or as the default.
    OwnOption,
}

/// Data that a table needs in a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableNeed {
    /// Source lines: [`NameOptions::lines`](crate::NameOptions::lines).
    Lines,
    /// Inlined functions as separate frames: [`NameOptions::inlined`](crate::NameOptions::inlined).
    Inlined,
    /// [`Options::sampled_frames`](crate::Options::sampled_frames).
    SampledFrames,
    /// All events at once: a table for each event would be the same.
    AllEvents,
}

impl ReportTable {
    /// Returns true if the table needs this data.
    #[must_use]
    pub fn needs(&self, need: TableNeed) -> bool {
        self.needs.contains(&need)
    }
}

/// Tables are equal if their names are equal.
impl PartialEq for ReportTable {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ReportTable {}

/// The sort order of a table's rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RowOrder {
    /// By own weight, descending.
    #[default]
    Own,
    /// By total weight, descending.
    Total,
    /// By layer and name.
    Name,
}

/// The direction of a call tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TreeDirection {
    /// From the outermost frames to callees.
    #[default]
    TopDown,
    /// From the leaves to callers.
    BottomUp,
}

/// The items by which rows are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
    /// A dex file, library, or kernel module.
    Image,
    /// A method or function.
    Symbol,
    /// A line of a method or function, if [`NameOptions::lines`](crate::NameOptions::lines) is set.
    Line,
    /// A thread under one name and in one service.
    Thread,
    /// A process.
    Process,
    /// A service: a set of processes.
    Service,
    /// A layer.
    Layer,
    /// What a JVM does: executing the program, garbage collection, compilation, class loading.
    Activity,
}

impl GroupBy {
    /// Returns the name on the command line and in JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Symbol => "symbol",
            Self::Line => "line",
            Self::Thread => "thread",
            Self::Process => "process",
            Self::Service => "service",
            Self::Layer => "layer",
            Self::Activity => "activity",
        }
    }
}

/// The value that percentages refer to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PercentOf {
    /// The sum of the samples' periods, like perf. Correct even if the rate varied.
    #[default]
    Period,
    /// The number of samples, like OProfile.
    Samples,
}

impl PercentOf {
    /// Returns the name in JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Period => "period",
            Self::Samples => "samples",
        }
    }
}
