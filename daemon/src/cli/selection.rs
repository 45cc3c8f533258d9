//! The arguments that select the data of a session, for `varid report` and `varid export`.

use crate::{paths, sessions};
use anyhow::anyhow;
use clap::{Args, ValueEnum};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use varid_model::{Layer, Pid, Tid};
use varid_report::{
    CodeFilter, NameOptions, NamePattern, Options, Pattern, PercentOf, Profile, ShownSignatures,
    StackFilter, TaskFilter, TimeSpan,
};

/// Which session.
#[derive(Debug, Args)]
pub struct InputArgs {
    /// The session, by folder, name, or the file that 'varid pack' has written [default: the last one].
    #[arg(value_name = "SESSION")]
    pub session: Option<PathBuf>,
    /// The same, as perf takes it: a folder, its perf.data, or a name.
    #[arg(short, long, value_name = "SESSION", conflicts_with = "session")]
    pub input: Option<PathBuf>,
}

impl InputArgs {
    /// Returns the session's folder.
    pub fn folder(&self) -> anyhow::Result<PathBuf> {
        folder(self.session.as_deref().or(self.input.as_deref()))
    }
}

/// Returns the folder of a named session, or of the last one.
pub fn folder(session: Option<&Path>) -> anyhow::Result<PathBuf> {
    match session {
        Some(named) => sessions::named(named),
        None => sessions::last().map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                anyhow!("there is no session yet: 'varid record' or 'varid start' makes one")
            }
            _ => anyhow::Error::from(error).context("cannot find the last session"),
        }),
    }
}

/// What stacks are weighed by.
#[derive(Debug, Default, Args)]
pub struct MeasureArgs {
    /// What is shown: samples, period, or what was counted exactly, as calls; several are separated by commas [default: samples, as shares of the
    /// event's counts between them].
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        conflicts_with = "by_samples"
    )]
    pub measure: Vec<String>,
    /// Shares of the samples, not of the event's counts between them.
    #[arg(long)]
    pub by_samples: bool,
}

impl MeasureArgs {
    /// What shares of samples are of.
    pub fn percent_of(&self) -> PercentOf {
        match self.by_samples || self.measure == ["samples"] {
            true => PercentOf::Samples,
            false => PercentOf::Period,
        }
    }

    /// Returns the names of the measures that are shown of a profile.
    pub fn shown(&self, profile: &Profile) -> Vec<String> {
        let default = profile.default_measure();
        match (&self.measure[..], default) {
            ([], Some(default)) => vec![default.name],
            (named, _) => named.to_vec(),
        }
    }

    /// Returns the named measures, for views of one measure. The shares of samples are of their periods, so `period` alone
    /// means samples.
    pub fn of_one(&self) -> Vec<String> {
        match &self.measure[..] {
            [one] if one == "period" => Vec::new(),
            named => named.to_vec(),
        }
    }
}

/// Returns true if a measure is of samples, and was not counted exactly.
fn is_sampled(measure: &str) -> bool {
    ["samples", "period"].contains(&measure)
}

/// Which samples count.
#[derive(Debug, Args)]
#[command(next_help_heading = "Filters")]
pub struct SampleArgs {
    /// Only samples of this process.
    #[arg(long)]
    pub pid: Option<u32>,
    /// Only samples of this thread.
    #[arg(long)]
    pub tid: Option<u32>,
    /// Only samples of threads whose name matches; * stands for anything.
    #[arg(long, value_name = "PATTERN", alias = "comm", alias = "comms")]
    pub thread: Option<String>,
    /// Only samples of processes whose name matches; * stands for anything.
    #[arg(long, value_name = "PATTERN")]
    pub app: Option<String>,
    /// Only samples from A until before B, in seconds since the start: 1.5..3, 200ms.., ..2s.
    #[arg(long, value_name = "A..B")]
    pub time: Option<TimeSpan>,
    /// Only samples with a function on their stack whose name, or whose image's, matches.
    #[arg(long, value_name = "REGEX")]
    pub focus: Option<NamePattern>,
    /// No samples with a function on their stack whose name, or whose image's, matches.
    #[arg(long, value_name = "REGEX")]
    pub ignore: Option<NamePattern>,
    /// Only this layer: rows of it in tables of code, else samples whose leaf is of it.
    #[arg(long, value_enum)]
    pub layer: Option<LayerArg>,
    /// Only matching functions: rows of them in tables of functions, else samples whose leaf is one.
    #[arg(long, value_name = "REGEX")]
    pub symbol: Option<NamePattern>,
}

impl SampleArgs {
    /// Returns the layer and the symbols.
    pub fn code(&self) -> CodeFilter {
        CodeFilter {
            layer: self.layer.map(Layer::from),
            symbol: self.symbol.clone(),
        }
    }

    /// Returns true if samples are chosen by what is known of samples only.
    pub fn choose_samples(&self) -> bool {
        self.tid.is_some()
            || self.thread.is_some()
            || self.app.is_some()
            || self.time.is_some()
            || self.focus.is_some()
            || self.ignore.is_some()
    }

    /// Refuses to choose by what is known of samples where something else is shown.
    pub fn check(&self, named: &[String], of_table: &[&str]) -> anyhow::Result<()> {
        let named = named.iter().map(String::as_str);
        let exact = named
            .chain(of_table.iter().copied())
            .find(|name| !is_sampled(name));
        match exact.filter(|_| self.choose_samples()) {
            Some(exact) => anyhow::bail!(
                "{exact} is counted for whole processes: choose by --pid, --layer and --symbol only"
            ),
            None => Ok(()),
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum LayerArg {
    App,
    Framework,
    Vm,
    Native,
    Kernel,
}

impl From<LayerArg> for Layer {
    fn from(layer: LayerArg) -> Self {
        match layer {
            LayerArg::App => Layer::App,
            LayerArg::Framework => Layer::Framework,
            LayerArg::Vm => Layer::Vm,
            LayerArg::Native => Layer::Native,
            LayerArg::Kernel => Layer::Kernel,
        }
    }
}

/// Where names come from.
#[derive(Debug, Args)]
#[command(next_help_heading = "Symbols")]
pub struct NameArgs {
    /// Functions that were compiled into their callers count for these; faster.
    #[arg(long)]
    pub no_inline: bool,
    /// Recorded files are below DIR, laid out as the recorded machine's file system.
    #[arg(long, value_name = "DIR")]
    pub symfs: Option<PathBuf>,
    /// Recorded files, or their debug information, are somewhere below DIR; found by build-id. May be repeated.
    #[arg(long, value_name = "DIR")]
    pub symbols: Vec<PathBuf>,
    /// The recorded kernel's vmlinux, with debug information [default: the system's].
    #[arg(long, value_name = "FILE")]
    pub vmlinux: Option<PathBuf>,
    /// What R8 or ProGuard renamed in the app: its mapping.txt.
    #[arg(long, value_name = "FILE")]
    pub mapping: Option<PathBuf>,
    /// Names of all Java methods on HotSpot with their parameters; without it, of those with the same name.
    #[arg(long)]
    pub signatures: bool,
}

impl NameArgs {
    /// Returns the named files, without folders.
    pub fn files(&self) -> Vec<PathBuf> {
        let files = [&self.vmlinux, &self.mapping];
        files.into_iter().flatten().cloned().collect()
    }
}

/// What a profile's frames are to have.
#[derive(Debug, Clone, Copy)]
pub struct FrameDetail {
    /// Inlined functions are frames of their own, unless the user wants none.
    pub inlined: bool,
    /// Frames have lines.
    pub lines: bool,
}

/// Returns the options that select these samples of an event. The layer and symbols are not among them: an export takes them of
/// leaves, and a view of rows.
pub fn options(
    event: Option<String>,
    samples: &SampleArgs,
    names: &NameArgs,
    detail: FrameDetail,
) -> Options {
    Options {
        event,
        tasks: TaskFilter {
            pid: samples.pid.map(Pid::new),
            tid: samples.tid.map(Tid::new),
            thread: samples.thread.clone().map(Pattern::new),
            app: samples.app.clone().map(Pattern::new),
        },
        time: samples.time,
        stacks: StackFilter {
            focus: samples.focus.clone(),
            ignore: samples.ignore.clone(),
            ..StackFilter::default()
        },
        names: NameOptions {
            symfs: names.symfs.clone(),
            symbols: names.symbols.clone(),
            kept: Some(paths::device_symbols()),
            mapping: names.mapping.clone(),
            vmlinux: names.vmlinux.clone(),
            inlined: detail.inlined && !names.no_inline,
            lines: detail.lines,
            signatures: match names.signatures {
                true => ShownSignatures::OfAll,
                false => ShownSignatures::OfOverloads,
            },
        },
        ..Options::default()
    }
}
