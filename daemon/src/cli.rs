//! The command line.

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
use std::path::{Path, PathBuf};
use std::time::Duration;
use varid_recording::Stack;

/// One profile from the app's methods through the VM and native libraries to the kernel.
#[derive(Debug, Parser)]
#[command(name = "varid", version, propagate_version = true, after_long_help = PLACES)]
pub struct Cli {
    /// Say more of what is going on; twice: everything.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
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
  $XDG_RUNTIME_DIR/varid (root: /run/varid); on a device everything is in /data/local/tmp/varid.
  VARID_HOME=DIR puts all of it below DIR: sessions in DIR/sessions, socket and log in DIR/run.

Exit codes:
  0, 1 for a failure with a one-line reason, 2 for bad usage.";

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

/// `varid start`.
#[derive(Debug, Args)]
pub struct StartArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub sampling: SamplingArgs,
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
    /// The command and its arguments, if no running process is named.
    #[arg(last = true)]
    pub command: Vec<OsString>,
}

/// Who is profiled.
#[derive(Debug, Args, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[group(multiple = false)]
pub struct TargetArgs {
    /// Processes of this package, running or to come, and what they fork.
    #[arg(short, long, value_name = "PACKAGE", value_parser = NonEmptyStringValueParser::new())]
    pub app: Option<String>,
    /// This process and what it forks.
    #[arg(short, long, value_name = "PID")]
    pub pid: Option<u32>,
    /// Every process.
    #[arg(long)]
    pub all: bool,
}

impl TargetArgs {
    /// The target that was named, if any.
    pub fn spec(&self) -> Option<TargetSpec> {
        match self {
            Self {
                app: Some(package), ..
            } => Some(TargetSpec::App(package.clone())),
            Self { pid: Some(pid), .. } => Some(TargetSpec::Pid(*pid)),
            Self { all: true, .. } => Some(TargetSpec::All),
            _ => None,
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
    #[arg(short = 'F', long = "freq", value_name = "HZ", conflicts_with = "count", value_parser = clap::value_parser!(u64).range(1..))]
    pub frequency: Option<u64>,
    /// Events from one sample to the next.
    #[arg(short, long, value_name = "PERIOD", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// How much of each stack: down to the managed frames, all of it, or the leaf only.
    #[arg(long, value_enum, default_value_t = StackArg::Vertical)]
    pub stack: StackArg,
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

/// Prime, so that sampling does not beat with the program's own loops.
const DEFAULT_FREQUENCY: u64 = 997;

impl SamplingArgs {
    /// What the command line holds its words to, for arguments that come another way.
    pub fn check(&self) -> Result<(), String> {
        if self.frequency.is_some() && self.count.is_some() {
            return Err("a frequency or a period, not both".to_owned());
        }
        if self.frequency == Some(0) || self.count == Some(0) {
            return Err("a rate of 0 samples nothing".to_owned());
        }
        check_pages(self.ring_pages)?;
        match &self.output {
            Some(output) if !output.is_absolute() => {
                Err(format!("'{}' is not absolute", output.display()))
            }
            _ => Ok(()),
        }
    }

    /// The session that these arguments and a target describe; `output`: where, if they do not say.
    pub fn options(&self, target: TargetSpec, output: PathBuf) -> anyhow::Result<SessionOptions> {
        let rate = match (self.frequency, self.count) {
            (_, Some(period)) => Rate::Period(period),
            (frequency, None) => Rate::Frequency(frequency.unwrap_or(DEFAULT_FREQUENCY)),
        };
        let Resolved {
            mut groups,
            mut notes,
        } = self.resolve_events(rate)?;
        notes.extend(lower(&mut groups, max_frequency()));
        for note in &notes {
            tracing::warn!("{note}");
        }
        Ok(SessionOptions {
            target,
            groups,
            notes,
            stack: match self.stack {
                StackArg::Vertical => Stack::Vertical,
                StackArg::Full => Stack::Full,
                StackArg::None => Stack::None,
            },
            shim: self.shim,
            keep_raw: self.keep_raw,
            output: self.output.clone().unwrap_or(output),
            duration: self.duration,
            ring_pages: self.ring_pages,
        })
    }
}

impl SamplingArgs {
    /// The events that were asked for, or the default, as far as this machine has them.
    fn resolve_events(&self, rate: Rate) -> anyhow::Result<Resolved> {
        let pmus = Pmu::all(Path::new("/"));
        if self.events.is_empty() {
            let (event, note) = default_event(rate, &pmus);
            return Ok(Resolved {
                groups: vec![event.into()],
                notes: note.into_iter().collect(),
            });
        }
        let asked = self.events.iter().map(String::as_str);
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
    (asked > most).then(|| {
        format!(
            "the kernel allows {most} samples a second and CPU, not {asked}: {most} are taken. It lowers its limit when samples are dear; raise /proc/sys/kernel/perf_event_max_sample_rate, and set perf_cpu_time_max_percent beside it to 0 to keep it"
        )
    })
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds = match unit {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("'{unit}' is no unit of time: ms, s, m and h are")),
    };
    let number: f64 = number
        .parse()
        .map_err(|_| format!("'{text}' is no duration, as 10, 500ms or 2m are"))?;
    Duration::try_from_secs_f64(number * seconds).map_err(|error| error.to_string())
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

    #[test]
    fn durations_have_units() {
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_duration("2m"), Ok(Duration::from_secs(120)));
        for bad in ["", "x", "1d", "-1", "1e400"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }
}
