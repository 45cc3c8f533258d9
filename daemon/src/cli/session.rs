//! The arguments of a session: its target, and how it samples.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use varid_model::{Pid, Stack};
use varid_recording::Tactic;
use varid_sampler::ShimKind;
use varid_sampler::event::TimeEvent;
use varid_session::config::{FREQUENCIES, MethodPattern, PERIODS, ProcessPattern, units};
use varid_session::request::{
    KeepSymbols, SamplingRequest, SessionRequest, TargetRequest, check_duration, check_pages,
};

/// What `varid start` and `varid record` are asked for.
#[derive(Debug, Args)]
pub struct SessionArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub sampling: SamplingArgs,
    /// Record callchains, which is the default: see --stack.
    #[arg(short = 'g')]
    pub callchains: bool,
}

impl SessionArgs {
    /// Returns the request for a session without a command.
    pub fn request(&self) -> SessionRequest {
        SessionRequest {
            target: self.target.request(),
            sampling: self.sampling.request(),
            launches_target: false,
        }
    }
}

/// `varid record`.
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// The command and its arguments: it is profiled, or, with --all or --pid, they are until it ends.
    #[arg(trailing_var_arg = true)]
    pub command: Vec<OsString>,
    #[command(flatten)]
    pub session: SessionArgs,
    /// Compress the records, to a fifth or less. varid and perf read it, most other readers do not: 'varid compress --undo'.
    #[arg(short = 'z', long, help_heading = OUTPUT)]
    pub compress: bool,
}

impl RecordArgs {
    /// Returns the request for a session.
    pub fn request(&self) -> SessionRequest {
        let mut request = self.session.request();
        // The command is the target, or only determines how long others are recorded.
        request.launches_target = !self.command.is_empty() && !request.target.is_named();
        request
    }
}

/// Which processes are profiled.
#[derive(Debug, Args)]
#[command(next_help_heading = "What to profile")]
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
    /// Returns the request for these processes.
    pub fn request(&self) -> TargetRequest {
        TargetRequest {
            apps: self.apps.clone(),
            services: self.services.clone(),
            pids: self.pids.iter().copied().map(Pid::new).collect(),
            all: self.all,
        }
    }
}

/// The heading of the options for the output.
const OUTPUT: &str = "Output";

/// What is sampled, and how.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sampling")]
pub struct SamplingArgs {
    /// Event to sample, as perf writes it: NAME[:MODIFIERS], a raw code (r11), PMU/TERMS/, a tracepoint (SYSTEM:NAME), or a
    /// group '{A,B}', with ':S' read at the samples of A; or a place in code: uprobe:FILE:FUNCTION, kprobe:FUNCTION; see
    /// 'varid events'. May be repeated
    /// [default: cycles where the PMU counts and interrupts, else cpu-clock].
    #[arg(short, long = "event", value_name = "EVENT")]
    pub events: Vec<String>,
    /// Also the time that threads do not run: off-cpu (blocked) and runnable (waiting for a CPU). Waits of a thread that are shorter
    /// than T (1ms, 100us) are added up until they have a sample [default: as -F or -c].
    #[arg(long, value_name = "T", num_args = 0..=1, require_equals = true, default_missing_value = "0", value_parser = parse_off_cpu)]
    pub off_cpu: Option<u64>,
    /// All time of each thread, running or not, as one event: the same as -e wall.
    #[arg(long, conflicts_with_all = ["events", "off_cpu"])]
    pub wall: bool,
    /// Samples per second and CPU [default: 997].
    #[arg(short = 'F', long = "freq", value_name = "HZ", conflicts_with = "count", value_parser = clap::value_parser!(u64).range(FREQUENCIES))]
    pub frequency: Option<u64>,
    /// Events from one sample to the next.
    #[arg(short, long, value_name = "PERIOD", value_parser = clap::value_parser!(u64).range(PERIODS))]
    pub count: Option<u64>,
    /// How much of each stack: down to the managed frames, all of it, or the leaf only [default: vertical].
    #[arg(long, value_enum)]
    pub stack: Option<StackArg>,
    /// As perf has it: all of each stack.
    #[arg(long, hide = true, value_name = "MODE", conflicts_with = "stack", value_parser = parse_call_graph)]
    pub call_graph: Option<Stack>,
    /// Only samples in methods that match, package.Class.method with * for any text; with ! before it what is left out. The
    /// innermost method of the stack that a pattern names decides. May be repeated.
    #[arg(long = "method", value_name = "PATTERN", value_parser = parse_method)]
    pub methods: Vec<String>,
    /// Settings that are not given on the command line are read from this file, again when it has changed.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// What apps' VMs do at a call: nothing, or count every one, which costs them time [default: sample].
    #[arg(long = "mode", alias = "tactic", value_enum, value_name = "MODE")]
    pub tactic: Option<TacticArg>,
    /// With --mode count-calls: apps also write a line for each call into the session's folder.
    #[arg(long, help_heading = OUTPUT)]
    pub log_calls: bool,
    /// Where frames are walked [default: the best that works here].
    #[arg(long, value_enum)]
    pub shim: Option<ShimArg>,
    /// Keep the kernel's own samples beside the attributed ones, in raw.data.
    #[arg(long, help_heading = OUTPUT)]
    pub keep_raw: bool,
    /// Keep the symbols of all sampled files in the session, so that another machine names them, too; without it, of those only that their
    /// paths do not lead to, as in containers.
    #[arg(long, help_heading = OUTPUT)]
    pub keep_symbols: bool,
    /// Stop after so many seconds (or with a unit: 500ms, 2m).
    #[arg(long, value_name = "T", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// The session's folder [default: a new one among the sessions].
    #[arg(short, long, help_heading = OUTPUT, value_name = "SESSION")]
    pub output: Option<PathBuf>,
    /// Pages of each CPU's ring, a power of two.
    #[arg(long, value_name = "PAGES", default_value_t = 2048, value_parser = parse_pages)]
    pub ring_pages: usize,
}

impl SamplingArgs {
    /// Returns the request for sampling.
    pub fn request(&self) -> SamplingRequest {
        SamplingRequest {
            events: match self.wall {
                true => vec![TimeEvent::Wall.name().to_owned()],
                false => self.events.clone(),
            },
            off_cpu: self.off_cpu,
            frequency: self.frequency,
            count: self.count,
            stack: self.stack.map(Stack::from).or(self.call_graph),
            methods: self.methods.clone(),
            config: self.config.clone(),
            tactic: self.tactic.map(Tactic::from),
            log_calls: self.log_calls,
            shim: self.shim.map(ShimKind::from),
            keep_raw: self.keep_raw,
            keep_symbols: KeepSymbols::of_all_if(self.keep_symbols),
            duration: self.duration,
            output: self.output.clone(),
            ring_pages: self.ring_pages,
        }
    }
}

/// `--stack`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum StackArg {
    /// Managed frames, native ones down to the first of them.
    Vertical,
    /// All frames.
    Full,
    /// The leaf.
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
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum TacticArg {
    /// Nothing: methods are read when they are sampled.
    #[value(name = "sample", alias = "load-from-dex")]
    LoadFromDex,
    /// Count each call, return and unwind.
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

/// `--shim`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ShimArg {
    /// In the kernel, by a BPF program.
    Bpf,
    /// In the kernel, by the module varid.ko.
    Module,
    /// Later, over perf's copy of the stack.
    Perf,
}

impl From<ShimArg> for ShimKind {
    fn from(shim: ShimArg) -> Self {
        match shim {
            ShimArg::Bpf => Self::Bpf,
            ShimArg::Module => Self::Module,
            ShimArg::Perf => Self::Perf,
        }
    }
}

fn parse_process(text: &str) -> Result<String, String> {
    ProcessPattern::new(text).map(|_| text.to_owned())
}

fn parse_method(text: &str) -> Result<String, String> {
    MethodPattern::new(text).map(|_| text.to_owned())
}

/// Parses perf's option for call graphs, whose method does not matter to varid.
fn parse_call_graph(text: &str) -> Result<Stack, String> {
    let mode = text.split(',').next().unwrap_or_default();
    match mode {
        "fp" | "dwarf" | "lbr" => Ok(Stack::Full),
        _ => Err("perf's modes are fp, dwarf and lbr, and all mean --stack full here".to_owned()),
    }
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let duration = units::duration(text)?;
    check_duration(duration).map(|()| duration)
}

/// Parses a time to nanoseconds. 0: no time is given.
fn parse_off_cpu(text: &str) -> Result<u64, String> {
    if text == "0" {
        return Ok(0);
    }
    let duration = match text.strip_suffix("us") {
        Some(number) => {
            let thousand = units::duration(&format!("{number}ms"))?;
            thousand.checked_div(1_000).unwrap_or_default()
        }
        None => units::duration(text)?,
    };
    u64::try_from(duration.as_nanos())
        .ok()
        .filter(|period| PERIODS.contains(period))
        .ok_or_else(|| format!("'{text}' is no time between two samples"))
}

fn parse_pages(text: &str) -> Result<usize, String> {
    let pages: usize = text.parse().map_err(|_| format!("'{text}' is no number"))?;
    check_pages(pages).map(|()| pages)
}
