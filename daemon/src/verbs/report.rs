//! `varid report`: what a session says.

use super::{out, pager};
use crate::paths;
use anyhow::Context;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;
use varid_model::Layer;
use varid_recording::SessionReader;
use varid_report::{
    By, Fit, Format, Names, Options, Pattern, PercentOf, Profile, Table, View, render,
};

/// `varid report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The session, by folder or by name [default: the last one].
    #[arg(value_name = "SESSION")]
    session: Option<PathBuf>,
    /// The same, as perf takes it: a folder, its perf.data, or a name.
    #[arg(short, long, value_name = "SESSION", conflicts_with = "session")]
    input: Option<PathBuf>,
    /// One table [default: layers, then symbols].
    #[arg(long, value_enum, conflicts_with = "callgraph")]
    by: Option<ByArg>,
    /// Callers above, the method, callees below, each with its share.
    #[arg(long)]
    callgraph: bool,
    /// Only rows of this layer.
    #[arg(long, value_enum)]
    layer: Option<LayerArg>,
    /// Only symbols that match; * stands for anything.
    #[arg(long, value_name = "PATTERN")]
    symbol: Option<String>,
    /// Only this event of the session, with or without its modifiers [default: one after the
    /// other; of JSON and CSV the first].
    #[arg(short, long, value_name = "EVENT")]
    event: Option<String>,
    /// Only samples of this process.
    #[arg(long)]
    pid: Option<u32>,
    /// Only samples of this thread.
    #[arg(long)]
    tid: Option<u32>,
    /// Only samples of threads whose name matches.
    #[arg(long, value_name = "PATTERN")]
    thread: Option<String>,
    /// At most so many rows of a table.
    #[arg(long, value_name = "ROWS")]
    limit: Option<usize>,
    /// Only rows of at least this share; with --by calls, of all calls.
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    min_percent: f64,
    /// Functions that were compiled into their callers count for these; faster.
    #[arg(long)]
    no_inline: bool,
    /// Recorded files are below DIR, laid out as the recorded machine's file system.
    #[arg(long, value_name = "DIR")]
    symfs: Option<PathBuf>,
    /// Recorded files, or their debug information, are somewhere below DIR; found by build-id. May be repeated.
    #[arg(long, value_name = "DIR")]
    symbols: Vec<PathBuf>,
    /// The recorded kernel's vmlinux, with debug information [default: the system's].
    #[arg(long, value_name = "FILE")]
    vmlinux: Option<PathBuf>,
    /// What R8 or ProGuard renamed in the app: its mapping.txt.
    #[arg(long, value_name = "FILE")]
    mapping: Option<PathBuf>,
    /// Shares of the samples, not of the event's counts between them.
    #[arg(long)]
    by_samples: bool,
    /// On a terminal: whole names, however wide the lines get.
    #[arg(long)]
    wide: bool,
    /// On a terminal: small rows and all that is missing, too.
    #[arg(long)]
    all_rows: bool,
    /// For people or for programs.
    #[arg(long, value_enum, default_value_t = FormatArg::Text)]
    format: FormatArg,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ByArg {
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
enum LayerArg {
    App,
    Framework,
    Vm,
    Native,
    Kernel,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FormatArg {
    Text,
    Json,
    Csv,
}

/// On a terminal, rows below so many percent are one line.
const FOLD_BELOW: f64 = 0.5;
/// On a terminal, so many of the files that are missing are named.
const MISSING: usize = 3;

/// Prints the report.
pub fn run(args: ReportArgs) -> anyhow::Result<ExitCode> {
    let folder = match args.session.as_ref().or(args.input.as_ref()) {
        Some(named) => paths::session(named),
        None => paths::last_session()
            .context("there is no session yet: 'varid record' or 'varid start' makes one")?,
    };
    if matches!(args.by, Some(ByArg::Calls)) && (args.tid.is_some() || args.thread.is_some()) {
        anyhow::bail!(
            "calls are counted for whole processes: choose by --pid, not --tid or --thread"
        );
    }
    let session = SessionReader::open(&folder)?;
    let table = match (args.by, args.callgraph) {
        (_, true) => Table::Callgraph,
        (Some(by), _) => by.into(),
        (None, false) => Table::Overview,
    };
    let dim = table == Table::Dim;
    let lines = dim || table == Table::By(By::Line);
    let options = Options {
        event: args.event,
        pid: args.pid,
        tid: args.tid,
        thread: args.thread.map(Pattern::new),
        names: Names {
            symfs: args.symfs,
            symbols: args.symbols,
            kept: Some(paths::device_symbols()),
            mapping: args.mapping,
            vmlinux: args.vmlinux,
            // Debug information is read only for views that show it.
            inlined: !args.no_inline && !dim && (lines || table == Table::Callgraph),
            lines,
        },
        dim,
    };
    let profiles = Profile::of_every_event(&session, &options)?;
    let format = match args.format {
        FormatArg::Text => Format::Text,
        FormatArg::Json => Format::Json,
        FormatArg::Csv => Format::Csv,
    };
    // Only people have a terminal; a pipe gets all of it.
    let terminal = (format == Format::Text).then(pager::columns).flatten();
    let view = View {
        table,
        layer: args.layer.map(Layer::from),
        symbol: args.symbol.map(Pattern::new),
        limit: args.limit,
        min_percent: args.min_percent,
        percent_of: if args.by_samples {
            PercentOf::Samples
        } else {
            PercentOf::Period
        },
        fit: terminal.map_or_else(Fit::default, |columns| Fit {
            width: (!args.wide).then_some(columns),
            // Who names a bound has the rows above it.
            fold_below: if args.all_rows || args.min_percent > 0.0 {
                0.0
            } else {
                FOLD_BELOW
            },
            missing: (!args.all_rows).then_some(MISSING),
        }),
    };
    let mut text = Vec::new();
    let shown = match format {
        Format::Text => profiles.len(),
        // For programs one document is one event.
        Format::Json | Format::Csv => 1,
    };
    for profile in profiles.iter().take(shown) {
        if !text.is_empty() {
            text.extend(b"\n");
        }
        render(profile, &view, format, &mut text)?;
    }
    match terminal {
        Some(_) => pager::show(&text)?,
        None => out::bytes(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}

impl From<ByArg> for Table {
    fn from(by: ByArg) -> Self {
        Table::By(match by {
            ByArg::Image => By::Image,
            ByArg::Symbol => By::Symbol,
            ByArg::Line => By::Line,
            ByArg::Thread => By::Thread,
            ByArg::Process => By::Process,
            ByArg::Service => By::Service,
            ByArg::Layer => By::Layer,
            ByArg::Calls => By::Calls,
            ByArg::Dim => return Table::Dim,
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
