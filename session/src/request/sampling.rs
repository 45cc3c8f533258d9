//! The command line's request: what is sampled, and how.

use crate::config::{DURATIONS, FREQUENCIES, MethodPattern, PERIODS};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;
use varid_model::Stack;
use varid_recording::Tactic;
use varid_sampler::ShimKind;
use varid_sampler::event::WaitKind;

/// The files whose symbols a session keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeepSymbols {
    /// Files that reports could not find by their paths.
    #[default]
    OfUnreachable,
    /// All sampled files.
    OfAll,
}

impl KeepSymbols {
    /// Converts from a flag.
    #[must_use]
    pub const fn of_all_if(all: bool) -> Self {
        match all {
            true => Self::OfAll,
            false => Self::OfUnreachable,
        }
    }
}

/// The command line's request. Empty and None: the configuration file's setting applies, or the default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplingRequest {
    /// Events, in the syntax of `-e`.
    pub events: Vec<String>,
    /// Also sample off-CPU time (off-cpu and runnable), with this many nanoseconds per sample. 0: use the rate.
    pub off_cpu: Option<u64>,
    /// Samples per second and CPU.
    pub frequency: Option<u64>,
    /// The period, which excludes a frequency.
    pub count: Option<u64>,
    /// How much of each stack is recorded.
    pub stack: Option<Stack>,
    /// Patterns of methods.
    pub methods: Vec<String>,
    /// The configuration file.
    pub config: Option<PathBuf>,
    /// What VMs do at a call.
    pub tactic: Option<Tactic>,
    /// With [`Tactic::MethodInvoke`]: VMs also log a line for each call.
    pub log_calls: bool,
    /// The source that walks frames, or None for the best one that works here.
    pub shim: Option<ShimKind>,
    /// Keep the kernel's own samples beside varid's.
    pub keep_raw: bool,
    /// The files whose symbols the session keeps.
    pub keep_symbols: KeepSymbols,
    /// How long the session records.
    pub duration: Option<Duration>,
    /// The session's folder, or None for a new one among the sessions.
    pub output: Option<PathBuf>,
    /// Pages of each CPU's ring, a power of two.
    pub ring_pages: usize,
}

impl SamplingRequest {
    /// Checks a request from the socket: its values must be valid on the command line, and its paths absolute.
    pub fn check(&self) -> Result<(), String> {
        if self.frequency.is_some() && self.count.is_some() {
            return Err("a frequency or a period, not both".to_owned());
        }
        let within = |what, value: Option<u64>, bounds: RangeInclusive<u64>| match value {
            Some(value) if !bounds.contains(&value) => {
                let (from, to) = (bounds.start(), bounds.end());
                Err(format!("{what} {value} is not from {from} to {to}"))
            }
            _ => Ok(()),
        };
        within("frequency", self.frequency, FREQUENCIES)?;
        within("period", self.count, PERIODS)?;
        within("off-CPU period", self.off_cpu.filter(|ns| *ns > 0), PERIODS)?;
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
}

/// Returns the events of off-CPU time, in the syntax of `-e`.
pub fn off_cpu_events(period: u64) -> impl Iterator<Item = String> {
    WaitKind::ALL.into_iter().map(move |kind| match period {
        0 => kind.name().to_owned(),
        _ => format!("{}/period={period}/", kind.name()),
    })
}

/// Checks the duration of a session.
pub fn check_duration(duration: Duration) -> Result<(), String> {
    let (bounds, as_text) = DURATIONS;
    match bounds.contains(&duration) {
        true => Ok(()),
        false => Err(format!("it may be {as_text}")),
    }
}

/// Checks the size of a ring.
pub fn check_pages(pages: usize) -> Result<(), String> {
    if !pages.is_power_of_two() || !(16..=1 << 18).contains(&pages) {
        return Err("a ring has a power of two of pages, from 16 to 262144".to_owned());
    }
    Ok(())
}
