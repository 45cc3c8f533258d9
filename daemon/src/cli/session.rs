//! The arguments of a session: its target, and how it samples.

use clap::Args;
use clap::builder::{
    NonEmptyStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser,
};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use varid_model::{Pid, Rate, Stack};
use varid_recording::Tactic;
use varid_sampler::ShimKind;
use varid_sampler::event::TimeEvent;
use varid_session::config::{
    FREQUENCIES, Limits, MethodFilter, MethodPattern, PERIODS, ProcessPattern, Settings,
    check_duration, units,
};
use varid_session::request::{
    KeepSymbols, OutputRequest, RING_PAGES, RecordingRequest, SamplingRequest, TargetRequest,
    check_pages,
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
    #[command(flatten)]
    pub output: OutputArgs,
}

impl SessionArgs {
    /// Returns the request for a recording without a command.
    pub fn request(&self) -> RecordingRequest {
        let sampling = &self.sampling;
        RecordingRequest {
            target: self.target.request(),
            settings: sampling.settings(),
            sampling: SamplingRequest {
                off_cpu: sampling.events.off_cpu,
                shim: sampling.shim,
                ring_pages: sampling.ring_pages,
            },
            output: self.output.request(),
            config: sampling.config.clone(),
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
}

impl RecordArgs {
    /// Returns the request for a recording.
    pub fn request(&self) -> RecordingRequest {
        let mut request = self.session.request();
        // The command is the target, or only determines how long others are recorded.
        if !self.command.is_empty() && request.target == TargetRequest::Configured {
            request.target = TargetRequest::Command;
        }
        request
    }
}

/// Which processes are profiled.
#[derive(Debug, Args)]
#[command(next_help_heading = "What to profile")]
pub struct TargetArgs {
    /// Processes of this package, running or to come, and what they fork; * stands for any text.
    /// May be repeated.
    #[arg(long = "app", value_name = "PACKAGE", value_parser = ProcessPattern::new)]
    pub apps: Vec<ProcessPattern>,
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
    /// Returns the request for these processes. The parser excludes combinations of the kinds.
    fn request(&self) -> TargetRequest {
        if self.all {
            TargetRequest::All
        } else if !self.pids.is_empty() {
            TargetRequest::Pids(self.pids.iter().copied().map(Pid::new).collect())
        } else if self.apps.is_empty() && self.services.is_empty() {
            TargetRequest::Configured
        } else {
            TargetRequest::Named {
                apps: self.apps.clone(),
                services: self.services.clone(),
            }
        }
    }
}

/// What is sampled, and how.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sampling")]
pub struct SamplingArgs {
    #[command(flatten)]
    pub events: EventArgs,
    /// How much of each stack: down to the managed frames, all of it, or the leaf only [default: vertical].
    #[arg(long, value_parser = stacks())]
    pub stack: Option<Stack>,
    /// As perf has it: all of each stack.
    #[arg(long, hide = true, value_name = "MODE", conflicts_with = "stack", value_parser = parse_call_graph)]
    pub call_graph: Option<Stack>,
    /// Only samples in methods that match, package.Class.method with * for any text; with ! before it what is left out. The
    /// innermost method of the stack that a pattern names decides. May be repeated.
    #[arg(long = "method", value_name = "PATTERN", value_parser = MethodPattern::new)]
    pub methods: Vec<MethodPattern>,
    /// Settings that are not given on the command line are read from this file, again when it has changed.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// What apps' VMs do at a call: nothing, or count every one, which costs them time [default: sample].
    #[arg(long = "mode", alias = "tactic", value_name = "MODE", value_parser = tactics())]
    pub tactic: Option<Tactic>,
    /// Where frames are walked [default: the best that works here].
    #[arg(long, value_parser = shims())]
    pub shim: Option<ShimKind>,
    /// Stop after so many seconds (or with a unit: 500ms, 2m).
    #[arg(long, value_name = "T", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// Pages of each CPU's ring, a power of two.
    #[arg(long, value_name = "PAGES", default_value_t = RING_PAGES, value_parser = parse_pages)]
    pub ring_pages: usize,
}

impl SamplingArgs {
    /// Returns the settings that a configuration file can also contain.
    fn settings(&self) -> Settings {
        Settings {
            methods: MethodFilter::new(self.methods.clone()),
            events: self.events.names(),
            rate: self.events.rate(),
            stack: self.stack.or(self.call_graph),
            tactic: self.tactic,
            limits: Limits {
                duration: self.duration,
                ..Limits::default()
            },
        }
    }
}

/// Which events are sampled, and how often.
#[derive(Debug, Args)]
pub struct EventArgs {
    /// Event to sample, as perf writes it: NAME[:MODIFIERS], a raw code (r11), PMU/TERMS/, a tracepoint (SYSTEM:NAME), or a
    /// group '{A,B}', with ':S' read at the samples of A; or a place in code: uprobe:FILE:FUNCTION, kprobe:FUNCTION; or of
    /// Java: alloc, lock, park; see 'varid events'. May be repeated
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
}

impl EventArgs {
    fn names(&self) -> Vec<String> {
        match self.wall {
            true => vec![TimeEvent::Wall.name().to_owned()],
            false => self.events.clone(),
        }
    }

    fn rate(&self) -> Option<Rate> {
        let frequency = self.frequency.map(Rate::Frequency);
        frequency.or(self.count.map(Rate::Period))
    }
}

/// Where the session goes, and in which form.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// With --mode count-calls: apps also write a line for each call into the session's folder.
    #[arg(long)]
    pub log_calls: bool,
    /// Keep the kernel's own samples beside the attributed ones, in raw.data.
    #[arg(long)]
    pub keep_raw: bool,
    /// Keep the symbols of all sampled files in the session, so that another machine names them, too; without it, of those only that their
    /// paths do not lead to, as in containers.
    #[arg(long)]
    pub keep_symbols: bool,
    /// The session's folder [default: a new one among the sessions].
    #[arg(id = "output", short, long = "output", value_name = "SESSION")]
    pub folder: Option<PathBuf>,
    /// Compress the records, to a fifth or less. varid and perf read it, most other readers do not: 'varid compress --undo'.
    #[arg(short = 'z', long)]
    pub compress: bool,
}

impl OutputArgs {
    fn request(&self) -> OutputRequest {
        OutputRequest {
            folder: self.folder.clone(),
            compress: self.compress,
            keep_raw: self.keep_raw,
            keep_symbols: KeepSymbols::of_all_if(self.keep_symbols),
            log_calls: self.log_calls,
        }
    }
}

/// Makes a parser that accepts these names and returns their values.
fn one_of<T, const N: usize>(values: [(PossibleValue, T); N]) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let names = values.iter().map(|(name, _)| name.clone());
    PossibleValuesParser::new(names.collect::<Vec<_>>()).try_map(move |typed| {
        let found = values.iter().find(|(name, _)| name.matches(&typed, false));
        found
            .map(|(_, value)| *value)
            .ok_or("no value has this name")
    })
}

/// `--stack`.
fn stacks() -> impl TypedValueParser<Value = Stack> {
    one_of(
        [
            (
                Stack::Vertical,
                "Managed frames, native ones down to the first of them",
            ),
            (Stack::Full, "All frames"),
            (Stack::None, "The leaf"),
        ]
        .map(|(stack, help)| (PossibleValue::new(stack.name()).help(help), stack)),
    )
}

/// `--mode`. The paper's names are also accepted.
fn tactics() -> impl TypedValueParser<Value = Tactic> {
    one_of(
        [
            (
                Tactic::LoadFromDex,
                "Nothing: methods are read when they are sampled",
            ),
            (Tactic::MethodInvoke, "Count each call, return and unwind"),
        ]
        .map(|(tactic, help)| {
            let name = PossibleValue::new(tactic.mode()).alias(tactic.name());
            (name.help(help), tactic)
        }),
    )
}

/// `--shim`.
fn shims() -> impl TypedValueParser<Value = ShimKind> {
    one_of(
        [
            ("bpf", "In the kernel, by a BPF program", ShimKind::Bpf),
            (
                "module",
                "In the kernel, by the module varid.ko",
                ShimKind::Module,
            ),
            (
                "perf",
                "Later, over perf's copy of the stack",
                ShimKind::Perf,
            ),
        ]
        .map(|(name, help, shim)| (PossibleValue::new(name).help(help), shim)),
    )
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Verb};
    use clap::Parser;

    fn record(options: &[&str]) -> RecordingRequest {
        let line = ["varid", "record"].iter().chain(options);
        match Cli::try_parse_from(line).unwrap().verb {
            Verb::Record(args) => args.request(),
            _ => panic!(),
        }
    }

    /// Returns the request of a command line after a round trip through the control protocol's JSON.
    fn sent(options: &[&str]) -> RecordingRequest {
        let request = record(options);
        let json = serde_json::to_string(&request).unwrap();
        let received: RecordingRequest = serde_json::from_str(&json).unwrap();
        assert_eq!(received, request, "{json}");
        received
    }

    #[test]
    fn every_option_is_in_the_request_and_arrives() {
        let line = "--app org.a --app b.* --service media -e cycles -e instructions --off-cpu=1ms -c 1000 --stack full \
            --method a.* --method !a.B.* --config /c --mode count-calls --shim perf --duration 500ms --ring-pages 64 -g \
            --log-calls --keep-raw --keep-symbols -o /o -z";
        let words: Vec<_> = line.split_whitespace().collect();
        let pattern = |text| MethodPattern::new(text).unwrap();
        let process = |text| ProcessPattern::new(text).unwrap();
        let expected = RecordingRequest {
            target: TargetRequest::Named {
                apps: vec![process("org.a"), process("b.*")],
                services: vec!["media".to_owned()],
            },
            settings: Settings {
                methods: MethodFilter::new(vec![pattern("a.*"), pattern("!a.B.*")]),
                events: vec!["cycles".to_owned(), "instructions".to_owned()],
                rate: Some(Rate::Period(1000)),
                stack: Some(Stack::Full),
                tactic: Some(Tactic::MethodInvoke),
                limits: Limits {
                    duration: Some(Duration::from_millis(500)),
                    size: None,
                    processes: None,
                },
            },
            sampling: SamplingRequest {
                off_cpu: Some(1_000_000),
                shim: Some(ShimKind::Perf),
                ring_pages: 64,
            },
            output: OutputRequest {
                folder: Some("/o".into()),
                compress: true,
                keep_raw: true,
                keep_symbols: KeepSymbols::OfAll,
                log_calls: true,
            },
            config: Some("/c".into()),
        };
        let request = sent(&words);
        assert_eq!(request, expected);
        assert_eq!(request.check(), Ok(()));
        assert_eq!(sent(&[]), RecordingRequest::default());
    }

    #[test]
    fn other_names_of_an_option_ask_for_the_same() {
        for (one, other) in [
            ("--wall", "-e wall"),
            ("--call-graph dwarf,4096", "--stack full"),
            ("--tactic method-invoke", "--mode count-calls"),
            ("--mode load-from-dex", "--mode sample"),
            ("--off-cpu=100us", "--off-cpu=0.1ms"),
        ] {
            let [one, other] = [one, other].map(|line| line.split(' ').collect::<Vec<_>>());
            assert_eq!(record(&one), record(&other), "{one:?}");
        }
        assert_eq!(record(&["--off-cpu"]).sampling.off_cpu, Some(0));
    }

    #[test]
    fn a_command_is_the_target_where_no_process_is_named() {
        assert_eq!(record(&["true"]).target, TargetRequest::Command);
        assert_eq!(record(&["-a", "true"]).target, TargetRequest::All);
        let pids = TargetRequest::Pids(vec![Pid::new(1), Pid::new(2)]);
        assert_eq!(record(&["-p", "1,2", "true"]).target, pids);
    }
}
