//! Events that are sampled at each hit of a place in the code: tracepoints, probes, and those of HotSpot.

use super::jvm::JvmEvent;
use super::pmu::Pmu;
use super::probe::{Probe, UPROBE, pmu_type};
use super::probe_text::ProbeText;
use super::tracefs;
use super::{Event, Rate};
use crate::SamplerError;
use std::path::Path;
use varid_model::perf;

/// The place whose hits are sampled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HitSource {
    /// A raw tracepoint, by its name without its system.
    Tracepoint(String),
    /// A uprobe or kprobe.
    Probe(Probe),
    /// Functions of HotSpot, in each libjvm that a process of the target loads.
    Jvm {
        /// The event.
        event: JvmEvent,
        /// `perf_event_attr.type` of uprobes.
        kind: u32,
    },
}

impl HitSource {
    /// Parses `SYSTEM:NAME`: the name of a probe in tracefs, or a tracepoint.
    pub fn named(system: &str, name: &str) -> Result<Self, SamplerError> {
        if let Some(id) = tracefs::probe_id(Path::new("/"), system, name) {
            return Ok(Self::Probe(Probe::in_tracefs(id)));
        }
        // Raw tracepoints are found by their name alone, so a dynamic system must not select the kernel's own one of that name.
        if tracefs::is_dynamic(system) {
            return Err(SamplerError::NoDynamicEvent {
                event: format!("{system}:{name}"),
            });
        }
        Ok(Self::Tracepoint(name.to_owned()))
    }

    /// Returns the event with this name.
    pub fn event(self, name: &str, rate: Rate) -> Event {
        // As with perf, every hit is sampled unless a period is given.
        let rate = match rate {
            Rate::Frequency(_) => Rate::Period(1),
            Rate::Period(period) => Rate::Period(period.max(1)),
        };
        let config = u64::from(perf::PERF_COUNT_SW_BPF_OUTPUT);
        Event {
            hits: Some(self),
            // Not a tracepoint's type: for samples of it, perf's readers require the tracepoint's format. The name identifies the
            // event.
            ..Event::generic(name, perf::PERF_TYPE_SOFTWARE, config, rate)
        }
    }
}

/// Returns the event of a probe's text.
pub fn of_probe(
    text: &str,
    probe: &ProbeText,
    rate: Rate,
    pmus: &[Pmu],
) -> Result<Event, SamplerError> {
    let probe = probe.resolve(text, pmus)?;
    Ok(HitSource::Probe(probe).event(text, rate))
}

/// Returns an event of HotSpot under the name that the user gave.
pub fn of_jvm(
    name: &str,
    event: JvmEvent,
    rate: Rate,
    pmus: &[Pmu],
) -> Result<Event, SamplerError> {
    let kind = pmu_type(name, UPROBE, pmus)?;
    Ok(HitSource::Jvm { event, kind }.event(name, rate))
}
