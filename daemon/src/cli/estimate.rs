//! The arguments of `varid estimate`.

use super::exact::parse_bytes;
use super::selection::InputArgs;
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// `varid estimate`.
#[derive(Debug, Args)]
pub struct EstimateArgs {
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub program: ProgramArgs,
    /// The machine: a target of varid, or a file that describes one. --targets lists them.
    #[arg(long, value_name = "NAME|FILE", required_unless_present = "targets")]
    pub target: Option<String>,
    /// List the targets that varid has.
    #[arg(long, conflicts_with_all = ["target", "set", "sweep", "within", "assume_cache", "output"])]
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

/// What a program gets, where one is executed instead of reading a session.
#[derive(Debug, Args)]
pub struct ProgramArgs {
    /// The arguments of the program, if SESSION is the ELF file of one.
    #[arg(
        value_name = "ARGS",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        conflicts_with = "input"
    )]
    pub arguments: Vec<OsString>,
    /// End the program after this many instructions.
    #[arg(long, value_name = "INSTRUCTIONS")]
    pub limit: Option<u64>,
    /// The program's memory behind its segments, for heap and stack.
    #[arg(long, value_name = "SIZE", value_parser = memory, default_value = "64M")]
    pub memory: u32,
    /// The folder with the files that the program may open. Without it, it can open none.
    #[arg(long, value_name = "FOLDER")]
    pub files: Option<PathBuf>,
    /// The frequency of the processor in Hz: the program's clock follows its cycles.
    #[arg(long, value_name = "HZ", default_value_t = 100_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub clock: u64,
}

/// Parses a size of memory.
fn memory(text: &str) -> Result<u32, String> {
    let bytes = parse_bytes(text)?;
    let bytes = u32::try_from(bytes).ok().filter(|bytes| *bytes >= 4096);
    bytes.ok_or_else(|| "from 4K to less than 4G".to_owned())
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
