//! The arguments of `varid estimate`.

use super::selection::InputArgs;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;
use varid_session::config::units;

/// `varid estimate`.
#[derive(Debug, Args)]
pub struct EstimateArgs {
    #[command(flatten)]
    pub input: InputArgs,
    /// The machine: a target of varid, or a file that describes one. --targets lists them.
    #[arg(long, value_name = "NAME|FILE", required_unless_present = "targets")]
    pub target: Option<String>,
    /// List the targets that varid has.
    #[arg(long, conflicts_with_all = ["target", "set", "sweep", "within", "assume_cache", "opcodes", "measured", "output"])]
    pub targets: bool,
    /// Replace a value of the target, such as method_cache.size=2K. May be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Compare values of a target's method cache, such as method_cache.size=1K,2K,4K. Several are combined with each other. Needs a session of
    /// 'varid exact --call-order'.
    #[arg(long, value_name = "KEY=VALUE,VALUE", conflicts_with = "assume_cache")]
    pub sweep: Vec<String>,
    /// Price only the calls of this method, with all that they call: org.example.App.step, with its types behind it if it is overloaded.
    #[arg(long, value_name = "METHOD")]
    pub within: Option<String>,
    /// Assume that the method cache always has the code, or never, whatever the order of calls was.
    #[arg(long, value_enum)]
    pub assume_cache: Option<AssumedCache>,
    /// List what the executions of each opcode cost.
    #[arg(long)]
    pub opcodes: bool,
    /// What the priced calls took when they were measured, such as 12.3ms: says by how much the estimate differs. Needs a target in
    /// nanoseconds, such as a table of 'varid calibrate'.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub measured: Option<Duration>,
    /// How the result is printed.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = SummaryFormat::Text)]
    pub summary: SummaryFormat,
    /// Write a session with the costs as a measure of all views and exports into this new folder.
    #[arg(short, long, value_name = "SESSION")]
    pub output: Option<PathBuf>,
    /// Java's class files are in these folders and archives, written as for java [default: those in the session, the recorded class path].
    #[arg(long, value_name = "PATH")]
    pub class_path: Vec<String>,
}

/// What is assumed of the method cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AssumedCache {
    /// It always has the code.
    Hit,
    /// It never has the code.
    Miss,
}

/// How a summary is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SummaryFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}
