//! PMU tables of other machines, for tests.

use super::{DEVICES, Pmu};
use std::fs;

/// A machine's PMUs, read from a sysfs of its own.
pub struct Machine {
    _root: tempfile::TempDir,
    pmus: Vec<Pmu>,
}

impl Machine {
    /// Creates these files, given by path below the PMUs' folder and content.
    pub fn new(files: &[(&str, &str)]) -> Self {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(DEVICES).join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }
        Self {
            pmus: Pmu::all(root.path()),
            _root: root,
        }
    }

    /// The machine's PMUs.
    pub fn pmus(&self) -> &[Pmu] {
        &self.pmus
    }
}

/// Four small cores, two big ones, and an interconnect, as Linux 6.1 describes an RK3399 or S922X.
pub fn big_little() -> Machine {
    Machine::new(&[
        ("armv8_cortex_a53/type", "8"),
        ("armv8_cortex_a53/cpus", "0-3"),
        ("armv8_cortex_a53/format/event", "config:0-15"),
        ("armv8_cortex_a53/format/long", "config1:0"),
        ("armv8_cortex_a53/events/cpu_cycles", "event=0x0011"),
        ("armv8_cortex_a53/events/l2d_cache", "event=0x0016"),
        ("armv8_cortex_a72/type", "9"),
        ("armv8_cortex_a72/cpus", "4-5"),
        ("armv8_cortex_a72/format/event", "config:0-15"),
        ("armv8_cortex_a72/events/cpu_cycles", "event=0x0011"),
        ("armv8_cortex_a72/events/l2d_cache", "event=0x0016"),
        ("armv8_cortex_a72/events/br_mis_pred", "event=0x0010"),
        ("arm_cmn_0/type", "10"),
        ("arm_cmn_0/cpumask", "0"),
        ("arm_cmn_0/events/dtc_cycles", "type=0x3"),
        ("arm_cmn_0/format/type", "config:0-15"),
        ("software/type", "1"),
    ])
}

/// An x86 core PMU, as Linux 6.1 describes one of Intel's. The event's field has two parts.
pub fn x86() -> Machine {
    Machine::new(&[
        ("cpu/type", "4"),
        ("cpu/format/event", "config:0-7,32-39"),
        ("cpu/format/umask", "config:8-15"),
        ("cpu/format/inv", "config:23"),
        ("cpu/format/cmask", "config:24-31"),
        ("cpu/format/ldlat", "config1:0-15"),
        ("cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3"),
        ("cpu/events/mem-loads.scale", "1"),
        ("cpu/caps/max_precise", "2"),
    ])
}

/// A kernel with both probe PMUs.
pub fn probes() -> Machine {
    Machine::new(&[
        ("kprobe/type", "7"),
        ("kprobe/format/retprobe", "config:0"),
        ("uprobe/type", "8"),
        ("uprobe/format/retprobe", "config:0"),
    ])
}
