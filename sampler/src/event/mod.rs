//! The events that are sampled and counted, their rates and their attributes.
//!
//! [`syntax`] and [`probe_text`] parse the text of `-e`, [`names`] and [`pmu`] hold the events of the kernel and of the PMUs, and
//! [`resolve`] combines both to events. [`hits`], [`jvm`] and [`probe`] make the events of tracepoints, of HotSpot and of probes.

mod debug_files;
mod hits;
pub mod jvm;
pub mod modifiers;
pub mod names;
pub mod pmu;
pub mod probe;
mod probe_text;
mod resolve;
pub mod syntax;
mod thread_time;
mod tracefs;

pub use hits::HitSource;
pub use jvm::JvmEvent;
pub use resolve::{Resolved, resolve};
pub use thread_time::TimeEvent;
pub(crate) use thread_time::nanoseconds as thread_time_period;
pub use varid_model::Rate;
pub use varid_shim::WaitKind;

use super::open::{base_attr, open};
use modifiers::Modifiers;
use pmu::{Config, Pmu};
use varid_model::perf;
use varid_recording::EventUnit;

/// Events that the kernel schedules together: either all of them have counters, or none has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The leader, then the others.
    pub events: Vec<Event>,
    /// If true, only the leader is sampled, and the counts of the members are read with each of its samples.
    pub reads: bool,
}

impl From<Event> for Group {
    fn from(event: Event) -> Self {
        Self {
            events: vec![event],
            reads: false,
        }
    }
}

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its name as in `-e`, with modifiers: `cycles:u`.
    pub name: String,
    /// Its encodings, one for each type of PMU that has it; at least one.
    pub encodings: Vec<Encoding>,
    /// Its modifiers.
    pub modifiers: Modifiers,
    /// How often it is sampled.
    pub rate: Rate,
    /// The kind of time, for events computed from scheduler switches. None for other events, and for time that perf_event_open(2)
    /// counts alone.
    pub time: Option<TimeEvent>,
    /// The place whose hits are sampled. None if the event is sampled by perf_event_open(2) or is an event of time.
    pub hits: Option<HitSource>,
}

/// How an event is encoded for a type of PMU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoding {
    /// `perf_event_attr.type`: `PERF_TYPE_*`, or the type of a PMU.
    pub kind: u32,
    /// `config`, `config1`, `config2`.
    pub config: Config,
    /// The CPUs of the PMU, or None for all.
    pub cpus: Option<Vec<u32>>,
    /// The largest `precise_ip` of the PMU.
    pub max_precise: u8,
}

impl Event {
    /// An event that has a number in the kernel's ABI.
    fn generic(name: &str, kind: u32, config: u64, rate: Rate) -> Self {
        Self {
            name: name.to_owned(),
            encodings: vec![Encoding {
                kind,
                config: [config, 0, 0],
                cpus: None,
                max_precise: 0,
            }],
            modifiers: Modifiers::default(),
            rate,
            time: None,
            hits: None,
        }
    }

    /// `cpu-clock`, the kernel's timer.
    pub fn cpu_clock(rate: Rate) -> Self {
        let config = u64::from(perf::PERF_COUNT_SW_CPU_CLOCK);
        Self::generic("cpu-clock", perf::PERF_TYPE_SOFTWARE, config, rate)
    }

    /// `cycles`, of the CPU's PMU.
    pub fn cycles(rate: Rate) -> Self {
        let config = u64::from(perf::PERF_COUNT_HW_CPU_CYCLES);
        Self::generic("cycles", perf::PERF_TYPE_HARDWARE, config, rate)
    }

    /// Returns true if the event is opened by perf_event_open(2).
    pub fn is_opened(&self) -> bool {
        !matches!(self.time, Some(TimeEvent::Wait(_))) && self.hits.is_none()
    }

    /// Returns true if only the BPF shim's programs can sample it.
    pub fn needs_bpf(&self) -> bool {
        self.time.is_some() || self.hits.is_some()
    }

    /// Returns the unit of its periods, if its encoding does not tell it.
    pub fn unit(&self) -> Option<EventUnit> {
        match &self.hits {
            Some(HitSource::Jvm { event, .. }) => Some(event.unit()),
            _ => None,
        }
    }

    /// Returns true if a PMU counts it, rather than the kernel in software.
    pub fn is_hardware(&self) -> bool {
        let in_software = [
            perf::PERF_TYPE_SOFTWARE,
            perf::PERF_TYPE_TRACEPOINT,
            perf::PERF_TYPE_BREAKPOINT,
        ];
        self.encodings
            .iter()
            .any(|encoding| !in_software.contains(&encoding.kind))
    }

    /// Returns true for `cpu-clock` and `task-clock`.
    pub fn is_timer(&self) -> bool {
        let clocks = [
            perf::PERF_COUNT_SW_CPU_CLOCK,
            perf::PERF_COUNT_SW_TASK_CLOCK,
        ];
        self.encodings.iter().any(|encoding| {
            let in_software = encoding.kind == perf::PERF_TYPE_SOFTWARE;
            in_software && clocks.map(u64::from).contains(&encoding.config[0])
        })
    }

    /// Returns true if perf_event_open(2) opens it for this process's own user code.
    pub fn opens(&self) -> bool {
        let user = Self {
            modifiers: Modifiers {
                exclude_kernel: true,
                ..self.modifiers
            },
            rate: Rate::Period(1_000_000),
            ..self.clone()
        };
        let mut attrs = user.encodings.iter().map(|encoding| user.attr(encoding));
        attrs.any(|mut attr| open(&mut attr, 0, -1, None).is_ok())
    }

    /// Returns its attribute on a CPU, or None if the CPU's PMU does not have it.
    pub fn attr_on(&self, cpu: u32) -> Option<perf::EventAttr> {
        let counts = |encoding: &&Encoding| {
            let cpus = encoding.cpus.as_ref();
            cpus.is_none_or(|cpus| cpus.contains(&cpu))
        };
        let encoding = self.encodings.iter().find(counts)?;
        Some(self.attr(encoding))
    }

    /// Returns the attribute of an encoding: disabled, with times of CLOCK_MONOTONIC and the same sample_id in every record.
    pub fn attr(&self, encoding: &Encoding) -> perf::EventAttr {
        let [config, config1, config2] = encoding.config;
        let mut attr = base_attr(encoding.kind, config);
        attr.config1 = config1;
        attr.config2 = config2;
        self.modifiers.apply(&mut attr);
        attr.set_precise_ip(self.modifiers.precise.min(encoding.max_precise));
        attr.read_format =
            u64::from(perf::PERF_FORMAT_TOTAL_TIME_ENABLED | perf::PERF_FORMAT_TOTAL_TIME_RUNNING);
        match self.rate {
            Rate::Frequency(hz) => {
                attr.set_freq(true);
                attr.sample_period = hz;
            }
            Rate::Period(period) => attr.sample_period = period,
        }
        attr
    }
}

/// The names of all events: those of the kernel's ABI, then those of the CPUs' PMUs.
pub fn all_names(pmus: &[Pmu]) -> Vec<String> {
    let mut all = names::listed();
    for pmu in pmus.iter().filter(|pmu| pmu.core) {
        let own = pmu.events.keys();
        all.extend(own.map(|event| format!("{}/{event}/", pmu.name)));
    }
    all
}
