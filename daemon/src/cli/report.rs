//! The arguments of `varid report`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;
use varid_model::Layer;
use varid_report::{GroupBy, ReportTable};

/// `varid report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The session, by folder or by name [default: the last one].
    #[arg(value_name = "SESSION")]
    pub session: Option<PathBuf>,
    /// The same, as perf takes it: a folder, its perf.data, or a name.
    #[arg(short, long, value_name = "SESSION", conflicts_with = "session")]
    pub input: Option<PathBuf>,
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
    /// Only samples of this process.
    #[arg(long)]
    pub pid: Option<u32>,
    /// Only samples of this thread.
    #[arg(long)]
    pub tid: Option<u32>,
    /// Only samples of threads whose name matches.
    #[arg(long, value_name = "PATTERN")]
    pub thread: Option<String>,
    /// At most so many rows of a table.
    #[arg(long, value_name = "ROWS")]
    pub limit: Option<usize>,
    /// Only rows of at least this share; with --by calls, of all calls.
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    pub min_percent: f64,
    /// Functions that were compiled into their callers count for these; faster.
    #[arg(long)]
    pub no_inline: bool,
    /// Recorded files are below DIR, laid out as the recorded machine's file system.
    #[arg(long, value_name = "DIR")]
    pub symfs: Option<PathBuf>,
    /// Recorded files, or their debug information, are somewhere below DIR; found by build-id. May be repeated.
    #[arg(long, value_name = "DIR")]
    pub symbols: Vec<PathBuf>,
    /// The recorded kernel's vmlinux, with debug information [default: the system's].
    #[arg(long, value_name = "FILE")]
    pub vmlinux: Option<PathBuf>,
    /// What R8 or ProGuard renamed in the app: its mapping.txt.
    #[arg(long, value_name = "FILE")]
    pub mapping: Option<PathBuf>,
    /// Shares of the samples, not of the event's counts between them.
    #[arg(long)]
    pub by_samples: bool,
    /// On a terminal: whole names, however wide the lines get.
    #[arg(long)]
    pub wide: bool,
    /// On a terminal: small rows and all that is missing, too.
    #[arg(long)]
    pub all_rows: bool,
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
