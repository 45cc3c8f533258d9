//! What does a perf.data say of its recording, in a session's terms?

use varid_model::Rate;
use varid_recording::{EventDesc, Host, SessionEvents, SessionTarget, TargetKind};

use crate::{
    input::Input,
    perfdata::{Features, SourceEvent},
};

/// The events of the session, and which of them each event of the source is. None: none of them is sampled.
pub(crate) fn session_events(all: &[SourceEvent]) -> Option<(SessionEvents, Vec<Option<usize>>)> {
    let mut events = Vec::new();
    let mut places = Vec::new();
    for event in all {
        if event.is_dummy() || event.rate == Rate::READ {
            places.push(None);
            continue;
        }
        places.push(Some(events.len()));
        let (name, rate) = (event.name.clone(), event.rate);
        events.push(EventDesc::new(name, rate, event.kind, event.config));
    }
    let mut events = events.into_iter();
    let events = SessionEvents {
        first: events.next()?,
        others: events.collect(),
    };
    Some((events, places))
}

/// The machine of a recording. It is this one if its name, kernel and architecture are.
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

/// What was recorded, as far as the recorder's command line tells.
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

/// Samples that simpleperf itself has lost; what the kernel lost has records.
pub(crate) fn recorder_lost(features: &Features) -> u64 {
    let stat = features.meta_info.get("record_stat");
    let fields = stat.map_or("", String::as_str).split(',');
    let lost = fields.filter_map(|field| field.strip_prefix("userspace_lost_samples="));
    lost.filter_map(|count| count.parse::<u64>().ok())
        .fold(0, u64::saturating_add)
}
