//! Runs the shim at each hit of a tracepoint or a probe.

use crate::SamplerError;
use crate::event::probe::Probe;
use crate::event::{Event, HitSource, thread_time_period};
use crate::online_cpus;
use crate::open::{base_attr, open};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use varid_shim::Shim;

/// The place that an event's shim is attached to.
#[derive(Debug)]
pub enum Hits {
    /// A raw tracepoint, by its name without its system.
    Tracepoint(String),
    /// A probe.
    Probe {
        /// The event's name.
        name: String,
        /// Its perf event: the probe is placed while this is open. None after sampling has ended.
        event: Option<OwnedFd>,
    },
}

impl Hits {
    /// Loads the shim of an event, and places the probe. Sampling does not start yet.
    pub fn load(
        source: &HitSource,
        event: &Event,
        ring_pages: usize,
    ) -> Result<(Shim, Self), SamplerError> {
        let (pages, period) = (ring_pages.max(1), thread_time_period(event.rate));
        Ok(match source {
            HitSource::Tracepoint(name) => (
                Shim::load_for_tracepoint(pages, period)?,
                Self::Tracepoint(name.clone()),
            ),
            HitSource::Probe(probe) => {
                let shim = Shim::load_for_probe(pages, period)?;
                let refused = |source| SamplerError::Probe {
                    event: event.name.clone(),
                    source,
                };
                // The program runs at hits on all CPUs, so the event may be on any of them.
                let cpu = online_cpus()?.first().copied().unwrap_or_default();
                let hits = Self::Probe {
                    name: event.name.clone(),
                    event: Some(place(probe, cpu).map_err(refused)?),
                };
                (shim, hits)
            }
        })
    }

    /// Returns true if the callchain has the tracepoint's own functions between the program and the traced code.
    pub fn are_of_tracepoint(&self) -> bool {
        matches!(self, Self::Tracepoint(_))
    }

    /// Starts sampling the hits.
    pub fn enable(&mut self, shim: &Shim) -> Result<(), SamplerError> {
        match self {
            Self::Tracepoint(name) => Ok(shim.attach_to_tracepoint(name)?),
            Self::Probe { event: None, .. } => Ok(()),
            Self::Probe {
                name,
                event: Some(event),
            } => {
                let attached = shim.attach_to_probe(event.as_fd());
                attached.map_err(|source| SamplerError::Probe {
                    event: name.clone(),
                    source,
                })
            }
        }
    }

    /// Stops sampling the hits.
    pub fn disable(&mut self, shim: &Shim) -> Result<(), SamplerError> {
        match self {
            Self::Tracepoint(_) => Ok(shim.detach_from_tracepoint()?),
            Self::Probe { event, .. } => {
                event.take();
                Ok(())
            }
        }
    }
}

/// Places a probe. Its event stays disabled, because it has no samples of its own.
fn place(probe: &Probe, cpu: u32) -> io::Result<OwnedFd> {
    let mut attr = base_attr(probe.kind, probe.config);
    if let Some(code) = &probe.code {
        // The kernel reads the text only while it opens the event.
        attr.config1 = code.of.as_ptr() as u64;
        attr.config2 = code.offset;
    }
    open(&mut attr, -1, i32::try_from(cpu).unwrap_or_default(), None)
}
