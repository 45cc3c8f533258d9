//! What does a session record, what do others see of it while it runs, and how can it fail?

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

/// What a session needs of the program that records it.
#[derive(Debug, Clone)]
pub struct ProgramContext {
    /// The user who had sudo start the program.
    pub sudo_user: Option<Owner>,
    /// The user's cache folder.
    pub cache: PathBuf,
    /// The kinds of VM that are looked for.
    pub vms: VmKinds,
}

/// What a session records.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// Who is profiled.
    pub target: TargetSpec,
    /// The events, as they are counted together; one at least.
    pub groups: Vec<Group>,
    /// What is other than requested, as sentences.
    pub notes: Vec<String>,
    /// The session's folder.
    pub output: PathBuf,
    /// Who owns it when it is complete, where root records for a user.
    pub owner: Option<Owner>,
    /// The user's cache folder.
    pub cache: PathBuf,
    /// The kinds of VM that are looked for.
    pub vms: VmKinds,
    /// The configuration, and the request that it comes from.
    pub configured: Configured,
}

impl SessionOptions {
    /// The session of a target that a configuration describes; `output`: its folder.
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
        // A default that is not the usual one is nothing that went wrong.
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
            // A folder that sudo's user names becomes that user's. One that varid names stays root's.
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

/// Why a session failed.
#[derive(Debug, Error)]
pub enum SessionError {
    /// Sampling.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    /// Recording.
    #[error(transparent)]
    Recorder(#[from] RecorderError),
    /// There is too little address space: what cannot be allocated ends the program.
    #[error(
        "the address space is limited to {} MB (ulimit -v), and a recorder needs {} MB at least", .limit >> 20, .least >> 20
    )]
    AddressSpace {
        /// The limit, in bytes.
        limit: u64,
        /// What is needed.
        least: u64,
    },
    /// The unprivileged source cannot do that.
    #[error(
        "profiling {0} needs the BPF shim (root, or CAP_BPF and CAP_PERFMON) or the kernel module; without them name one process with --pid or start it with 'varid record'"
    )]
    NeedsPrivilege(&'static str),
    /// There is no such process.
    #[error("no process has the id {0}")]
    NoProcess(Pid),
    /// The process belongs to somebody else.
    #[error("process {pid} belongs to {owner}: only that user and root may profile it")]
    NotOwn {
        /// The process.
        pid: Pid,
        /// The user's name, or number.
        owner: String,
    },
    /// The kernel's own samples cannot be kept.
    #[error(
        "--keep-raw needs the BPF shim or the kernel module: the other source has no samples but the kernel's own"
    )]
    NoRaw,
    /// The kernel's own samples cannot be kept for groups that are read.
    #[error(
        "--keep-raw keeps no samples of groups that are read (':S', or a PMU whose interrupt does not arrive): leave it out, or sample the events one by one"
    )]
    NoRawOfGroups,
    /// There is no room for the recording any more.
    #[error(
        "no space is left for {folder}: the session was ended, and holds what was recorded until then"
    )]
    Full {
        /// The session's folder.
        folder: PathBuf,
    },
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
    live_status: Mutex<LiveStatus>,
}

/// What has changed since the session started.
#[derive(Debug, Default)]
struct LiveStatus {
    /// What became of the configuration file when it was last read again.
    configuration: Option<String>,
    /// What is profiled now.
    target: Option<String>,
}

impl SessionControl {
    /// Says what became of the configuration file.
    pub fn report_configuration(&self, report: String) {
        self.live_status().configuration = Some(report);
    }

    /// What became of the configuration file; None: it has not changed.
    pub fn configuration_report(&self) -> Option<String> {
        self.live_status().configuration.clone()
    }

    /// Says what is profiled now.
    pub fn set_target(&self, target: String) {
        self.live_status().target = Some(target);
    }

    /// What is profiled now; None: the same as at the start.
    pub fn target(&self) -> Option<String> {
        self.live_status().target.clone()
    }

    fn live_status(&self) -> std::sync::MutexGuard<'_, LiveStatus> {
        // No change is left half done under this lock.
        self.live_status
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The manifest as it is when the session starts.
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

/// The events as the manifest lists them.
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
            ..EventDesc::new(event.name.clone(), event.rate, kind, config)
        }
    });
    let first = events.next();
    SessionEvents {
        // A session samples one event at least.
        first: first.unwrap_or_else(|| EventDesc::new("none", Rate::READ, 0, 0)),
        others: events.collect(),
    }
}
