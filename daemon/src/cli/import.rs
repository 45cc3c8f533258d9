//! The arguments of `varid import`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;
use varid_import::SourceFormat;

/// `varid import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The recording, also compressed with gzip or zstd; -: standard input.
    pub file: PathBuf,
    /// The session's folder [default: a new one among the sessions].
    #[arg(short, long, value_name = "SESSION")]
    pub output: Option<PathBuf>,
    /// What the file is [default: found by its content].
    #[arg(short, long, value_enum)]
    pub format: Option<SourceFormatArg>,
    /// Do not take the names that simpleperf has written down: those of files are taken, with lines and inlined functions, as
    /// 'varid report --symfs' and '--symbols' find them.
    #[arg(long)]
    pub without_names: bool,
    /// The first entry of a folded stack is a frame, not the thread's name.
    #[arg(long)]
    pub first_is_frame: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum SourceFormatArg {
    /// perf.data of perf or simpleperf.
    PerfData,
    /// What 'perf script' prints.
    PerfScript,
    /// Folded stacks, a line for each: of stackcollapse scripts, async-profiler, 'varid export'.
    Folded,
}

impl From<SourceFormatArg> for SourceFormat {
    fn from(format: SourceFormatArg) -> Self {
        match format {
            SourceFormatArg::PerfData => Self::PerfData,
            SourceFormatArg::PerfScript => Self::PerfScript,
            SourceFormatArg::Folded => Self::Folded,
        }
    }
}
