//! Converts what a perf.data file has about its recording to the terms of a session.

use varid_model::Rate;
use varid_model::perf::{
    PERF_COUNT_SW_BPF_OUTPUT, PERF_SAMPLE_RAW, PERF_TYPE_SOFTWARE, PERF_TYPE_TRACEPOINT,
};
use varid_recording::{EventDesc, Host, SessionEvents, SessionTarget, TargetKind};

use crate::{
    input::Input,
    perfdata::{Features, SourceEvent},
};

/// The events of the session, and the index in it for each event of the source. None if no event is sampled.
///
/// An event without samples of its own is included if it is read with the samples of an event before it. Tracepoints whose fields the
/// source does not describe become events like varid's own, for which perf shows no fields.
pub(crate) fn session_events(
    all: &[SourceEvent],
    tracing_data: &[u8],
) -> Option<(SessionEvents, Vec<Option<usize>>)> {
    let mut events = Vec::new();
    let mut places = Vec::new();
    // The last event whose samples have the counts of its group.
    let mut leader = None;
    for event in all {
        let is_read_only = event.is_read_only();
        if event.is_dummy() || is_read_only && leader.is_none() {
            places.push(None);
            continue;
        }
        let place = events.len();
        places.push(Some(place));
        let has_fields = event.layout.has(PERF_SAMPLE_RAW) && !tracing_data.is_empty();
        let (kind, config) = match event.kind {
            PERF_TYPE_TRACEPOINT if !has_fields => {
                (PERF_TYPE_SOFTWARE, PERF_COUNT_SW_BPF_OUTPUT.into())
            }
            kind => (kind, event.config),
        };
        let rate = match is_read_only {
            true => Rate::READ,
            false => event.rate,
        };
        let mut described = EventDesc::new(event.name.clone(), rate, kind, config);
        match is_read_only {
            true => described.leader = leader,
            false => leader = event.reads_group().then_some(place),
        }
        events.push(described);
    }
    let mut events = events.into_iter();
    let events = SessionEvents {
        first: events.next()?,
        others: events.collect(),
    };
    Some((events, places))
}

/// The machine of a recording. It is this machine if name, kernel and architecture are equal.
pub(crate) fn host(features: &Features) -> Host {
    let here = Host::this_machine();
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let is_here = !features.host_name.is_empty()
        && features.host_name == name.trim_end()
        && features.kernel == here.kernel
        && features.arch == here.arch;
    Host {
        kernel: features.kernel.clone(),
        arch: features.arch.clone(),
        machine: match is_here {
            true => here.machine,
            false => String::new(),
        },
        cpus: features.cpus,
    }
}

/// The target of the recording, according to the recorder's command line.
pub(crate) fn target(features: &Features, input: &Input) -> SessionTarget {
    let package = features.meta_info.get("app_package_name");
    if let Some(package) = package.filter(|package| !package.is_empty()) {
        return SessionTarget {
            kind: TargetKind::App,
            value: package.clone(),
        };
    }
    let value = match features.command[..] {
        [] => input.path.to_string_lossy().into_owned(),
        _ => features.command.join(" "),
    };
    SessionTarget {
        kind: TargetKind::Command,
        value,
    }
}

/// The number of samples that simpleperf itself lost. Losses of the kernel have records.
pub(crate) fn recorder_lost(features: &Features) -> u64 {
    let stat = features.meta_info.get("record_stat");
    let fields = stat.map_or("", String::as_str).split(',');
    let lost = fields.filter_map(|field| field.strip_prefix("userspace_lost_samples="));
    lost.filter_map(|count| count.parse::<u64>().ok())
        .fold(0, u64::saturating_add)
}
