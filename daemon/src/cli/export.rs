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
    /// Which viewer it is for [default: what the end of FILE's name says].
    #[arg(short, long, value_enum)]
    pub format: Option<ExportFormatArg>,
    /// Where it is written; -: standard output.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
    /// Samples of this event of the session, with or without its modifiers [default: the first; of html all].
    #[arg(short, long, value_name = "EVENT")]
    pub event: Option<String>,
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
    #[command(flatten)]
    pub samples: SampleArgs,
    #[command(flatten)]
    pub names: NameArgs,
}

/// Ends of names that only one format's files have.
const ENDS: [(&str, ExportFormatArg); 11] = [
    (".svg", ExportFormatArg::Flamegraph),
    (".html", ExportFormatArg::Html),
    (".folded", ExportFormatArg::Folded),
    (".collapsed", ExportFormatArg::Folded),
    (".pb.gz", ExportFormatArg::Pprof),
    (".pprof", ExportFormatArg::Pprof),
    (".speedscope.json", ExportFormatArg::Speedscope),
    (".jsonl", ExportFormatArg::Jsonl),
    (".dot", ExportFormatArg::Dot),
    (".perfetto-trace", ExportFormatArg::Perfetto),
    (".pftrace", ExportFormatArg::Perfetto),
];

impl ExportArgs {
    /// The format that is named, or that the file's name ends with; the error is for the user.
    pub fn format(&self) -> Result<ExportFormatArg, String> {
        let name = self.output.to_string_lossy();
        let by_name = ENDS.iter().find(|(end, _)| name.ends_with(*end));
        let format = self.format.or(by_name.map(|(_, format)| *format));
        format.ok_or_else(|| {
            let ends = ENDS.map(|(end, _)| end).join(", ");
            format!("which format? -f names it, or an -o FILE that ends in one of {ends}")
        })
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ExportFormatArg {
    /// Folded stacks, a line for each: flamegraph.pl, inferno, speedscope.
    Folded,
    /// A flame graph in SVG; a browser zooms and searches in it.
    #[value(alias = "svg")]
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
