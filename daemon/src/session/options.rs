//! What a session is asked for, what others see of it, and how it can fail.

use super::recorder::RecorderError;
use super::tracker::TargetSpec;
use crate::sampler::event::{Event, Rate};
use crate::sampler::{SamplerError, ShimKind, Source, monotonic_ns};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;
use thiserror::Error;
use varid_recording::{EventDesc, Manifest, Stack, Target, TargetKind};

/// What a session is asked to do.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// Who is profiled.
    pub target: TargetSpec,
    /// The event that is sampled.
    pub event: Event,
    /// How often.
    pub rate: Rate,
    /// How much of each stack.
    pub stack: Stack,
    /// Which source; none: the best that works here.
    pub shim: Option<ShimKind>,
    /// Keep the kernel's own samples beside ours.
    pub keep_raw: bool,
    /// The session's folder.
    pub output: PathBuf,
    /// Stop by itself after this long.
    pub duration: Option<Duration>,
    /// Pages of each CPU's ring.
    pub ring_pages: usize,
}

/// Why a session failed.
#[derive(Debug, Error)]
pub enum SessionError {
    /// Sampling.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    /// Recording.
    #[error(transparent)]
    Recorder(#[from] RecorderError),
    /// The unprivileged source cannot do that.
    #[error(
        "profiling {0} needs the BPF shim (root, or CAP_BPF and CAP_PERFMON) or the kernel module; without them name one process with --pid or start it with 'varid record'"
    )]
    NeedsPrivilege(&'static str),
    /// There is no such process.
    #[error("no process has the id {0}")]
    NoProcess(u32),
    /// The kernel's own samples cannot be kept.
    #[error(
        "--keep-raw needs the BPF shim or the kernel module: the other source has no samples but the kernel's own"
    )]
    NoRaw,
    /// The raw samples' file.
    #[error("cannot write {path}: {source}")]
    Raw {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// What others may see of a running session, and how they stop it.
#[derive(Debug, Default)]
pub struct SessionControl {
    /// Set to end the session.
    pub stop: Arc<AtomicBool>,
    /// Samples recorded.
    pub samples: AtomicU64,
    /// Processes that are profiled now.
    pub processes: AtomicU64,
    /// Records lost.
    pub lost: AtomicU64,
    /// Bytes of perf.data.
    pub bytes: AtomicU64,
}

/// The session's facts as they are at its start.
pub fn manifest(options: &SessionOptions, source: &Source) -> Manifest {
    let event = EventDesc {
        name: options.event.name.clone(),
        rate: match options.rate {
            Rate::Frequency(hz) => varid_recording::Rate::Frequency(hz),
            Rate::Period(period) => varid_recording::Rate::Period(period),
        },
        kind: options.event.kind,
        config: options.event.config,
    };
    let (kind, value) = match &options.target {
        TargetSpec::App(package) => (TargetKind::App, package.clone()),
        TargetSpec::Pid(pid) => (TargetKind::Pid, pid.to_string()),
        TargetSpec::All => (TargetKind::All, String::new()),
        TargetSpec::Command(_, line) => (TargetKind::Command, line.clone()),
    };
    let mut manifest = Manifest::new(event, source.kind(), Target { kind, value }, monotonic_ns());
    manifest.stack = options.stack;
    manifest
}
