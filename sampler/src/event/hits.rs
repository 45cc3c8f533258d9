//! Which events have a sample each time that a thread comes by a place: tracepoints and probes.

use super::pmu::Pmu;
use super::probe::Probe;
use super::probe_text::ProbeText;
use super::tracefs;
use super::{Event, Rate};
use crate::SamplerError;
use std::path::Path;
use varid_model::perf;

/// Where threads come by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HitSource {
    /// A raw tracepoint, by its name without its system.
    Tracepoint(String),
    /// A uprobe or kprobe.
    Probe(Probe),
}

impl HitSource {
    /// `SYSTEM:NAME`: a probe that tracefs has under this name, or a tracepoint.
    pub fn named(system: &str, name: &str) -> Result<Self, SamplerError> {
        if let Some(id) = tracefs::probe_id(Path::new("/"), system, name) {
            return Ok(Self::Probe(Probe::in_tracefs(id)));
        }
        // The system of a raw tracepoint does not matter: the kernel's own one of this name is not meant.
        if tracefs::is_dynamic(system) {
            return Err(SamplerError::NoDynamicEvent {
                event: format!("{system}:{name}"),
            });
        }
        Ok(Self::Tracepoint(name.to_owned()))
    }

    /// The event of this name.
    pub fn event(self, name: &str, rate: Rate) -> Event {
        // Each hit has a sample unless a period is asked for, as with perf.
        let rate = match rate {
            Rate::Frequency(_) => Rate::Period(1),
            Rate::Period(period) => Rate::Period(period.max(1)),
        };
        let config = u64::from(perf::PERF_COUNT_SW_BPF_OUTPUT);
        Event {
            hits: Some(self),
            // perf's readers want a tracepoint's format with samples of its type. The name says what it is.
            ..Event::generic(name, perf::PERF_TYPE_SOFTWARE, config, rate)
        }
    }
}

/// The event of a probe's text.
pub fn of_probe(
    text: &str,
    probe: &ProbeText,
    rate: Rate,
    pmus: &[Pmu],
) -> Result<Event, SamplerError> {
    let probe = probe.resolve(text, pmus)?;
    Ok(HitSource::Probe(probe).event(text, rate))
}
