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
    let mut uses = Vec::new();
    let mut to_improve = Vec::new();
    let source = match (&machine.bpf, &machine.module) {
        (Ok(_), _) => {
            uses.push("source   bpf: frames are walked in the kernel at the sample, on every CPU, in any process".to_owned());
            Some("bpf")
        }
        (Err(_), Ok(())) => {
            uses.push("source   module: varid.ko walks frames in the kernel at the sample, on every CPU, in any process, as the BPF shim cannot be used".to_owned());
            Some("module")
        }
        (Err(_), Err(_)) => {
            to_improve.push(better_source(machine));
            if machine.cpu_clock.samples {
                uses.push(
                    "source   perf: stacks are copied and walked later, as neither the BPF shim nor the kernel module can be used. What a copy does not hold is counted"
                        .to_owned(),
                );
                Some("perf")
            } else {
                uses.push("source   none: the kernel lets this user sample nothing".to_owned());
                to_improve.push("sysctl kernel.perf_event_paranoid=2, or CAP_PERFMON, lets a user sample processes of their own".to_owned());
                None
            }
        }
    };
    if source == Some("perf") {
        uses.push("targets  processes of this user, by --pid, --app or as a command; --all needs the BPF shim or the kernel module".to_owned());
    }
    if machine.samples_cycles() {
        uses.push(format!(
            "event    {}: the PMU counts it and interrupts",
            machine.default_event
        ));
    } else {
        let why = machine
            .cycles
            .error
            .as_deref()
            .unwrap_or(if machine.interrupt_is_missing() {
                "the PMU counts cycles, but its overflow interrupt does not arrive"
            } else {
                "cycles cannot be sampled"
            });
        uses.push(format!(
            "event    {}: {why}. It samples time on a CPU, not work done in it",
            machine.default_event
        ));
        to_improve.push(better_event(machine));
    }
    let kernel = matches!(source, Some("bpf" | "module")) || machine.cpu_clock.kernel;
    match (kernel, machine.kernel_symbols) {
        (true, true) => {
            uses.push("kernel   its functions are sampled, with their names".to_owned())
        }
        (true, false) => {
            uses.push("kernel   sampled, but its functions have no names".to_owned());
            to_improve.push("sysctl kernel.kptr_restrict=0, or CAP_SYSLOG with 1, shows the kernel's functions by name".to_owned());
        }
        (false, _) => {
            uses.push("kernel   not seen by this user: only user code".to_owned());
            to_improve.push(
                "sysctl kernel.perf_event_paranoid=1, or CAP_PERFMON, adds the kernel's part"
                    .to_owned(),
            );
        }
    }
    if !rings_fit(machine) {
        uses.push(
            "rings    smaller than asked for: more samples are lost at high rates".to_owned(),
        );
        to_improve.push("ulimit -l unlimited, or a larger kernel.perf_event_mlock_kb, makes room for whole rings".to_owned());
    }
    if let Some(unknown) = vms.iter().find(|vm| !vm.usable && vm.build_id.is_some()) {
        let place = &unknown.place;
        to_improve.push(if unknown.marked {
            format!("varid's agent, loaded by the app (-agentpath), or its offsets in the table of builds, spares the stack copies with which the methods of {place} are found")
        } else {
            format!("varid's agent, loaded by the app (-agentpath), shows the methods that {place} runs")
        });
    }
    Plan {
        source,
        event: machine.default_event.clone(),
        kernel,
        uses,
        to_improve,
    }
}

fn better_source(machine: &Machine) -> String {
    const MODULE: &str = "the kernel module (kmod-shim/module: dkms install varid, modprobe varid)";
    const GIVES: &str = "exact frames, any process";
    let root = machine.has("CAP_SYS_ADMIN");
    let privileged = root || machine.has("CAP_BPF") && machine.has("CAP_PERFMON");
    // The narrower of the kernel and this program decides.
    let is_32_bit = machine.host.arch.starts_with("arm") || cfg!(target_arch = "arm");
    match (privileged, machine.btf) {
        _ if is_32_bit && root => format!("{MODULE}: {GIVES}. There is no BPF shim for 32-bit ARM"),
        _ if is_32_bit => format!("root, and {MODULE}: {GIVES}. There is no BPF shim for 32-bit ARM"),
        (false, _) => format!("root, or CAP_BPF and CAP_PERFMON (setcap cap_bpf,cap_perfmon+ep on varid), allows the BPF shim: {GIVES}"),
        (true, false) => format!("{MODULE}, or a kernel with BTF (CONFIG_DEBUG_INFO_BTF), 5.15 or newer, for the BPF shim: {GIVES}"),
        (true, true) => "the BPF shim is refused although privileges and BTF are there: a kernel of 5.15 or newer without lockdown allows it".to_owned(),
    }
}

fn better_event(machine: &Machine) -> String {
    if machine.pmus.is_empty() {
        "a machine whose PMU is visible (in a virtual machine: pass it through, as QEMU's -cpu host,pmu=on does) counts cycles".to_owned()
    } else {
        "the PMU is there: its interrupt must be wired (device tree) and perf_event_paranoid allow it for cycles to be sampled".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::checks::{State, checks};
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
            user: 0,
            capabilities: vec!["CAP_SYS_ADMIN", "CAP_PERFMON", "CAP_BPF", "CAP_IPC_LOCK"],
            pmus: vec![pmu(Some(true))],
            cycles: tried("cycles", true, None),
            cpu_clock: tried("cpu-clock", true, None),
            default_event: "cycles".into(),
            sandbox: Ok(""),
            bpf: Ok("varid_sample"),
            module: Err("not loaded".into()),
            btf: true,
            paranoid: Some(3),
            max_sample_rate: Some(100_000),
            mlock_kb: Some(516),
            memlock: Some(8 << 20),
            open_files: Some(1024),
            kptr_restrict: Some(1),
            kernel_symbols: true,
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
        let machine = Machine {
            user: 1000,
            capabilities: vec![],
            bpf: Err("not permitted".into()),
            cpu_clock: Tried {
                kernel: false,
                ..tried("cpu-clock", true, None)
            },
            paranoid: Some(2),
            kernel_symbols: false,
            ..best()
        };
        let plan = plan(&machine, &[]);
        assert_eq!((plan.source, plan.kernel), (Some("perf"), false));
        let advice = plan.to_improve.join("\n");
        for needle in ["CAP_BPF", "perf_event_paranoid=1", "ulimit -l"] {
            assert!(advice.contains(needle), "{needle}: {advice}");
        }
    }

    #[test]
    fn without_btf_the_module_is_used_or_advised() {
        let without_btf = |module| Machine {
            bpf: Err("no BTF".into()),
            module,
            btf: false,
            ..best()
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
        for (capabilities, begins) in [(best().capabilities, "the kernel module"), (vec![], "root")]
        {
            let machine = Machine {
                host: Host {
                    arch: "armv7l".into(),
                    ..best().host
                },
                bpf: Err("there is none".into()),
                btf: false,
                capabilities,
                ..best()
            };
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
        let machine = Machine {
            pmus: vec![pmu(Some(true)), pmu(Some(false))],
            default_event: "cpu-clock".into(),
            ..best()
        };
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
        let machine = Machine {
            capabilities: vec![],
            bpf: Err("not permitted".into()),
            cpu_clock: tried("cpu-clock", false, Some("no permission")),
            ..best()
        };
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
