//! The arguments of `varid export`.

use super::selection::{InputArgs, NameArgs, SampleArgs};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use varid_report::ExportFormat;

/// `varid export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    #[command(flatten)]
    pub input: InputArgs,
    /// Which viewer it is for.
    #[arg(short, long, value_enum)]
    pub format: ExportFormatArg,
    /// Where it is written; -: standard output.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
    /// Samples of this event of the session, with or without its modifiers [default: the first; of html all].
    #[arg(short, long, value_name = "EVENT")]
    pub event: Option<String>,
    #[command(flatten)]
    pub samples: SampleArgs,
    #[command(flatten)]
    pub names: NameArgs,
    /// No source lines; faster.
    #[arg(long)]
    pub no_lines: bool,
    /// Of html: the sources that it shows are in this folder, or in this archive (jar, zip, apk). May be repeated.
    #[arg(long, value_name = "DIR|JAR|APK", visible_alias = "source")]
    pub source_path: Vec<PathBuf>,
    /// Of html: no sources and no instructions; faster.
    #[arg(long, conflicts_with = "source_path")]
    pub no_code: bool,
    /// Stacks weigh their samples, not the event's counts between them.
    #[arg(long)]
    pub by_samples: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ExportFormatArg {
    /// Folded stacks, a line for each: flamegraph.pl, inferno, speedscope.
    Folded,
    /// A flame graph in SVG; a browser zooms and searches in it.
    Flamegraph,
    /// A page with all views, for any browser, without network.
    Html,
    /// pprof's protobuf, compressed: go tool pprof.
    Pprof,
    /// The Firefox Profiler's JSON: profiler.firefox.com.
    Firefox,
    /// speedscope's JSON: speedscope.app.
    Speedscope,
    /// JSON Lines: a sample a line.
    Jsonl,
    /// KCachegrind, callgrind_annotate.
    Callgrind,
    /// A call graph for graphviz.
    Dot,
    /// Trace events by time: chrome://tracing, Perfetto.
    Chrome,
    /// Perfetto's protobuf: ui.perfetto.dev.
    Perfetto,
    /// OpenTelemetry's profiles, a schema in development.
    Otlp,
}

impl From<ExportFormatArg> for ExportFormat {
    fn from(format: ExportFormatArg) -> Self {
        match format {
            ExportFormatArg::Folded => Self::Folded,
            ExportFormatArg::Flamegraph => Self::Flamegraph,
            ExportFormatArg::Html => Self::Html,
            ExportFormatArg::Pprof => Self::Pprof,
            ExportFormatArg::Firefox => Self::Firefox,
            ExportFormatArg::Speedscope => Self::Speedscope,
            ExportFormatArg::Jsonl => Self::JsonLines,
            ExportFormatArg::Callgrind => Self::Callgrind,
            ExportFormatArg::Dot => Self::Dot,
            ExportFormatArg::Chrome => Self::Chrome,
            ExportFormatArg::Perfetto => Self::Perfetto,
            ExportFormatArg::Otlp => Self::Otlp,
        }
    }
}
