//! Finds out what this machine offers to this user, by queries and by tests.

use crate::sandbox;
use crate::verbs::events::{FoundPmu, Tried, find_pmus, try_event};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use rustix::thread::CapabilitySet;
use std::fs;
use std::path::Path;
use varid_recording::Host;
use varid_sampler::event::Rate;
use varid_sampler::event::pmu::Pmu;
use varid_sampler::interrupts::default_event;
use varid_sampler::open::max_frequency;
use varid_sampler::sysctl;
use varid_shim::{Module, Shim};

/// The relevant capabilities.
const CAPABILITIES: [(&str, CapabilitySet); 6] = [
    ("CAP_IPC_LOCK", CapabilitySet::IPC_LOCK),
    ("CAP_SYS_PTRACE", CapabilitySet::SYS_PTRACE),
    ("CAP_SYS_ADMIN", CapabilitySet::SYS_ADMIN),
    ("CAP_SYSLOG", CapabilitySet::SYSLOG),
    ("CAP_PERFMON", CapabilitySet::PERFMON),
    ("CAP_BPF", CapabilitySet::BPF),
];

/// The findings.
#[derive(Debug)]
pub struct Machine {
    /// Kernel, architecture, CPUs.
    pub host: Host,
    /// The user that runs varid.
    pub user: User,
    /// The events that can be sampled.
    pub events: Events,
    /// The shims that walk frames in the kernel.
    pub shims: Shims,
    /// The privileges that varid drops while it records, or the reason why it cannot drop them.
    pub sandbox: Result<&'static str, String>,
    /// What the kernel shows to this user.
    pub kernel: Kernel,
    /// Limits of rates, memory and files.
    pub limits: Limits,
}

/// The user that runs varid.
#[derive(Debug)]
pub struct User {
    /// The effective user id.
    pub id: u32,
    /// The effective ones of [`CAPABILITIES`].
    pub capabilities: Vec<&'static str>,
}

/// The events that were tried.
#[derive(Debug)]
pub struct Events {
    /// PMUs of the CPUs, with tested interrupts.
    pub pmus: Vec<FoundPmu>,
    /// The result for the PMU's cycles.
    pub cycles: Tried,
    /// The result for the kernel's timer.
    pub cpu_clock: Tried,
    /// The name of the default event.
    pub default: String,
}

/// The shims that were tried.
#[derive(Debug)]
pub struct Shims {
    /// The variant of the BPF shim that the kernel has accepted, or the reason why it cannot be loaded.
    pub bpf: Result<&'static str, String>,
    /// Whether the kernel module is loaded and open to this user, or the reason why not.
    pub module: Result<(), String>,
}

/// What the kernel shows to this user.
#[derive(Debug)]
pub struct Kernel {
    /// True if the kernel has BTF.
    pub btf: bool,
    /// /proc/sys/kernel/perf_event_paranoid.
    pub paranoid: Option<i64>,
    /// /proc/sys/kernel/kptr_restrict.
    pub kptr_restrict: Option<i64>,
    /// True if /proc/kallsyms shows addresses.
    pub symbols: bool,
}

/// Limits of rates, memory and files.
#[derive(Debug)]
pub struct Limits {
    /// /proc/sys/kernel/perf_event_max_sample_rate.
    pub max_sample_rate: Option<u64>,
    /// /proc/sys/kernel/perf_event_mlock_kb.
    pub mlock_kb: Option<i64>,
    /// RLIMIT_MEMLOCK in bytes, or None if unlimited.
    pub memlock: Option<u64>,
    /// RLIMIT_NOFILE.
    pub open_files: Option<u64>,
}

impl Machine {
    /// Runs the queries and tests.
    pub fn look() -> anyhow::Result<Self> {
        Ok(Self {
            host: Host::this_machine(),
            user: User::current(),
            events: Events::find()?,
            shims: Shims::find(),
            sandbox: sandbox::describe(),
            kernel: Kernel::look(),
            limits: Limits::look(),
        })
    }
}

impl User {
    fn current() -> Self {
        Self {
            id: nix::unistd::geteuid().as_raw(),
            capabilities: capabilities(),
        }
    }

    /// Returns true if a capability is in effect.
    pub fn has(&self, capability: &str) -> bool {
        self.capabilities.contains(&capability)
    }
}

impl Events {
    fn find() -> anyhow::Result<Self> {
        let pmus = Pmu::all(Path::new("/"));
        Ok(Self {
            cycles: try_event("cycles", &pmus)?,
            cpu_clock: try_event("cpu-clock", &pmus)?,
            default: default_event(Rate::Frequency(1), &pmus).0.name,
            pmus: find_pmus(&pmus),
        })
    }

    /// Returns true if cycles can be opened for sampling and no PMU is known to lack its interrupt.
    pub fn samples_cycles(&self) -> bool {
        self.cycles.samples && !self.interrupt_is_missing()
    }

    /// Returns true if a PMU counts but its overflow interrupt does not arrive.
    pub fn interrupt_is_missing(&self) -> bool {
        self.pmus.iter().any(|pmu| pmu.interrupts == Some(false))
    }
}

impl Shims {
    fn find() -> Self {
        Self {
            bpf: Shim::load(0)
                .map(|shim| shim.variant())
                .map_err(|error| error.to_string()),
            module: Module::open().map(drop).map_err(|error| error.to_string()),
        }
    }
}

impl Kernel {
    fn look() -> Self {
        Self {
            btf: Path::new("/sys/kernel/btf/vmlinux").exists(),
            paranoid: sysctl::kernel("perf_event_paranoid"),
            kptr_restrict: sysctl::kernel("kptr_restrict"),
            symbols: kernel_symbols(),
        }
    }
}

impl Limits {
    fn look() -> Self {
        Self {
            max_sample_rate: max_frequency(),
            mlock_kb: sysctl::kernel("perf_event_mlock_kb"),
            memlock: limit(Resource::RLIMIT_MEMLOCK),
            open_files: limit(Resource::RLIMIT_NOFILE),
        }
    }
}

#[allow(clippy::useless_conversion, reason = "rlim_t has 32 bits on ARM")]
fn limit(resource: Resource) -> Option<u64> {
    getrlimit(resource)
        .ok()
        .filter(|(soft, _)| *soft != RLIM_INFINITY)
        .map(|(soft, _)| u64::from(soft))
}

fn capabilities() -> Vec<&'static str> {
    let effective =
        rustix::thread::capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    let has = |(_, capability): &&(_, CapabilitySet)| effective.contains(*capability);
    CAPABILITIES
        .iter()
        .filter(has)
        .map(|(name, _)| *name)
        .collect()
}

fn kernel_symbols() -> bool {
    use std::io::{BufRead, BufReader};
    fs::File::open("/proc/kallsyms").is_ok_and(|symbols| {
        BufReader::new(symbols)
            .lines()
            .map_while(Result::ok)
            .take(1000)
            .any(|line| {
                line.split(' ')
                    .next()
                    .is_some_and(|address| address.contains(|c| c != '0'))
            })
    })
}
