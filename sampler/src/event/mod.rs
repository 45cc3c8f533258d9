//! Which events are counted and sampled, how often, and the kernel's form of them.
//!
//! [`syntax`] takes the words of `-e` apart, [`names`] and [`pmu`] know what they mean,
//! [`resolve`] puts both together.

pub mod modifiers;
pub mod names;
pub mod pmu;
mod resolve;
pub mod syntax;

pub use resolve::{Resolved, resolve};
pub use varid_model::Rate;

use super::open::{base_attr, open};
use modifiers::Modifiers;
use pmu::{Config, Pmu};
use varid_model::perf;

/// Events that are counted together: all of them have counters, or none has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The leader, then the others.
    pub events: Vec<Event>,
    /// Only the leader is sampled, the others are read with each of its samples.
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
    /// As it was given, with modifiers: `cycles:u`.
    pub name: String,
    /// One for each kind of PMU that has it, at least one.
    pub encodings: Vec<Encoding>,
    /// Whose code counts, and how exactly.
    pub modifiers: Modifiers,
    /// How often it is sampled.
    pub rate: Rate,
}

/// What a PMU calls an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoding {
    /// `PERF_TYPE_*`, or the PMU's own.
    pub kind: u32,
    /// config, config1, config2.
    pub config: Config,
    /// The CPUs that count it; none: the kernel knows.
    pub cpus: Option<Vec<u32>>,
    /// The largest `precise_ip` that is taken.
    pub max_precise: u8,
}

impl Event {
    /// An event that the kernel names itself.
    fn of_the_kernel(name: &str, (kind, config): (u32, u64), rate: Rate) -> Self {
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
        }
    }

    /// The kernel's timer.
    pub fn cpu_clock(rate: Rate) -> Self {
        const CPU_CLOCK: (u32, u64) = (
            perf::PERF_TYPE_SOFTWARE,
            perf::PERF_COUNT_SW_CPU_CLOCK as u64,
        );
        Self::of_the_kernel("cpu-clock", CPU_CLOCK, rate)
    }

    /// The PMU's cycles.
    pub fn cycles(rate: Rate) -> Self {
        const CYCLES: (u32, u64) = (
            perf::PERF_TYPE_HARDWARE,
            perf::PERF_COUNT_HW_CPU_CYCLES as u64,
        );
        Self::of_the_kernel("cycles", CYCLES, rate)
    }

    /// Whether a PMU counts it, not the kernel.
    pub fn is_hardware(&self) -> bool {
        let of_the_kernel = [
            perf::PERF_TYPE_SOFTWARE,
            perf::PERF_TYPE_TRACEPOINT,
            perf::PERF_TYPE_BREAKPOINT,
        ];
        self.encodings
            .iter()
            .any(|encoding| !of_the_kernel.contains(&encoding.kind))
    }

    /// Whether it is a clock of the kernel's.
    pub fn is_timer(&self) -> bool {
        let clocks = [
            perf::PERF_COUNT_SW_CPU_CLOCK,
            perf::PERF_COUNT_SW_TASK_CLOCK,
        ];
        self.encodings.iter().any(|encoding| {
            let of_the_kernel = encoding.kind == perf::PERF_TYPE_SOFTWARE;
            of_the_kernel && clocks.map(u64::from).contains(&encoding.config[0])
        })
    }

    /// Whether this process may sample it in its own user code.
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

    /// What the kernel is asked for on a CPU; none: nothing there counts it.
    pub fn attr_on(&self, cpu: u32) -> Option<perf::EventAttr> {
        let counts = |encoding: &&Encoding| {
            let cpus = encoding.cpus.as_ref();
            cpus.is_none_or(|cpus| cpus.contains(&cpu))
        };
        let encoding = self.encodings.iter().find(counts)?;
        Some(self.attr(encoding))
    }

    /// The attribute that all uses of an encoding share: on CLOCK_MONOTONIC, disabled, with
    /// the same identification behind every record.
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

/// The names that can be asked for: the kernel's, then those of the CPUs' PMUs.
pub fn all_names(pmus: &[Pmu]) -> Vec<String> {
    let mut all = names::shown();
    for pmu in pmus.iter().filter(|pmu| pmu.core) {
        let own = pmu.events.keys();
        all.extend(own.map(|event| format!("{}/{event}/", pmu.name)));
    }
    all
}
