//! What a view shows of a profile.

use varid_model::Layer;

use crate::{name_pattern::NamePattern, weights::EventId};

/// What to show. The default is everything of the first event: layers, images and symbols.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct View {
    /// Whose samples; none: the first of [`Profile::events`](crate::Profile::events).
    pub event: Option<EventId>,
    /// The table.
    pub table: &'static ReportTable,
    /// Whether each row has the shares of all events, where the table has groups: [`ReportTable::group`].
    pub side_by_side: bool,
    /// Only rows of this layer; of tables whose rows are no code only samples whose leaf is of it. Percentages stay those of the whole profile.
    pub layer: Option<Layer>,
    /// Only symbols with a matching name; of tables whose rows are no symbols only samples whose leaf has one. Percentages stay those of the whole profile.
    pub symbol: Option<NamePattern>,
    /// What rows are sorted by.
    pub order: RowOrder,
    /// At most so many rows.
    pub limit: Option<usize>,
    /// Only rows whose total has at least so many percent; in call graphs, also only callers and callees that have so many percent of their method's total;
    /// in trees only branches of so many percent.
    pub min_percent: f64,
    /// The names of the measures that are shown, of [`Profile::measures`](crate::Profile::measures); empty: samples, with percentages of
    /// [`percent_of`](Self::percent_of).
    pub measures: Vec<String>,
    /// What percentages and the order of rows are of, where samples are shown.
    pub percent_of: PercentOf,
    /// How text is made shorter.
    pub text: TextLimits,
}

/// How text is made to fit a terminal. The default shortens nothing; JSON and CSV are always whole.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TextLimits {
    /// Columns of the terminal. In wider tables names lose parts of them.
    pub width: Option<usize>,
    /// Whether what takes much stands out in colour.
    pub colour: bool,
    /// Rows whose total is below so many percent are one line with their number and their sum.
    pub fold_below: f64,
    /// At most so many entries of [`EventSummary::missing`](crate::EventSummary::missing), those with the most samples.
    pub missing: Option<usize>,
}

impl TextLimits {
    /// Whether the lines of a table are long enough for the images' names beside other ones.
    pub(crate) fn has_room_for_images(&self) -> bool {
        self.width.is_none_or(|width| width >= 120)
    }
}

/// A table of a report. A table is a file in `views/` and a line in the list of tables there.
#[derive(Debug)]
pub struct ReportTable {
    /// Its name on the command line.
    pub name: &'static str,
    /// Other names on the command line.
    pub aliases: &'static [&'static str],
    /// What its rows are, for help texts.
    pub about: &'static str,
    /// How it is chosen.
    pub choice: TableChoice,
    /// What its rows are in JSON.
    pub rows: &'static str,
    /// What a profile needs for it.
    pub needs: &'static [TableNeed],
    /// What rows are groups of, where several events can stand side by side and sessions can be compared.
    pub group: Option<GroupBy>,
    /// The names of the measures that it shows if none are named; empty: samples.
    pub measures: &'static [&'static str],
}

/// How a table is chosen on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableChoice {
    /// `--by NAME`.
    ByName,
    /// The same; help texts do not list it.
    Hidden,
    /// It has an option of its own, or is what is shown without one.
    OwnOption,
}

/// What a table needs of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableNeed {
    /// Source lines: [`NameOptions::lines`](crate::NameOptions::lines).
    Lines,
    /// Functions that were compiled into their callers as frames: [`NameOptions::inlined`](crate::NameOptions::inlined).
    Inlined,
    /// [`Options::sampled_frames`](crate::Options::sampled_frames).
    SampledFrames,
    /// It has all events: for each event alone it would be the same again.
    AllEvents,
}

impl ReportTable {
    /// Returns true if it needs this of a profile.
    #[must_use]
    pub fn needs(&self, need: TableNeed) -> bool {
        self.needs.contains(&need)
    }
}

/// Tables are the same if they have the same name.
impl PartialEq for ReportTable {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ReportTable {}

/// What the rows of a table are sorted by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RowOrder {
    /// What they took by themselves, the most first.
    #[default]
    Own,
    /// What they took with what they called, the most first.
    Total,
    /// Their layers and names.
    Name,
}

/// What a tree of stacks begins with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TreeDirection {
    /// The outermost frames; below a function what it called.
    #[default]
    TopDown,
    /// Leaves; below a function who called it.
    BottomUp,
}

/// What a row of a table is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
    /// A dex file, library, or kernel module.
    Image,
    /// A method or function.
    Symbol,
    /// A line of a method or function; known if [`NameOptions::lines`](crate::NameOptions::lines) is set.
    Line,
    /// A thread under one of its names, in one of its services.
    Thread,
    /// A process.
    Process,
    /// A service: a set of processes.
    Service,
    /// A layer.
    Layer,
}

impl GroupBy {
    /// Its name on the command line and in JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Symbol => "symbol",
            Self::Line => "line",
            Self::Thread => "thread",
            Self::Process => "process",
            Self::Service => "service",
            Self::Layer => "layer",
        }
    }
}

/// What percentages are of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PercentOf {
    /// The sum of the samples' periods, as perf has it: right however the rate varied.
    #[default]
    Period,
    /// The number of samples, as OProfile has it.
    Samples,
}

impl PercentOf {
    /// Its name in JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Period => "period",
            Self::Samples => "samples",
        }
    }
}
