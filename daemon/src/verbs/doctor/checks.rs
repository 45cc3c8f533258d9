//! Evaluates what a machine has, and what limits varid.
//!
//! Pure functions of the findings.

use super::machine::Machine;
use crate::verbs::events::FoundPmu;
use serde::Serialize;

/// A checked property of the machine.
#[derive(Debug, Serialize)]
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// The result.
    pub state: State,
    /// The value found.
    pub value: String,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The best case.
    Ok,
    /// It limits varid.
    Limits,
    /// It is not available.
    No,
}

impl State {
    /// The name as shown.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Limits => "limits",
            Self::No => "no",
        }
    }

    fn of(good: bool, otherwise: Self) -> Self {
        if good { Self::Ok } else { otherwise }
    }
}

/// Returns the checks, in the order of their importance.
pub fn checks(machine: &Machine) -> Vec<Check> {
    vec![
        kernel(machine),
        pmu(machine),
        cpu_clock(machine),
        bpf_shim(machine),
        kernel_module(machine),
        btf(machine),
        user(machine),
        sandbox(machine),
        perf_event_paranoid(machine),
        max_sample_rate(machine),
        memory_for_rings(machine),
        open_files(machine),
        kernel_symbols(machine),
    ]
}

const fn check(name: &'static str, state: State, value: String) -> Check {
    Check { name, state, value }
}

fn kernel(machine: &Machine) -> Check {
    let host = &machine.host;
    let value = format!("{} on {}, {} CPUs", host.kernel, host.arch, host.cpus);
    check("kernel", State::Ok, value)
}

fn pmu(machine: &Machine) -> Check {
    let events = &machine.events;
    let no_pmu = events.pmus.is_empty();
    let otherwise = if no_pmu { State::No } else { State::Limits };
    let pmus: Vec<_> = events.pmus.iter().map(FoundPmu::summary).collect();
    let pmus = pmus.join("; ");
    let value = match (&events.cycles.error, no_pmu) {
        (None, true) => "cycles are counted".to_owned(),
        (None, false) => pmus,
        (Some(error), true) => format!("none; cycles: {error}"),
        (Some(error), false) => format!("{pmus}; cycles cannot be sampled: {error}"),
    };
    check("PMU", State::of(events.samples_cycles(), otherwise), value)
}

fn cpu_clock(machine: &Machine) -> Check {
    let timer = &machine.events.cpu_clock;
    let value = match &timer.error {
        Some(error) => error.clone(),
        None => "the kernel's timer samples".to_owned(),
    };
    check("cpu-clock", State::of(timer.samples, State::No), value)
}

fn bpf_shim(machine: &Machine) -> Check {
    let bpf = &machine.shims.bpf;
    let value = match bpf {
        Ok(variant) => format!("the kernel loads and verifies it ({variant})"),
        Err(error) => error.clone(),
    };
    check("BPF shim", State::of(bpf.is_ok(), State::No), value)
}

fn kernel_module(machine: &Machine) -> Check {
    let (module, bpf) = (&machine.shims.module, &machine.shims.bpf);
    let value = match (module, bpf) {
        (Ok(()), _) => "loaded".to_owned(),
        (Err(_), Ok(_)) => "not needed where the BPF shim works".to_owned(),
        (Err(error), Err(_)) => error.clone(),
    };
    let state = State::of(module.is_ok() || bpf.is_ok(), State::No);
    check("kernel module", state, value)
}

fn btf(machine: &Machine) -> Check {
    let value = match machine.kernel.btf {
        true => "/sys/kernel/btf/vmlinux",
        false => "the kernel does not describe its types",
    };
    let state = State::of(machine.kernel.btf, State::No);
    check("BTF", state, value.to_owned())
}

fn user(machine: &Machine) -> Check {
    let user = &machine.user;
    let may_profile = user.has("CAP_PERFMON") && user.has("CAP_BPF") || user.has("CAP_SYS_ADMIN");
    let value = match user.capabilities.as_slice() {
        [] => format!("{} without capabilities", user.id),
        some => format!("{} with {}", user.id, some.join(", ")),
    };
    check("user", State::of(may_profile, State::Limits), value)
}

fn sandbox(machine: &Machine) -> Check {
    let value = match &machine.sandbox {
        Ok(given_up) => (*given_up).to_owned(),
        Err(kept) => kept.clone(),
    };
    let state = State::of(machine.sandbox.is_ok(), State::Limits);
    check("sandbox", state, value)
}

fn perf_event_paranoid(machine: &Machine) -> Check {
    let level = machine.kernel.paranoid;
    let good = perfmon(machine) || level.is_some_and(|level| level <= 1);
    let value = format!("{} ({})", setting(level), paranoid_means(machine));
    check("perf_event_paranoid", State::of(good, State::Limits), value)
}

fn max_sample_rate(machine: &Machine) -> Check {
    let rate = machine.limits.max_sample_rate;
    let value = match rate {
        Some(rate) => format!("{rate} Hz; a higher -F is lowered to it"),
        None => "not told".to_owned(),
    };
    let good = rate.is_none_or(|rate| rate >= 1000);
    check("max_sample_rate", State::of(good, State::Limits), value)
}

fn memory_for_rings(machine: &Machine) -> Check {
    let state = State::of(rings_fit(machine), State::Limits);
    check("memory for rings", state, rings(machine))
}

fn open_files(machine: &Machine) -> Check {
    let files = machine.limits.open_files;
    let value = match files {
        Some(files) => format!("at most {files}"),
        None => "unlimited".to_owned(),
    };
    let good = files.is_none_or(|files| files >= 1024);
    check("open files", State::of(good, State::Limits), value)
}

fn kernel_symbols(machine: &Machine) -> Check {
    let kernel = &machine.kernel;
    let means = match kernel.symbols {
        true => "addresses are shown",
        false => "addresses are hidden from this user",
    };
    let value = format!("kptr_restrict {}: {means}", setting(kernel.kptr_restrict));
    check(
        "kernel symbols",
        State::of(kernel.symbols, State::Limits),
        value,
    )
}

/// Returns a setting of the kernel as shown.
fn setting(value: Option<i64>) -> String {
    value.map_or_else(|| "not told".to_owned(), |value| value.to_string())
}

/// Returns true if CAP_PERFMON suffices. It does not above level 2, which kernels of Android and Debian have.
fn perfmon(machine: &Machine) -> bool {
    let known_to_all = machine.kernel.paranoid.is_none_or(|level| level <= 2);
    machine.user.has("CAP_PERFMON") && known_to_all || machine.user.has("CAP_SYS_ADMIN")
}

fn paranoid_means(machine: &Machine) -> &'static str {
    match machine.kernel.paranoid {
        _ if perfmon(machine) => "does not bind this user",
        Some(..=0) => "everything but raw tracepoints",
        Some(1) => "own processes, with the kernel's part",
        Some(2) => "own processes, user code only",
        Some(_) => "nothing without CAP_SYS_ADMIN",
        None => "this kernel has no perf events",
    }
}

/// Returns true if a ring of the default size, 8 MB, can be locked for each CPU.
pub(super) fn rings_fit(machine: &Machine) -> bool {
    const RING_KB: u64 = 8 << 10;
    if machine.user.has("CAP_IPC_LOCK") {
        return true;
    }
    let Some(memlock) = machine.limits.memlock else {
        return true;
    };
    let free = u64::try_from(machine.limits.mlock_kb.unwrap_or(0)).unwrap_or(0);
    let beyond = RING_KB
        .saturating_sub(free)
        .saturating_mul(u64::from(machine.host.cpus));
    beyond <= memlock >> 10
}

fn rings(machine: &Machine) -> String {
    let limit = machine.limits.memlock.map_or_else(
        || "unlimited".to_owned(),
        |bytes| format!("{} KB", bytes >> 10),
    );
    let per_cpu = machine
        .limits
        .mlock_kb
        .map_or_else(|| "not told".to_owned(), |kb| format!("{kb} KB"));
    let free = if machine.user.has("CAP_IPC_LOCK") {
        "; neither binds this user"
    } else {
        ""
    };
    format!("perf_event_mlock_kb {per_cpu} a CPU, memlock limit {limit}{free}")
}
