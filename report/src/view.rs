//! Which part of a profile is shown?

use varid_model::Layer;

use crate::{
    name_pattern::NamePattern,
    weights::{EventId, SampleWeight},
};

/// What to show. The default is everything of the first event: layers, images and symbols.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct View {
    /// Whose samples; none: the first of [`Profile::events`](crate::Profile::events).
    pub event: Option<EventId>,
    /// The table.
    pub table: ReportTable,
    /// Only rows of this layer; of tables whose rows are no code only samples whose leaf is of it. Percentages stay those of the whole profile.
    pub layer: Option<Layer>,
    /// Only symbols with a matching name; of tables whose rows are no symbols only samples whose leaf has one. Percentages stay those of the whole profile.
    pub symbol: Option<NamePattern>,
    /// What rows are sorted by.
    pub order: RowOrder,
    /// At most so many rows.
    pub limit: Option<usize>,
    /// Only rows whose total has at least so many percent, of counted calls whose calls are so many of
    /// all; in call graphs, also only callers and callees that have so many percent of their method's total;
    /// in trees only branches of so many percent.
    pub min_percent: f64,
    /// What percentages and the order of rows are of.
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

/// What a view's rows are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReportTable {
    /// Layers, then images, then symbols; in JSON and CSV the rows are the symbols.
    #[default]
    Overview,
    /// One table.
    By(GroupBy),
    /// One table with the shares of all events.
    SideBySide(GroupBy),
    /// Symbols with their callers and callees.
    Callgraph,
    /// The profile's events side by side.
    Events,
    /// Whole stacks as a tree.
    Tree(TreeDirection),
    /// The frames in which threads were sampled; known if [`Options::sampled_frames`](crate::Options::sampled_frames) is set.
    SampledFrames,
}

/// What the rows of a table are sorted by; those of counted calls are by these.
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

impl TreeDirection {
    /// Its name in JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::TopDown => "tree",
            Self::BottomUp => "tree-bottom-up",
        }
    }
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
    /// A method whose calls were counted, those that were called most first.
    Calls,
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
            Self::Calls => "calls",
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

    pub(crate) const fn value(self, weight: SampleWeight) -> u64 {
        match self {
            Self::Period => weight.period(),
            Self::Samples => weight.samples(),
        }
    }
}
