//! Derives from a machine's findings the source, event and targets that varid uses, and what would improve them.
//!
//! Pure functions of the findings.

use super::checks::rings_fit;
use super::machine::Machine;
use super::vms::FoundVm;
use serde::Serialize;

/// What varid will do on the machine.
#[derive(Debug, Serialize)]
pub struct Plan {
    /// `bpf`, `module` or `perf`, or None if nothing can be profiled.
    pub source: Option<&'static str>,
    /// The default event.
    pub event: String,
    /// True if kernel code can be sampled.
    pub kernel: bool,
    /// Source, event, targets and symbols, each with the reason.
    pub uses: Vec<String>,
    /// Recommended changes, the most useful first.
    pub to_improve: Vec<String>,
}

/// Returns what will be used and why, and what would improve it.
pub fn plan(machine: &Machine, vms: &[FoundVm]) -> Plan {
    let mut lines = Lines::default();
    let source = source(machine, &mut lines);
    event(machine, &mut lines);
    let kernel = matches!(source, Some("bpf" | "module")) || machine.events.cpu_clock.kernel;
    kernel_part(machine, kernel, &mut lines);
    rings(machine, &mut lines);
    unknown_vm(vms, &mut lines);
    Plan {
        source,
        event: machine.events.default.clone(),
        kernel,
        uses: lines.uses,
        to_improve: lines.to_improve,
    }
}

/// The lines of a plan.
#[derive(Debug, Default)]
struct Lines {
    uses: Vec<String>,
    to_improve: Vec<String>,
}

impl Lines {
    fn usage(&mut self, line: impl Into<String>) {
        self.uses.push(line.into());
    }

    fn improvement(&mut self, line: impl Into<String>) {
        self.to_improve.push(line.into());
    }
}

/// Returns the source of samples, or None if nothing can be sampled.
fn source(machine: &Machine, lines: &mut Lines) -> Option<&'static str> {
    match (&machine.shims.bpf, &machine.shims.module) {
        (Ok(_), _) => {
            lines.usage("source   bpf: frames are walked in the kernel at the sample, on every CPU, in any process");
            Some("bpf")
        }
        (Err(_), Ok(())) => {
            lines.usage("source   module: varid.ko walks frames in the kernel at the sample, on every CPU, in any process, as the BPF shim cannot be used");
            Some("module")
        }
        (Err(_), Err(_)) => {
            lines.improvement(better_source(machine));
            source_without_shim(machine, lines)
        }
    }
}

fn source_without_shim(machine: &Machine, lines: &mut Lines) -> Option<&'static str> {
    if !machine.events.cpu_clock.samples {
        lines.usage("source   none: the kernel lets this user sample nothing");
        lines.improvement("sysctl kernel.perf_event_paranoid=2, or CAP_PERFMON, lets a user sample processes of their own");
        return None;
    }
    lines.usage("source   perf: stacks are copied and walked later, as neither the BPF shim nor the kernel module can be used. What a copy does not hold is counted");
    lines.usage("targets  processes of this user, by --pid, --app or as a command; --all needs the BPF shim or the kernel module");
    Some("perf")
}

fn event(machine: &Machine, lines: &mut Lines) {
    let events = &machine.events;
    let default = &events.default;
    if events.samples_cycles() {
        lines.usage(format!(
            "event    {default}: the PMU counts it and interrupts"
        ));
        return;
    }
    let without_error = match events.interrupt_is_missing() {
        true => "the PMU counts cycles, but its overflow interrupt does not arrive",
        false => "cycles cannot be sampled",
    };
    let why = events.cycles.error.as_deref().unwrap_or(without_error);
    lines.usage(format!(
        "event    {default}: {why}. It samples time on a CPU, not work done in it"
    ));
    lines.improvement(better_event(machine));
}

/// `is_sampled`: whether kernel code can be sampled.
fn kernel_part(machine: &Machine, is_sampled: bool, lines: &mut Lines) {
    match (is_sampled, machine.kernel.symbols) {
        (true, true) => lines.usage("kernel   its functions are sampled, with their names"),
        (true, false) => {
            lines.usage("kernel   sampled, but its functions have no names");
            lines.improvement("sysctl kernel.kptr_restrict=0, or CAP_SYSLOG with 1, shows the kernel's functions by name");
        }
        (false, _) => {
            lines.usage("kernel   not seen by this user: only user code");
            lines.improvement(
                "sysctl kernel.perf_event_paranoid=1, or CAP_PERFMON, adds the kernel's part",
            );
        }
    }
}

fn rings(machine: &Machine, lines: &mut Lines) {
    if !rings_fit(machine) {
        lines.usage("rings    smaller than asked for: more samples are lost at high rates");
        lines.improvement("ulimit -l unlimited, or a larger kernel.perf_event_mlock_kb, makes room for whole rings");
    }
}

/// Advises the agent for the first VM whose build is unknown.
fn unknown_vm(vms: &[FoundVm], lines: &mut Lines) {
    let unknown = |vm: &&FoundVm| !vm.usable && vm.build_id.is_some();
    let Some(FoundVm { place, marked, .. }) = vms.iter().find(unknown) else {
        return;
    };
    lines.improvement(match marked {
        true => format!("varid's agent, loaded by the app (-agentpath), or its offsets in the table of builds, spares the stack copies with which the methods of {place} are found"),
        false => format!("varid's agent, loaded by the app (-agentpath), shows the methods that {place} runs"),
    });
}

fn better_source(machine: &Machine) -> String {
    const MODULE: &str = "the kernel module (kmod-shim/module: dkms install varid, modprobe varid)";
    const GIVES: &str = "exact frames, any process";
    let root = machine.user.has("CAP_SYS_ADMIN");
    let privileged = root || machine.user.has("CAP_BPF") && machine.user.has("CAP_PERFMON");
    // The narrower of the kernel and this program decides.
    let is_32_bit = machine.host.arch.starts_with("arm") || cfg!(target_arch = "arm");
    match (privileged, machine.kernel.btf) {
        _ if is_32_bit && root => format!("{MODULE}: {GIVES}. There is no BPF shim for 32-bit ARM"),
        _ if is_32_bit => format!("root, and {MODULE}: {GIVES}. There is no BPF shim for 32-bit ARM"),
        (false, _) => format!("root, or CAP_BPF and CAP_PERFMON (setcap cap_bpf,cap_perfmon+ep on varid), allows the BPF shim: {GIVES}"),
        (true, false) => format!("{MODULE}, or a kernel with BTF (CONFIG_DEBUG_INFO_BTF), 5.15 or newer, for the BPF shim: {GIVES}"),
        (true, true) => "the BPF shim is refused although privileges and BTF are there: a kernel of 5.15 or newer without lockdown allows it".to_owned(),
    }
}

fn better_event(machine: &Machine) -> String {
    if machine.events.pmus.is_empty() {
        "a machine whose PMU is visible (in a virtual machine: pass it through, as QEMU's -cpu host,pmu=on does) counts cycles".to_owned()
    } else {
        "the PMU is there: its interrupt must be wired (device tree) and perf_event_paranoid allow it for cycles to be sampled".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::checks::{State, checks};
    use super::super::machine::{Events, Kernel, Limits, Shims, User};
    use super::*;
    use crate::verbs::events::{FoundPmu, Tried};
    use varid_recording::Host;

    fn tried(event: &str, samples: bool, error: Option<&str>) -> Tried {
        Tried {
            event: event.into(),
            count: Some(1),
            samples,
            kernel: samples,
            error: error.map(str::to_owned),
        }
    }

    fn pmu(interrupts: Option<bool>) -> FoundPmu {
        FoundPmu {
            name: "armv8_pmuv3_0".into(),
            cpus: Some(vec![0, 1]),
            events: 40,
            interrupts,
            skid: String::new(),
        }
    }

    fn best() -> Machine {
        Machine {
            host: Host {
                kernel: "6.1".into(),
                arch: "aarch64".into(),
                cpus: 8,
                ..Host::default()
            },
            user: User {
                id: 0,
                capabilities: vec!["CAP_SYS_ADMIN", "CAP_PERFMON", "CAP_BPF", "CAP_IPC_LOCK"],
            },
            events: Events {
                pmus: vec![pmu(Some(true))],
                cycles: tried("cycles", true, None),
                cpu_clock: tried("cpu-clock", true, None),
                default: "cycles".into(),
            },
            sandbox: Ok(""),
            shims: Shims {
                bpf: Ok("varid_sample"),
                module: Err("not loaded".into()),
            },
            kernel: Kernel {
                btf: true,
                paranoid: Some(3),
                kptr_restrict: Some(1),
                symbols: true,
            },
            limits: Limits {
                max_sample_rate: Some(100_000),
                mlock_kb: Some(516),
                memlock: Some(8 << 20),
                open_files: Some(1024),
            },
        }
    }

    #[test]
    fn the_best_machine_has_nothing_to_improve() {
        let machine = best();
        let plan = plan(&machine, &[]);
        assert_eq!(
            (plan.source, plan.kernel, plan.to_improve.len()),
            (Some("bpf"), true, 0)
        );
        assert!(
            checks(&machine)
                .iter()
                .all(|check| check.state == State::Ok)
        );
    }

    #[test]
    fn a_user_without_privileges_sees_what_would_give_more() {
        let mut machine = best();
        machine.user = User {
            id: 1000,
            capabilities: vec![],
        };
        machine.shims.bpf = Err("not permitted".into());
        machine.events.cpu_clock.kernel = false;
        machine.kernel.paranoid = Some(2);
        machine.kernel.symbols = false;
        let plan = plan(&machine, &[]);
        assert_eq!((plan.source, plan.kernel), (Some("perf"), false));
        let advice = plan.to_improve.join("\n");
        for needle in ["CAP_BPF", "perf_event_paranoid=1", "ulimit -l"] {
            assert!(advice.contains(needle), "{needle}: {advice}");
        }
    }

    #[test]
    fn without_btf_the_module_is_used_or_advised() {
        let without_btf = |module| {
            let mut machine = best();
            machine.shims = Shims {
                bpf: Err("no BTF".into()),
                module,
            };
            machine.kernel.btf = false;
            machine
        };
        let loaded = plan(&without_btf(Ok(())), &[]);
        assert_eq!(
            (loaded.source, loaded.kernel, loaded.to_improve.len()),
            (Some("module"), true, 0)
        );
        let missing = plan(&without_btf(Err("not loaded".into())), &[]);
        assert_eq!(missing.source, Some("perf"));
        let advice = missing.to_improve.join("\n");
        for needle in ["modprobe varid", "CONFIG_DEBUG_INFO_BTF"] {
            assert!(advice.contains(needle), "{needle}: {advice}");
        }
    }

    #[test]
    fn on_32_bit_arm_the_module_is_advised_and_no_other_kernel() {
        let all = best().user.capabilities;
        for (capabilities, begins) in [(all, "the kernel module"), (vec![], "root")] {
            let mut machine = best();
            machine.host.arch = "armv7l".into();
            machine.shims.bpf = Err("there is none".into());
            machine.kernel.btf = false;
            machine.user.capabilities = capabilities;
            let advice = plan(&machine, &[]).to_improve.remove(0);
            assert!(
                advice.starts_with(begins) && advice.contains("modprobe varid"),
                "{advice}"
            );
            assert!(!advice.contains("BTF"), "{advice}");
        }
    }

    #[test]
    fn a_pmu_whose_interrupt_does_not_arrive_is_named_and_not_used() {
        let mut machine = best();
        machine.events.pmus = vec![pmu(Some(true)), pmu(Some(false))];
        machine.events.default = "cpu-clock".into();
        let checks = checks(&machine);
        let found = checks.iter().find(|check| check.name == "PMU").unwrap();
        assert_eq!(found.state, State::Limits);
        assert!(found.value.contains("DOES NOT ARRIVE"), "{}", found.value);
        let plan = plan(&machine, &[]);
        let uses = plan.uses.join("\n");
        assert!(
            uses.contains("cpu-clock: the PMU counts cycles, but"),
            "{uses}"
        );
        assert!(
            plan.to_improve
                .iter()
                .any(|line| line.contains("must be wired"))
        );
    }

    #[test]
    fn without_any_event_there_is_no_source() {
        let mut machine = best();
        machine.user.capabilities = vec![];
        machine.shims.bpf = Err("not permitted".into());
        machine.events.cpu_clock = tried("cpu-clock", false, Some("no permission"));
        let plan = plan(&machine, &[]);
        assert_eq!(plan.source, None);
        assert!(
            plan.to_improve
                .iter()
                .any(|line| line.contains("perf_event_paranoid=2"))
        );
    }

    #[test]
    fn a_vm_of_an_unknown_build_is_named() {
        for (marked, needle) in [
            (false, "shows the methods"),
            (true, "spares the stack copies"),
        ] {
            let vm = FoundVm {
                place: "/x/libart.so".into(),
                usable: false,
                marked,
                described: false,
                what: String::new(),
                build_id: Some("00".into()),
                pids: vec![],
            };
            let advice = plan(&best(), &[vm]).to_improve;
            assert!(
                advice
                    .iter()
                    .any(|line| line.contains("/x/libart.so") && line.contains(needle)),
                "{advice:?}"
            );
        }
    }
}
