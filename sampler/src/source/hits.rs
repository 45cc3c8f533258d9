//! Runs the shim at each hit of a tracepoint or a probe.

use crate::SamplerError;
use crate::event::jvm::{JvmEvent, Libjvm};
use crate::event::probe::{Probe, ProbedCode};
use crate::event::{Event, HitSource, thread_time_period};
use crate::online_cpus;
use crate::open::{base_attr, open};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use varid_shim::{HitWeight, Shim};

/// The places that an event's shim is attached to.
#[derive(Debug)]
pub enum Hits {
    /// A raw tracepoint, by its name without its system.
    Tracepoint(String),
    /// A probe.
    Probe(PlacedProbes),
    /// Functions of each libjvm that has been added.
    Jvm {
        /// The event.
        event: JvmEvent,
        /// `perf_event_attr.type` of uprobes.
        kind: u32,
        /// The probes in these functions.
        placed: PlacedProbes,
    },
}

/// Probes of an event.
#[derive(Debug)]
pub struct PlacedProbes {
    /// The event's name.
    name: String,
    /// Their perf events: a probe is placed while its event is open.
    events: Vec<OwnedFd>,
    stage: Stage,
}

/// Whether hits are sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    NotYet,
    Sampling,
    Ended,
}

impl Hits {
    /// Loads the shim of an event, and places the probe. Sampling does not start yet.
    pub fn load(
        source: &HitSource,
        event: &Event,
        ring_pages: usize,
    ) -> Result<(Shim, Self), SamplerError> {
        let (pages, period) = (ring_pages.max(1), thread_time_period(event.rate));
        let mut placed = PlacedProbes {
            name: event.name.clone(),
            events: Vec::new(),
            stage: Stage::NotYet,
        };
        Ok(match source {
            HitSource::Tracepoint(name) => (
                Shim::load_for_tracepoint(pages, period)?,
                Self::Tracepoint(name.clone()),
            ),
            HitSource::Probe(probe) => {
                let shim = Shim::load_for_probe(pages, period, HitWeight::One)?;
                placed.add(probe, &shim)?;
                (shim, Self::Probe(placed))
            }
            HitSource::Jvm { event, kind } => {
                let shim = Shim::load_for_probe(pages, period, event.weight())?;
                let (event, kind) = (*event, *kind);
                let hits = Self::Jvm {
                    event,
                    kind,
                    placed,
                };
                (shim, hits)
            }
        })
    }

    /// Returns true if the callchain has the tracepoint's own functions between the program and the traced code.
    pub fn are_of_tracepoint(&self) -> bool {
        matches!(self, Self::Tracepoint(_))
    }

    /// Also samples the hits in a library of HotSpot, if the event is one of HotSpot's.
    pub fn add_libjvm(&mut self, library: &Libjvm<'_>, shim: &Shim) -> Result<(), SamplerError> {
        let Self::Jvm {
            event,
            kind,
            placed,
        } = self
        else {
            return Ok(());
        };
        let path = CString::new(library.path()).unwrap_or_default();
        for offset in event.places(library)? {
            let of = path.clone();
            let probe = Probe {
                kind: *kind,
                config: 0,
                code: Some(ProbedCode { of, offset }),
            };
            placed.add(&probe, shim)?;
        }
        Ok(())
    }

    /// Starts sampling the hits.
    pub fn enable(&mut self, shim: &Shim) -> Result<(), SamplerError> {
        match self {
            Self::Tracepoint(name) => Ok(shim.attach_to_tracepoint(name)?),
            Self::Probe(placed) | Self::Jvm { placed, .. } => placed.enable(shim),
        }
    }

    /// Stops sampling the hits.
    pub fn disable(&mut self, shim: &Shim) -> Result<(), SamplerError> {
        match self {
            Self::Tracepoint(_) => Ok(shim.detach_from_tracepoint()?),
            Self::Probe(placed) | Self::Jvm { placed, .. } => {
                placed.events.clear();
                placed.stage = Stage::Ended;
                Ok(())
            }
        }
    }
}

impl PlacedProbes {
    /// Places a probe. Its hits are sampled once those of the event are.
    fn add(&mut self, probe: &Probe, shim: &Shim) -> Result<(), SamplerError> {
        if self.stage == Stage::Ended {
            return Ok(());
        }
        // The program runs at hits on all CPUs, so the event may be on any of them.
        let cpu = online_cpus()?.first().copied().unwrap_or_default();
        let event = place(probe, cpu).map_err(|source| self.refused(source))?;
        if self.stage == Stage::Sampling {
            self.attach(&event, shim)?;
        }
        self.events.push(event);
        Ok(())
    }

    fn enable(&mut self, shim: &Shim) -> Result<(), SamplerError> {
        if self.stage == Stage::NotYet {
            self.stage = Stage::Sampling;
        }
        let mut events = self.events.iter();
        events.try_for_each(|event| self.attach(event, shim))
    }

    fn attach(&self, event: &OwnedFd, shim: &Shim) -> Result<(), SamplerError> {
        let attached = shim.attach_to_probe(event.as_fd());
        attached.map_err(|source| self.refused(source))
    }

    fn refused(&self, source: io::Error) -> SamplerError {
        SamplerError::Probe {
            event: self.name.clone(),
            source,
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
