//! Creates a session: everything before its first record.

use super::options::manifest;
use super::output::Output;
use super::processes::calls::Calls;
use super::processes::selection::Selection;
use super::processes::tracker::Tracker;
use super::processes::{ProcessOptions, Processes};
use super::raw::RawFile;
use super::recorder::{Recorder, RecorderError};
use super::reload::Configuration;
use super::samples::SampleWriter;
use super::sampling::Sampling;
use super::schedule::Schedule;
use super::{Session, SessionControl, SessionError, SessionOptions, losses::Losses, tasks};
use crate::request::{Configured, TargetSpec};
use nix::sys::resource::{Resource, getrlimit};
use std::path::Path;
use std::sync::Arc;
use varid_model::Stack;
use varid_process::raise_limit_of_files;
use varid_recording::RAW_DATA;
use varid_sampler::{Sampler, SamplerOptions, Source, choose};
use varid_shim::STACK_FULL;

/// Bytes of stack that are copied with a sample if frames cannot be walked in the kernel.
const STACK_COPY: u32 = 32768;

/// The address space that a recorder on two processors needs for its rings, its threads' stacks and BPF maps: 150 MB do not
/// suffice.
const LEAST_ADDRESS_SPACE: u64 = 192 << 20;

/// Returns an error if an allocation would end the program sooner or later.
fn check_address_space() -> Result<(), SessionError> {
    let least = LEAST_ADDRESS_SPACE;
    #[allow(clippy::useless_conversion)] // Half as wide on ARMv7.
    let limit = getrlimit(Resource::RLIMIT_AS).map(|(limit, _)| u64::from(limit));
    match limit {
        Ok(limit) if limit < least => Err(SessionError::AddressSpace { limit, least }),
        _ => Ok(()),
    }
}

/// Opens the events, without enabling them, and creates the recording.
pub fn open(
    options: SessionOptions,
    control: Arc<SessionControl>,
) -> Result<Session, SessionError> {
    check_address_space()?;
    // The recorded command has been started before, with the original limit.
    raise_limit_of_files();
    check_alive(&options.target)?;
    if varid_process::reader::may_block() {
        tracing::warn!(
            "this program does not call serve_if_helper: a process that never answers can block the session"
        );
    }
    let sampling = open_sampling(&options)?;
    let about = sampling.with(|sampler| manifest(&options, sampler.source()));
    let (settings, output) = (
        &options.configured.config.settings,
        &options.configured.request.output,
    );
    let (folder, cache) = (&options.output, &options.cache);
    let mut recorder = Recorder::create(folder, about, options.owner, cache)?;
    recorder.keep_symbols(output.keep_symbols);
    if output.compress {
        recorder.writer().compress();
    }
    let raw = match output.keep_raw {
        true => Some(sampling.with(|sampler| raw_file(&mut recorder, folder, sampler))?),
        false => None,
    };
    let stack = settings.stack.unwrap_or_default();
    let tactic = settings.tactic.unwrap_or_default();
    let selection = Selection::of(&options.configured.config);
    let tracker = Tracker::new(options.target, selection);
    let calls = Calls::new(tactic, output.log_calls, folder);
    let processes = ProcessOptions {
        limit: settings.limits.processes,
        stack,
        vms: options.vms,
    };
    Ok(Session {
        control,
        sampling,
        processes: Processes::new(tracker, calls, processes),
        samples: SampleWriter::new(stack),
        losses: Losses::default(),
        output: Output::new(recorder, raw, options.output),
        schedule: Schedule::start(),
        configuration: Configuration::new(options.configured),
    })
}

/// Opens the events with the chosen source of samples.
fn open_sampling(options: &SessionOptions) -> Result<Sampling, SessionError> {
    let Configured {
        config, request, ..
    } = &options.configured;
    let sampler = SamplerOptions {
        groups: options.groups.clone(),
        keep_raw: request.output.keep_raw,
        raw_stack: match config.settings.stack.unwrap_or_default() {
            Stack::Full => STACK_FULL as u32,
            Stack::Vertical | Stack::None => 0,
        },
        stack_copy: STACK_COPY,
        ring_pages: request.sampling.ring_pages,
    };
    Ok(Sampling::open(sampler, choose_source(options)?)?)
}

/// Checks that the processes of a target are running that are named by their ids.
fn check_alive(target: &TargetSpec) -> Result<(), SessionError> {
    let pids = match target {
        TargetSpec::Pids(pids) => pids.as_slice(),
        TargetSpec::Command(pid, _) => std::slice::from_ref(pid),
        TargetSpec::Named(..) | TargetSpec::All => &[],
    };
    match pids.iter().find(|pid| !tasks::is_alive(**pid)) {
        Some(pid) => Err(SessionError::NoProcess(*pid)),
        None => Ok(()),
    }
}

/// Chooses a source of samples that supports the request.
fn choose_source(options: &SessionOptions) -> Result<Source, SessionError> {
    let request = &options.configured.request;
    let keeps_raw = request.output.keep_raw;
    let own_ring = match keeps_raw {
        true => 0,
        false => request.sampling.ring_pages,
    };
    let source = choose(request.sampling.shim, &options.groups, own_ring)?;
    if !source.is_system_wide() {
        match &options.target {
            TargetSpec::All => return Err(SessionError::NeedsPrivilege("all processes")),
            _ if keeps_raw => return Err(SessionError::NoRaw),
            _ => {}
        }
    }
    if keeps_raw && options.groups.iter().any(|group| group.reads) {
        return Err(SessionError::NoRawOfGroups);
    }
    Ok(source)
}

/// Creates the file of the kernel's own samples.
fn raw_file(
    recorder: &mut Recorder,
    folder: &Path,
    sampler: &Sampler,
) -> Result<RawFile, SessionError> {
    let file = recorder.writer().create_file(RAW_DATA);
    let file = file.map_err(RecorderError::from)?;
    RawFile::start(file, &sampler.raw_attrs()).map_err(|source| SessionError::Raw {
        path: folder.join(RAW_DATA),
        source,
    })
}
