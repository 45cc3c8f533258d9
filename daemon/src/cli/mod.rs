//! The command line.

#[cfg(feature = "host")]
mod annotate;
#[cfg(feature = "host")]
pub mod arguments;
#[cfg(feature = "host")]
mod calibrate;
#[cfg(feature = "host")]
mod compress;
#[cfg(feature = "host")]
mod diff;
#[cfg(feature = "host")]
mod estimate;
#[cfg(feature = "host")]
mod exact;
mod examples;
#[cfg(feature = "host")]
mod export;
#[cfg(feature = "host")]
mod habits;
#[cfg(feature = "host")]
mod import;
#[cfg(feature = "host")]
mod manual;
#[cfg(feature = "host")]
mod metrics;
#[cfg(feature = "host")]
mod pack;
#[cfg(feature = "host")]
mod report;
#[cfg(feature = "host")]
pub mod selection;
mod session;
#[cfg(feature = "host")]
mod symbols;
#[cfg(feature = "host")]
mod top;
#[cfg(feature = "host")]
mod values;

#[cfg(feature = "host")]
pub use annotate::{AnnotateArgs, AnnotateFormatArg};
#[cfg(feature = "host")]
pub use calibrate::{CalibrateArgs, VmArg};
#[cfg(feature = "host")]
pub use compress::CompressArgs;
#[cfg(feature = "host")]
pub use diff::{DiffArgs, Sides};
#[cfg(feature = "host")]
pub use estimate::{AssumedCache, EstimateArgs, ProgramArgs, SummaryFormat};
#[cfg(feature = "host")]
pub use exact::{ExactArgs, IntrinsicsArg, SwitchArg};
#[cfg(feature = "host")]
pub use export::ExportArgs;
#[cfg(feature = "host")]
pub use import::ImportArgs;
#[cfg(feature = "host")]
pub use manual::{HelpArgs, ShellArg};
#[cfg(feature = "host")]
pub use metrics::MetricsArgs;
#[cfg(feature = "host")]
pub use pack::PackArgs;
#[cfg(feature = "host")]
pub use report::ReportArgs;
#[cfg(feature = "host")]
pub use session::TargetArgs;
pub use session::{RecordArgs, SessionArgs};
#[cfg(feature = "host")]
pub use symbols::SymbolsArgs;
#[cfg(feature = "host")]
pub use top::TopArgs;
#[cfg(feature = "host")]
pub use values::Values;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, CommandFactory, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// The name of the program.
pub const PROGRAM: &str = "varid";

/// The heading of the options that every verb has, after its own.
const GLOBAL: &str = "Global options";

/// One profile from the app's methods through the VM and native libraries to the kernel.
#[derive(Debug, Parser)]
#[command(name = PROGRAM, version, propagate_version = true, after_long_help = PLACES)]
#[cfg_attr(feature = "host", command(disable_help_subcommand = true))]
pub struct Cli {
    /// Say more of what is going on; twice: everything.
    #[arg(short, long, global = true, help_heading = GLOBAL, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Say only what went wrong.
    #[arg(short, long, global = true, help_heading = GLOBAL, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Do it on the device of this serial, or the only one that adb sees, and pull what is recorded there.
    #[cfg(feature = "host")]
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "SERIAL", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub adb: Option<String>,
    /// With --adb: while something is recorded there SELinux denies nothing. Needs root there.
    #[cfg(feature = "host")]
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub permissive: bool,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// Returns the parsed command line of this process. Ends the process if it is invalid.
pub fn matches() -> ArgMatches {
    #[cfg(feature = "host")]
    let matches = {
        let line = habits::read(std::env::args_os());
        let matches = Cli::command().try_get_matches_from(line);
        matches.unwrap_or_else(|error| match habits::tip(&error) {
            Some(tip) => bad_usage(PROGRAM, tip),
            None => error.exit(),
        })
    };
    #[cfg(not(feature = "host"))]
    let matches = Cli::command().get_matches();
    matches
}

/// Prints the usage of a verb, or of [`PROGRAM`], and ends with exit code 2. For errors that clap cannot detect.
pub fn bad_usage(verb: &str, reason: &str) -> ! {
    let mut program = Cli::command();
    program.build();
    let kind = ErrorKind::MissingRequiredArgument;
    let error = match program.find_subcommand_mut(verb) {
        Some(verb) => verb.error(kind, reason),
        None => program.error(kind, reason),
    };
    error.exit()
}

/// The places of files, at the end of `--help`.
const PLACES: &str = "\
Places:
  Sessions are in $XDG_STATE_HOME/varid (root: /var/lib/varid), the daemon's socket and log in
  $XDG_RUNTIME_DIR/varid (root: /run/varid); on a device all is below /data/local/tmp/varid
  (root: /data/local/varid, where the other one is below another user's folder).
  VARID_HOME=DIR puts all of it below DIR: sessions in DIR/sessions, socket and log in DIR/run.

Exit codes:
  0, 1 for a failure with a one-line reason, 2 for bad usage. 'varid record COMMAND' ends with the
  command's own code, 128 + N if signal N ended it, 127 if there is no such command, 126 if it cannot be
  executed, 125 for a failure of varid itself; 0 if a signal or --duration ended the recording.
  'varid diff --fail-if-slower' ends with 3 if B is slower than A by more than it allows.";

/// What varid can be asked for.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Profile an app, a process or everything until 'varid stop'.
    #[command(after_help = examples::START)]
    Start(SessionArgs),
    /// End sessions, wait until they are complete, say where they are.
    #[command(after_help = examples::STOP)]
    Stop {
        /// Name, folder or target of one session [default: all that run].
        session: Option<String>,
    },
    /// Show the sessions that run.
    #[command(after_help = examples::STATUS)]
    Status(FormatArgs),
    /// List what has been recorded, newest last.
    #[command(aliases = ["list", "ls"], after_help = examples::SESSIONS)]
    Sessions(FormatArgs),
    /// Launch a command, profile it until it ends, keep the recording.
    #[command(after_help = examples::RECORD)]
    Record(RecordArgs),
    /// Launch a Java program and count each call of each method by its calling context; no samples.
    #[cfg(feature = "host")]
    #[command(after_help = examples::EXACT)]
    Exact(ExactArgs),
    /// Measure what each bytecode costs on a VM of this machine, with intervals.
    #[cfg(feature = "host")]
    #[command(after_help = examples::CALIBRATE)]
    Calibrate(CalibrateArgs),
    /// Copy a session from the device that --adb names; it becomes the last one here.
    #[cfg(feature = "host")]
    #[command(after_help = examples::PULL)]
    Pull {
        /// Its name or folder there [default: the last one that has ended].
        session: Option<String>,
        /// Its folder here [default: the same name among the sessions].
        #[arg(short, long, value_name = "SESSION")]
        output: Option<PathBuf>,
    },
    /// Watch what runs while it is recorded: hottest methods, their lines, threads.
    #[cfg(feature = "host")]
    #[command(after_help = examples::TOP)]
    Top(TopArgs),
    /// Print a session: layers, images, symbols, or another table, or the call graph.
    #[cfg(feature = "host")]
    #[command(after_help = examples::REPORT)]
    Report(ReportArgs),
    /// Print the source lines and instructions of a method with their samples.
    #[cfg(feature = "host")]
    #[command(after_help = examples::ANNOTATE)]
    Annotate(Box<AnnotateArgs>),
    /// Estimate the cycles of another machine: of a session of 'varid exact --bytecodes', or of a program for RISC-V, which is executed here.
    #[cfg(feature = "host")]
    #[command(after_help = examples::ESTIMATE)]
    Estimate(Box<EstimateArgs>),
    /// Print dynamic metrics of a session of 'varid exact': opcodes, call sites, methods, depths, contexts.
    #[cfg(feature = "host")]
    #[command(after_help = examples::METRICS)]
    Metrics(MetricsArgs),
    /// Compare sessions: which code took more or less, and whether that is more than chance.
    #[cfg(feature = "host")]
    #[command(after_help = examples::DIFF)]
    Diff(Box<DiffArgs>),
    /// Write a session for another viewer: flame graph, pprof, Firefox Profiler and others.
    #[cfg(feature = "host")]
    #[command(after_help = examples::EXPORT)]
    Export(ExportArgs),
    /// Make a session of another profiler's recording: perf.data of perf and simpleperf, JFR, 'perf script', folded stacks.
    #[cfg(feature = "host")]
    #[command(after_help = examples::IMPORT)]
    Import(ImportArgs),
    /// Compress what has been recorded, or undo it.
    #[cfg(feature = "host")]
    #[command(after_help = examples::COMPRESS)]
    Compress(CompressArgs),
    /// Put a session into one file, with the symbols of the recorded files that this machine has: another machine reports it by its name.
    #[cfg(feature = "host")]
    #[command(after_help = examples::PACK)]
    Pack(PackArgs),
    /// List the functions of dex, APK and ELF files with their lines, name addresses, or write substitute ELF files.
    #[cfg(feature = "host")]
    #[command(after_help = examples::SYMBOLS)]
    Symbols(SymbolsArgs),
    /// Try which events this machine counts and samples.
    #[command(after_help = examples::EVENTS)]
    Events(FormatArgs),
    /// Check a configuration file, or show what a session would be asked for.
    #[command(subcommand, disable_help_subcommand = true, after_help = examples::CONFIG)]
    Config(ConfigVerb),
    /// Tell what this machine offers, what varid will use and why, and what would help.
    #[command(after_help = examples::DOCTOR)]
    Doctor(FormatArgs),
    /// Serve 'start', 'stop' and 'status' until a signal comes; 'start' does this by itself.
    #[command(after_help = examples::DAEMON)]
    Daemon {
        /// As 'start' brings it up: in a session of its own, until nothing is left to do.
        #[arg(long, hide = true)]
        background: bool,
    },
    /// Print what makes a shell complete varid's command line.
    #[cfg(feature = "host")]
    #[command(after_help = examples::COMPLETIONS)]
    Completions {
        /// Which shell.
        #[arg(value_enum)]
        shell: ShellArg,
    },
    /// Print the values that a shell offers.
    #[cfg(feature = "host")]
    #[command(hide = true)]
    Complete {
        /// Which.
        #[arg(value_enum)]
        values: Values,
    },
    /// Write the manual's pages.
    #[cfg(feature = "host")]
    #[command(hide = true)]
    ManPages {
        /// Into this folder.
        folder: PathBuf,
    },
    /// Print the help of a verb, or a guide.
    #[cfg(feature = "host")]
    #[command(after_help = examples::HELP)]
    Help(HelpArgs),
    /// Wait for a byte on a socket, then become a command.
    #[command(hide = true)]
    Launch {
        /// The socket's descriptor.
        fd: i32,
        /// The command.
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
}

/// `varid config`.
#[derive(Debug, Subcommand)]
pub enum ConfigVerb {
    /// Say what is wrong with a file, by line and column; exit code 2 if anything is. That this
    /// machine has no such event is a note: the file may be another's.
    Check {
        /// Events that this machine does not have are wrong, too.
        #[arg(long)]
        here: bool,
        /// The file.
        file: PathBuf,
    },
    /// Print what 'start' with these options would ask for, as a configuration file.
    Show(Box<SessionArgs>),
}

/// How something is shown.
#[derive(Debug, Clone, Copy, Args)]
pub struct FormatArgs {
    /// For programs.
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// The help of each verb has one example, which is a valid command line.
    #[cfg(feature = "host")]
    #[test]
    fn each_verb_has_an_example_that_is_a_command_line() {
        let mut program = Cli::command();
        program.build();
        for verb in program.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let help = verb.clone().render_long_help().to_string();
            let example = help.split("Example:\n").nth(1);
            let example = example.unwrap_or_else(|| panic!("{}: {help}", verb.get_name()));
            let line: Vec<&str> = example.lines().next().unwrap().split_whitespace().collect();
            let words = line.iter().copied();
            assert!(
                words.clone().any(|word| word == verb.get_name()),
                "{line:?}"
            );
            let parsed = Cli::try_parse_from(words);
            assert!(parsed.is_ok(), "{line:?}: {}", parsed.unwrap_err());
        }
    }
}
