//! How does the shim run each time that a thread comes by a tracepoint or a probe?

use crate::SamplerError;
use crate::event::probe::Probe;
use crate::event::{Event, HitSource, thread_time_period};
use crate::online_cpus;
use crate::open::{base_attr, open};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use varid_shim::Shim;

/// What an event's shim is attached to.
#[derive(Debug)]
pub enum Hits {
    /// A raw tracepoint, by its name without its system.
    Tracepoint(String),
    /// A probe. While its event is open the kernel stops at it; None: sampling has ended.
    Probe {
        /// The event's name.
        name: String,
        /// Its perf event.
        event: Option<OwnedFd>,
    },
}

impl Hits {
    /// Loads the shim of an event, and has the kernel place the probe. Nothing is sampled yet.
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
                // The program runs at the hits on all CPUs, whatever CPU the event is of.
                let cpu = online_cpus()?.first().copied().unwrap_or_default();
                let hits = Self::Probe {
                    name: event.name.clone(),
                    event: Some(place(probe, cpu).map_err(refused)?),
                };
                (shim, hits)
            }
        })
    }

    /// Whether a tracepoint's own functions lie between the program and who comes by.
    pub fn are_of_tracepoint(&self) -> bool {
        matches!(self, Self::Tracepoint(_))
    }

    /// From now on each hit has a sample.
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

    /// From now on none has.
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

/// Has the kernel stop at a probe. The event stays disabled: it has no samples of its own.
fn place(probe: &Probe, cpu: u32) -> io::Result<OwnedFd> {
    let mut attr = base_attr(probe.kind, probe.config);
    if let Some(code) = &probe.code {
        // The kernel reads the text while it opens the event.
        attr.config1 = code.of.as_ptr() as u64;
        attr.config2 = code.offset;
    }
    open(&mut attr, -1, i32::try_from(cpu).unwrap_or_default(), None)
}
