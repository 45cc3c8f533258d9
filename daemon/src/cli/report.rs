//! The arguments of `varid report`.

use super::selection::{InputArgs, NameArgs, SampleArgs};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use varid_model::Layer;
use varid_report::{GroupBy, ReportTable};

/// `varid report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    #[command(flatten)]
    pub input: InputArgs,
    /// One table [default: layers, then symbols].
    #[arg(long, value_enum, conflicts_with = "callgraph")]
    pub by: Option<ByArg>,
    /// Callers above, the method, callees below, each with its share.
    #[arg(long)]
    pub callgraph: bool,
    /// Only rows of this layer.
    #[arg(long, value_enum)]
    pub layer: Option<LayerArg>,
    /// Only symbols that match; * stands for anything.
    #[arg(long, value_name = "PATTERN")]
    pub symbol: Option<String>,
    /// Only this event of the session, with or without its modifiers [default: one after the
    /// other; of JSON and CSV the first].
    #[arg(short, long, value_name = "EVENT")]
    pub event: Option<String>,
    #[command(flatten)]
    pub samples: SampleArgs,
    /// At most so many rows of a table.
    #[arg(long, value_name = "ROWS")]
    pub limit: Option<usize>,
    /// Only rows of at least this share; with --by calls, of all calls.
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    pub min_percent: f64,
    #[command(flatten)]
    pub names: NameArgs,
    /// Shares of the samples, not of the event's counts between them.
    #[arg(long)]
    pub by_samples: bool,
    /// On a terminal: whole names, however wide the lines get.
    #[arg(long)]
    pub wide: bool,
    /// On a terminal: small rows and all that is missing, too.
    #[arg(long)]
    pub all_rows: bool,
    /// A page with all views for a browser, into FILE; no text.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["by", "callgraph", "layer", "symbol", "limit", "min_percent", "format"])]
    pub html: Option<PathBuf>,
    /// For people or for programs.
    #[arg(long, value_enum, default_value_t = FormatArg::Text)]
    pub format: FormatArg,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ByArg {
    Image,
    Symbol,
    Line,
    Thread,
    Process,
    Service,
    Layer,
    Calls,
    /// The VM's frames that were sampled, with their addresses, threads and mappings; the paper's dim.
    #[value(name = "vm-frame", alias = "dim")]
    Dim,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum LayerArg {
    App,
    Framework,
    Vm,
    Native,
    Kernel,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum FormatArg {
    Text,
    Json,
    Csv,
}

impl From<ByArg> for ReportTable {
    fn from(by: ByArg) -> Self {
        ReportTable::By(match by {
            ByArg::Image => GroupBy::Image,
            ByArg::Symbol => GroupBy::Symbol,
            ByArg::Line => GroupBy::Line,
            ByArg::Thread => GroupBy::Thread,
            ByArg::Process => GroupBy::Process,
            ByArg::Service => GroupBy::Service,
            ByArg::Layer => GroupBy::Layer,
            ByArg::Calls => GroupBy::Calls,
            ByArg::Dim => return ReportTable::SampledFrames,
        })
    }
}

impl From<LayerArg> for Layer {
    fn from(layer: LayerArg) -> Self {
        match layer {
            LayerArg::App => Layer::App,
            LayerArg::Framework => Layer::Framework,
            LayerArg::Vm => Layer::Vm,
            LayerArg::Native => Layer::Native,
            LayerArg::Kernel => Layer::Kernel,
        }
    }
}
