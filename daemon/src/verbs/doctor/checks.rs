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
    let check = |name, state, value: String| Check { name, state, value };
    let number =
        |value: Option<i64>| value.map_or_else(|| "not told".to_owned(), |value| value.to_string());
    let host = &machine.host;
    let pmus: Vec<_> = machine.pmus.iter().map(FoundPmu::summary).collect();
    vec![
        check(
            "kernel",
            State::Ok,
            format!("{} on {}, {} CPUs", host.kernel, host.arch, host.cpus),
        ),
        check(
            "PMU",
            State::of(
                machine.samples_cycles(),
                if machine.pmus.is_empty() {
                    State::No
                } else {
                    State::Limits
                },
            ),
            match (&machine.cycles.error, machine.pmus.is_empty()) {
                (None, true) => "cycles are counted".to_owned(),
                (None, false) => pmus.join("; "),
                (Some(error), true) => format!("none; cycles: {error}"),
                (Some(error), false) => {
                    format!("{}; cycles cannot be sampled: {error}", pmus.join("; "))
                }
            },
        ),
        check(
            "cpu-clock",
            State::of(machine.cpu_clock.samples, State::No),
            machine
                .cpu_clock
                .error
                .clone()
                .unwrap_or_else(|| "the kernel's timer samples".to_owned()),
        ),
        check(
            "BPF shim",
            State::of(machine.bpf.is_ok(), State::No),
            match &machine.bpf {
                Ok(variant) => format!("the kernel loads and verifies it ({variant})"),
                Err(error) => error.clone(),
            },
        ),
        check(
            "kernel module",
            State::of(machine.module.is_ok() || machine.bpf.is_ok(), State::No),
            match (&machine.module, &machine.bpf) {
                (Ok(()), _) => "loaded".to_owned(),
                (Err(_), Ok(_)) => "not needed where the BPF shim works".to_owned(),
                (Err(error), Err(_)) => error.clone(),
            },
        ),
        check(
            "BTF",
            State::of(machine.btf, State::No),
            if machine.btf {
                "/sys/kernel/btf/vmlinux".to_owned()
            } else {
                "the kernel does not describe its types".to_owned()
            },
        ),
        check(
            "user",
            State::of(
                machine.has("CAP_PERFMON") && machine.has("CAP_BPF")
                    || machine.has("CAP_SYS_ADMIN"),
                State::Limits,
            ),
            match machine.capabilities.as_slice() {
                [] => format!("{} without capabilities", machine.user),
                some => format!("{} with {}", machine.user, some.join(", ")),
            },
        ),
        check(
            "sandbox",
            State::of(machine.sandbox.is_ok(), State::Limits),
            match &machine.sandbox {
                Ok(given_up) => (*given_up).to_owned(),
                Err(kept) => kept.clone(),
            },
        ),
        check(
            "perf_event_paranoid",
            State::of(
                perfmon(machine) || machine.paranoid.is_some_and(|level| level <= 1),
                State::Limits,
            ),
            format!("{} ({})", number(machine.paranoid), paranoid_means(machine)),
        ),
        check(
            "max_sample_rate",
            State::of(
                machine.max_sample_rate.is_none_or(|rate| rate >= 1000),
                State::Limits,
            ),
            machine.max_sample_rate.map_or_else(
                || "not told".to_owned(),
                |rate| format!("{rate} Hz; a higher -F is lowered to it"),
            ),
        ),
        check(
            "memory for rings",
            State::of(rings_fit(machine), State::Limits),
            rings(machine),
        ),
        check(
            "open files",
            State::of(
                machine.open_files.is_none_or(|files| files >= 1024),
                State::Limits,
            ),
            machine.open_files.map_or_else(
                || "unlimited".to_owned(),
                |files| format!("at most {files}"),
            ),
        ),
        check(
            "kernel symbols",
            State::of(machine.kernel_symbols, State::Limits),
            format!(
                "kptr_restrict {}: {}",
                number(machine.kptr_restrict),
                if machine.kernel_symbols {
                    "addresses are shown"
                } else {
                    "addresses are hidden from this user"
                }
            ),
        ),
    ]
}

/// Returns true if CAP_PERFMON suffices. It does not above level 2, which kernels of Android and Debian have.
fn perfmon(machine: &Machine) -> bool {
    let known_to_all = machine.paranoid.is_none_or(|level| level <= 2);
    machine.has("CAP_PERFMON") && known_to_all || machine.has("CAP_SYS_ADMIN")
}

fn paranoid_means(machine: &Machine) -> &'static str {
    match machine.paranoid {
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
    if machine.has("CAP_IPC_LOCK") {
        return true;
    }
    let Some(memlock) = machine.memlock else {
        return true;
    };
    let free = u64::try_from(machine.mlock_kb.unwrap_or(0)).unwrap_or(0);
    let beyond = RING_KB
        .saturating_sub(free)
        .saturating_mul(u64::from(machine.host.cpus));
    beyond <= memlock >> 10
}

fn rings(machine: &Machine) -> String {
    let limit = machine.memlock.map_or_else(
        || "unlimited".to_owned(),
        |bytes| format!("{} KB", bytes >> 10),
    );
    let per_cpu = machine
        .mlock_kb
        .map_or_else(|| "not told".to_owned(), |kb| format!("{kb} KB"));
    let free = if machine.has("CAP_IPC_LOCK") {
        "; neither binds this user"
    } else {
        ""
    };
    format!("perf_event_mlock_kb {per_cpu} a CPU, memlock limit {limit}{free}")
}
