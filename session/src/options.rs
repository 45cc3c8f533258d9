//! The options of a session, its status while it runs, and its errors.

use super::events::{limit_rates, resolve_events};
use super::recorder::RecorderError;
use crate::config::to_toml;
use crate::request::{Configured, TargetSpec, with_commas};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;
use varid_model::{Pid, Rate};
use varid_recording::{
    EventDesc, Manifest, Owner, SessionEvents, SessionTarget, StoredRequest, TargetKind,
};
use varid_sampler::event::{Group, Resolved};
use varid_sampler::open::max_frequency;
use varid_sampler::{SamplerError, Source, indexed_events, monotonic_ns};
use varid_vm::VmKinds;

/// What a session gets from the program that records it.
#[derive(Debug, Clone)]
pub struct ProgramContext {
    /// The user who has started the program with sudo.
    pub sudo_user: Option<Owner>,
    /// The user's cache folder.
    pub cache: PathBuf,
    /// The kinds of VM that are detected.
    pub vms: VmKinds,
}

/// The options of a session.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// The target.
    pub target: TargetSpec,
    /// The events, in the groups that are counted together. There is at least one.
    pub groups: Vec<Group>,
    /// Sentences about differences from the request.
    pub notes: Vec<String>,
    /// The session's folder.
    pub output: PathBuf,
    /// The owner of the complete folder, if root records for a user.
    pub owner: Option<Owner>,
    /// The user's cache folder.
    pub cache: PathBuf,
    /// The kinds of VM that are detected.
    pub vms: VmKinds,
    /// The configuration, and the request that it was made from.
    pub configured: Configured,
}

impl SessionOptions {
    /// Makes the options for a target and a configuration. `output`: the session's folder.
    ///
    /// # Errors
    ///
    /// An event that this machine does not have.
    pub fn new(
        target: TargetSpec,
        configured: Configured,
        output: PathBuf,
        context: ProgramContext,
    ) -> Result<Self, SessionError> {
        let settings = &configured.config.settings;
        let Resolved {
            mut groups,
            mut notes,
        } = resolve_events(&settings.events, settings.rate_or_default())?;
        // A default other than the usual one is not a problem of the request.
        let by_default = match settings.events.is_empty() {
            true => notes.len(),
            false => 0,
        };
        notes.extend(limit_rates(&mut groups, max_frequency()));
        for (place, note) in notes.iter().enumerate() {
            match place < by_default {
                true => tracing::info!("{note}"),
                false => tracing::warn!("{note}"),
            }
        }
        Ok(Self {
            target,
            groups,
            notes,
            // If sudo's user has named the folder, it becomes that user's. One that varid has named stays root's.
            owner: configured
                .request
                .output
                .folder
                .as_ref()
                .and(context.sudo_user),
            cache: context.cache,
            vms: context.vms,
            output,
            configured,
        })
    }
}

/// An error that prevents a session or ends it.
#[derive(Debug, Error)]
pub enum SessionError {
    /// Sampling failed.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    /// Recording failed.
    #[error(transparent)]
    Recorder(#[from] RecorderError),
    /// The address space is too small: a failed allocation would end the program.
    #[error(
        "the address space is limited to {} MB (ulimit -v), and a recorder needs {} MB at least", .limit >> 20, .least >> 20
    )]
    AddressSpace {
        /// The limit, in bytes.
        limit: u64,
        /// The required minimum, in bytes.
        least: u64,
    },
    /// The unprivileged source does not support the target.
    #[error(
        "profiling {0} needs the BPF shim (root, or CAP_BPF and CAP_PERFMON) or the kernel module; without them name one process with --pid or start it with 'varid record'"
    )]
    NeedsPrivilege(&'static str),
    /// There is no such process.
    #[error("no process has the id {0}")]
    NoProcess(Pid),
    /// The process belongs to another user.
    #[error("process {pid} belongs to {owner}: only that user and root may profile it")]
    NotOwn {
        /// The process.
        pid: Pid,
        /// The user's name or number.
        owner: String,
    },
    /// The source has no separate samples of the kernel that could be kept.
    #[error(
        "--keep-raw needs the BPF shim or the kernel module: the other source has no samples but the kernel's own"
    )]
    NoRaw,
    /// The kernel's own samples cannot be kept for groups that are read.
    #[error(
        "--keep-raw keeps no samples of groups that are read (':S', or a PMU whose interrupt does not arrive): leave it out, or sample the events one by one"
    )]
    NoRawOfGroups,
    /// The disk is full.
    #[error(
        "no space is left for {folder}: the session was ended, and holds what was recorded until then"
    )]
    Full {
        /// The session's folder.
        folder: PathBuf,
    },
    /// The file of raw samples cannot be written.
    #[error("cannot write {path}: {source}")]
    Raw {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
}

/// The status of a running session, and the way to stop it.
#[derive(Debug, Default)]
pub struct SessionControl {
    /// Set to end the session.
    pub stop: Arc<AtomicBool>,
    /// Number of samples recorded.
    pub samples: AtomicU64,
    /// Number of processes that are profiled now.
    pub processes: AtomicU64,
    /// Number of records lost.
    pub lost: AtomicU64,
    /// Size of perf.data in bytes.
    pub bytes: AtomicU64,
    live_status: Mutex<LiveStatus>,
}

/// Changes since the session's start.
#[derive(Debug, Default)]
struct LiveStatus {
    /// The result of the last reload of the configuration file.
    configuration: Option<String>,
    /// The current target.
    target: Option<String>,
}

impl SessionControl {
    /// Sets the result of a reload of the configuration file.
    pub fn report_configuration(&self, report: String) {
        self.live_status().configuration = Some(report);
    }

    /// The result of the last reload of the configuration file, or None if it has not changed.
    pub fn configuration_report(&self) -> Option<String> {
        self.live_status().configuration.clone()
    }

    /// Sets the current target.
    pub fn set_target(&self, target: String) {
        self.live_status().target = Some(target);
    }

    /// The current target, or None if it is the same as at the start.
    pub fn target(&self) -> Option<String> {
        self.live_status().target.clone()
    }

    fn live_status(&self) -> std::sync::MutexGuard<'_, LiveStatus> {
        // A panic cannot leave a partial change under this lock.
        self.live_status
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the manifest at the start of the session.
pub fn manifest(options: &SessionOptions, source: &Source) -> Manifest {
    let (kind, value) = match &options.target {
        TargetSpec::Named(kind, names) => (*kind, names.clone()),
        TargetSpec::Pids(pids) => (TargetKind::Pid, with_commas(pids)),
        TargetSpec::All => (TargetKind::All, String::new()),
        TargetSpec::Command(_, line) => (TargetKind::Command, line.clone()),
    };
    let mut manifest = Manifest::new(
        events(&options.groups),
        source.kind(),
        SessionTarget { kind, value },
        monotonic_ns(),
    );
    let Configured {
        config, request, ..
    } = &options.configured;
    manifest.stack = config.settings.stack.unwrap_or_default();
    manifest.tactic = config.settings.tactic.unwrap_or_default();
    manifest.notes.clone_from(&options.notes);
    manifest.configuration = to_toml(config);
    manifest.request = StoredRequest::new(&request.without_paths());
    manifest
}

/// Returns the events as the manifest lists them.
fn events(groups: &[Group]) -> SessionEvents {
    let mut leader = 0;
    let mut events = indexed_events(groups).map(|one| {
        if one.is_leader {
            leader = one.index;
        }
        let event = one.event;
        let first = event.encodings.first();
        let (kind, config) = first.map_or((0, 0), |first| (first.kind, first.config[0]));
        EventDesc {
            leader: (!one.is_leader && one.group.events.len() > 1).then_some(leader),
            unit: event.unit(),
            ..EventDesc::new(event.name.clone(), event.rate, kind, config)
        }
    });
    let first = events.next();
    SessionEvents {
        // A session samples at least one event.
        first: first.unwrap_or_else(|| EventDesc::new("none", Rate::READ, 0, 0)),
        others: events.collect(),
    }
}
