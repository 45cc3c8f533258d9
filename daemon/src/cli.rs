//! The command line.

use crate::config::{
    Config, DURATIONS, FREQUENCIES, MethodPattern, PERIODS, ProcessPattern, units,
};
use crate::request::Configured;
use crate::sampler::ShimKind;
use crate::sampler::event::pmu::Pmu;
use crate::sampler::event::{Event, Group, Rate, Resolved, resolve};
use crate::sampler::interrupts::{dead_cpus, default_event, led_by_timer};
use crate::sampler::open::max_frequency;
use crate::session::{SessionOptions, TargetSpec};
#[cfg(feature = "host")]
use crate::verbs::{report::ReportArgs, symbols::SymbolsArgs};
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;
use varid_model::Stack;
use varid_recording::Tactic;

/// One profile from the app's methods through the VM and native libraries to the kernel.
#[derive(Debug, Parser)]
#[command(name = "varid", version, propagate_version = true, after_long_help = PLACES)]
pub struct Cli {
    /// Say more of what is going on; twice: everything.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Say only what went wrong.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Do it on the device of this serial, or the only one that adb sees, and pull what is recorded there.
    #[cfg(feature = "host")]
    #[arg(long, global = true, value_name = "SERIAL", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub adb: Option<String>,
    /// With --adb: while something is recorded there SELinux denies nothing. Needs root there.
    #[cfg(feature = "host")]
    #[arg(long, global = true)]
    pub permissive: bool,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What is missing where neither the command line nor a file says who is profiled.
pub const NOBODY: &str = "nothing to profile: --app, --service, --pid or --all is needed, or apps, services or all in the file that --config names";

/// Ends with the usage and exit code 2: what clap cannot see by itself.
pub fn bad_usage(reason: &str) -> ! {
    Cli::command()
        .error(clap::error::ErrorKind::MissingRequiredArgument, reason)
        .exit()
}

/// Where things are, at the end of `--help`.
const PLACES: &str = "\
Places:
  Sessions are in $XDG_STATE_HOME/varid (root: /var/lib/varid), the daemon's socket and log in
  $XDG_RUNTIME_DIR/varid (root: /run/varid); on a device all is below /data/local/tmp/varid
  (root: /data/local/varid, where the other one is below another user's folder).
  VARID_HOME=DIR puts all of it below DIR: sessions in DIR/sessions, socket and log in DIR/run.

Exit codes:
  0, 1 for a failure with a one-line reason, 2 for bad usage. 'varid record COMMAND' ends with the
  command's own code, 128 + N if signal N ended it, 127 if there is no such command, 126 if it cannot be
  executed, 125 for a failure of varid itself; 0 if a signal or --duration ended the recording.";

/// What varid can be asked for.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Profile an app, a process or everything until 'varid stop'.
    Start(StartArgs),
    /// End sessions, wait until they are complete, say where they are.
    Stop {
        /// Name, folder or target of one session [default: all that run].
        session: Option<String>,
    },
    /// Show the sessions that run.
    Status(FormatArgs),
    /// List what has been recorded, newest last.
    Sessions(FormatArgs),
    /// Launch a command, profile it until it ends, keep the recording.
    Record(RecordArgs),
    /// Copy a session from the device that --adb names; it becomes the last one here.
    #[cfg(feature = "host")]
    Pull {
        /// Its name or folder there [default: the last one that has ended].
        session: Option<String>,
        /// Its folder here [default: the same name among the sessions].
        #[arg(short, long, value_name = "SESSION")]
        output: Option<PathBuf>,
    },
    /// Print a session: layers, then symbols, or another table, or the call graph.
    #[cfg(feature = "host")]
    Report(ReportArgs),
    /// List the functions of dex, APK and ELF files with their lines, name addresses, or write substitute ELF files.
    #[cfg(feature = "host")]
    Symbols(SymbolsArgs),
    /// Try which events this machine counts and samples.
    Events(FormatArgs),
    /// Check a configuration file, or show what a session would be asked for.
    #[command(subcommand)]
    Config(ConfigVerb),
    /// Tell what this machine offers, what varid will use and why, and what would help.
    Doctor(FormatArgs),
    /// Serve 'start', 'stop' and 'status' until a signal comes; 'start' does this by itself.
    Daemon {
        /// As 'start' brings it up: in a session of its own, until nothing is left to do.
        #[arg(long, hide = true)]
        background: bool,
    },
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
    Show(Box<StartArgs>),
}

/// `varid start`.
#[derive(Debug, Args)]
pub struct StartArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub sampling: SamplingArgs,
    #[command(flatten)]
    pub perf: PerfArgs,
}

/// What users of perf are used to say, and need not.
#[derive(Debug, Args)]
pub struct PerfArgs {
    /// Record callchains, which is the default: see --stack.
    #[arg(short = 'g')]
    pub callchains: bool,
}

/// How something is shown.
#[derive(Debug, Clone, Copy, Args)]
pub struct FormatArgs {
    /// For programs.
    #[arg(long)]
    pub json: bool,
}

/// `varid record`.
#[derive(Debug, Args)]
pub struct RecordArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub sampling: SamplingArgs,
    #[command(flatten)]
    pub perf: PerfArgs,
    /// The command and its arguments: it is profiled, or, with --all or --pid, they are until it ends.
    #[arg(trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

/// Who is profiled.
#[derive(Debug, Args, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetArgs {
    /// Processes of this package, running or to come, and what they fork; * stands for any text.
    /// May be repeated.
    #[arg(long = "app", value_name = "PACKAGE", value_parser = parse_process)]
    pub apps: Vec<String>,
    /// Processes of this service, and what they fork: system_server, surfaceflinger, media and
    /// others of Android, or one of the configuration's. May be repeated.
    #[arg(long = "service", value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub services: Vec<String>,
    /// These processes and what they fork: numbers, with commas between.
    #[arg(short, long = "pid", value_name = "PID", value_delimiter = ',', conflicts_with_all = ["apps", "services", "all"])]
    pub pids: Vec<u32>,
    /// Every process.
    #[arg(short, long, conflicts_with_all = ["apps", "services"])]
    pub all: bool,
}

impl TargetArgs {
    /// Whether anybody is named.
    pub fn is_named(&self) -> bool {
        let names = !self.apps.is_empty() || !self.services.is_empty();
        names || !self.pids.is_empty() || self.all
    }

    /// What was named, as a configuration says it.
    pub fn as_configured(&self) -> Config {
        // The command line has been checked.
        let apps = self.apps.iter().flat_map(|app| ProcessPattern::new(app));
        Config {
            all: self.all,
            apps: apps.collect(),
            services: self.services.clone(),
            ..Config::default()
        }
    }

    /// The target: as it was named, or by the configuration, which has the names; none if by neither.
    pub fn spec(&self, config: &Config) -> Option<TargetSpec> {
        match self.pids.as_slice() {
            [] if config.all => Some(TargetSpec::All),
            [] => TargetSpec::named(config),
            pids => Some(TargetSpec::Pids(pids.to_vec())),
        }
    }
}

/// What is sampled, and how. The control protocol carries it as it is.
#[derive(Debug, Args, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SamplingArgs {
    /// Event to sample, as perf writes it: NAME[:MODIFIERS], a raw code (r11), PMU/TERMS/, or a
    /// group '{A,B}', with ':S' read at the samples of A; see 'varid events'. May be repeated
    /// [default: cycles where the PMU counts and interrupts, else cpu-clock].
    #[arg(short, long = "event", value_name = "EVENT")]
    pub events: Vec<String>,
    /// Samples per second and CPU [default: 997].
    #[arg(short = 'F', long = "freq", value_name = "HZ", conflicts_with = "count", value_parser = clap::value_parser!(u64).range(FREQUENCIES))]
    pub frequency: Option<u64>,
    /// Events from one sample to the next.
    #[arg(short, long, value_name = "PERIOD", value_parser = clap::value_parser!(u64).range(PERIODS))]
    pub count: Option<u64>,
    /// How much of each stack: down to the managed frames, all of it, or the leaf only [default: vertical].
    #[arg(long, value_enum)]
    pub stack: Option<StackArg>,
    /// Only samples in methods that match, package.Class.method with * for any text; with ! before it what is left out. The
    /// innermost method of the stack that a pattern names decides. May be repeated.
    #[arg(long = "method", value_name = "PATTERN", value_parser = parse_method)]
    pub methods: Vec<String>,
    /// What is not said here is taken from this file, which is read again when it has changed.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// What apps' VMs do at a call: nothing, or count every one, which costs them time [default: sample].
    #[arg(long = "mode", alias = "tactic", value_enum, value_name = "MODE")]
    pub tactic: Option<TacticArg>,
    /// With --mode count-calls: apps also write a line for each call into the session's folder.
    #[arg(long)]
    #[serde(default)]
    pub log_calls: bool,
    /// Where frames are walked [default: the best that works here].
    #[arg(long, value_enum)]
    pub shim: Option<ShimKind>,
    /// Keep the kernel's own samples beside the attributed ones, in raw.data.
    #[arg(long)]
    pub keep_raw: bool,
    /// Stop after so many seconds (or with a unit: 500ms, 2m).
    #[arg(long, value_name = "T", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// The session's folder [default: a new one among the sessions].
    #[arg(short, long, value_name = "SESSION")]
    pub output: Option<PathBuf>,
    /// Pages of each CPU's ring, a power of two.
    #[arg(long, value_name = "PAGES", default_value_t = 2048, value_parser = parse_pages)]
    pub ring_pages: usize,
}

/// `--stack`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StackArg {
    Vertical,
    Full,
    None,
}

impl From<StackArg> for Stack {
    fn from(stack: StackArg) -> Self {
        match stack {
            StackArg::Vertical => Self::Vertical,
            StackArg::Full => Self::Full,
            StackArg::None => Self::None,
        }
    }
}

/// `--mode`; the paper's names are taken, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TacticArg {
    #[value(name = "sample", alias = "load-from-dex")]
    LoadFromDex,
    #[value(name = "count-calls", alias = "method-invoke")]
    MethodInvoke,
}

impl From<TacticArg> for Tactic {
    fn from(tactic: TacticArg) -> Self {
        match tactic {
            TacticArg::LoadFromDex => Self::LoadFromDex,
            TacticArg::MethodInvoke => Self::MethodInvoke,
        }
    }
}

/// Prime, so that sampling does not beat with the program's own loops.
const DEFAULT_FREQUENCY: u64 = 997;

impl SamplingArgs {
    /// What the command line holds its words to, for arguments that come another way.
    pub fn check(&self) -> Result<(), String> {
        if self.frequency.is_some() && self.count.is_some() {
            return Err("a frequency or a period, not both".to_owned());
        }
        let within = |what, asked: Option<u64>, bounds: RangeInclusive<u64>| match asked {
            Some(asked) if !bounds.contains(&asked) => {
                let (from, to) = (bounds.start(), bounds.end());
                Err(format!("{what} {asked} is not from {from} to {to}"))
            }
            _ => Ok(()),
        };
        within("frequency", self.frequency, FREQUENCIES)?;
        within("period", self.count, PERIODS)?;
        self.duration.map_or(Ok(()), check_duration)?;
        check_pages(self.ring_pages)?;
        for pattern in &self.methods {
            MethodPattern::new(pattern)?;
        }
        for path in [&self.output, &self.config].into_iter().flatten() {
            if !path.is_absolute() {
                return Err(format!("'{}' is not absolute", path.display()));
            }
        }
        Ok(())
    }

    /// What is asked for where neither file nor command line says anything.
    pub fn rate(config: &Config) -> Rate {
        config.rate.unwrap_or(Rate::Frequency(DEFAULT_FREQUENCY))
    }

    /// The events of this machine where none is asked for.
    pub fn default_events(config: &Config) -> Vec<String> {
        let (event, _) = default_event(Self::rate(config), &Pmu::all(Path::new("/")));
        vec![event.name]
    }

    /// The session of a target that a configuration describes, with what only these arguments
    /// say; `output`: where, if they do not say.
    pub fn options(
        &self,
        target: TargetSpec,
        configured: Configured,
        output: PathBuf,
    ) -> anyhow::Result<SessionOptions> {
        let config = &configured.config;
        let rate = Self::rate(config);
        let Resolved {
            mut groups,
            mut notes,
        } = resolve_events(&config.events, rate)?;
        notes.extend(lower(&mut groups, max_frequency()));
        for note in &notes {
            tracing::warn!("{note}");
        }
        Ok(SessionOptions {
            target,
            groups,
            notes,
            stack: config.stack.unwrap_or_default(),
            tactic: config.tactic.unwrap_or_default(),
            log_calls: self.log_calls,
            shim: self.shim,
            keep_raw: self.keep_raw,
            // A folder that sudo's user names is theirs; those that varid names are root's own.
            owner: self.output.as_ref().and_then(|_| crate::paths::sudo_user()),
            output: self.output.clone().unwrap_or(output),
            ring_pages: self.ring_pages,
            configured,
        })
    }
}

/// The events that were asked for, or the default, as far as this machine has them.
fn resolve_events(events: &[String], rate: Rate) -> anyhow::Result<Resolved> {
    let pmus = Pmu::all(Path::new("/"));
    if events.is_empty() {
        let (event, note) = default_event(rate, &pmus);
        return Ok(Resolved {
            groups: vec![event.into()],
            notes: note.into_iter().collect(),
        });
    }
    let asked = events.iter().map(String::as_str);
    let Resolved { groups, mut notes } = resolve(asked, rate, &pmus)?;
    let hardware = groups
        .iter()
        .flat_map(|group| &group.events)
        .any(Event::is_hardware);
    let dead = if hardware {
        dead_cpus(&pmus)
    } else {
        Vec::new()
    };
    let (groups, silent) = led_by_timer(groups, &dead);
    notes.extend(silent);
    Ok(Resolved { groups, notes })
}

/// Lowers rates to what the kernel allows; what is said if that was necessary.
fn lower(groups: &mut [Group], most: Option<u64>) -> Option<String> {
    let most = most?;
    let mut asked = 0;
    for event in groups.iter_mut().flat_map(|group| &mut group.events) {
        if let Rate::Frequency(hz) = &mut event.rate {
            asked = asked.max(*hz);
            *hz = most.min(*hz);
        }
    }
    (asked > most).then(|| lowered(asked, most))
}

/// What is said of a rate that the kernel does not allow.
pub fn lowered(asked: u64, most: u64) -> String {
    format!(
        "the kernel allows {most} samples a second and CPU, not {asked}: {most} are taken. It lowers its limit when samples are dear; raise /proc/sys/kernel/perf_event_max_sample_rate, and set perf_cpu_time_max_percent beside it to 0 to keep it"
    )
}

fn parse_process(text: &str) -> Result<String, String> {
    ProcessPattern::new(text).map(|_| text.to_owned())
}

fn parse_method(text: &str) -> Result<String, String> {
    MethodPattern::new(text).map(|_| text.to_owned())
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let duration = units::duration(text)?;
    check_duration(duration).map(|()| duration)
}

fn check_duration(duration: Duration) -> Result<(), String> {
    let (bounds, as_text) = DURATIONS;
    match bounds.contains(&duration) {
        true => Ok(()),
        false => Err(format!("it may be {as_text}")),
    }
}

fn parse_pages(text: &str) -> Result<usize, String> {
    let pages: usize = text.parse().map_err(|_| format!("'{text}' is no number"))?;
    check_pages(pages).map(|()| pages)
}

fn check_pages(pages: usize) -> Result<(), String> {
    if !pages.is_power_of_two() || !(16..=1 << 18).contains(&pages) {
        return Err("a ring has a power of two of pages, from 16 to 262144".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_frequency_beyond_the_kernels_limit_is_lowered_aloud() {
        let rates = [
            Rate::Frequency(10_000),
            Rate::Frequency(99),
            Rate::Period(10_000),
        ];
        let mut groups = rates.map(|rate| Group::from(Event::cycles(rate)));
        assert_eq!(lower(&mut groups, None), None);
        assert_eq!(lower(&mut groups, Some(10_000)), None);
        let note = lower(&mut groups, Some(4_000)).unwrap();
        assert!(note.contains("/proc/sys/kernel/perf_event_max_sample_rate"));
        let lowered: Vec<_> = groups.iter().map(|group| group.events[0].rate).collect();
        let expected = [
            Rate::Frequency(4_000),
            Rate::Frequency(99),
            Rate::Period(10_000),
        ];
        assert_eq!(lowered, expected);
    }
}
