//! perf's names for the events that have a number in the kernel's ABI.

use super::abi::*;

const HARDWARE: u32 = PERF_TYPE_HARDWARE;
const SOFTWARE: u32 = PERF_TYPE_SOFTWARE;

/// Name, type and config. If an event has several names, perf shows the first one.
#[rustfmt::skip]
pub const EVENT_NAMES: &[(&str, u32, u32)] = &[
    ("cycles", HARDWARE, PERF_COUNT_HW_CPU_CYCLES),
    ("cpu-cycles", HARDWARE, PERF_COUNT_HW_CPU_CYCLES),
    ("instructions", HARDWARE, PERF_COUNT_HW_INSTRUCTIONS),
    ("cache-references", HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES),
    ("cache-misses", HARDWARE, PERF_COUNT_HW_CACHE_MISSES),
    ("branches", HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS),
    ("branch-instructions", HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS),
    ("branch-misses", HARDWARE, PERF_COUNT_HW_BRANCH_MISSES),
    ("bus-cycles", HARDWARE, PERF_COUNT_HW_BUS_CYCLES),
    ("stalled-cycles-frontend", HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND),
    ("idle-cycles-frontend", HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND),
    ("stalled-cycles-backend", HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND),
    ("idle-cycles-backend", HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND),
    ("ref-cycles", HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES),
    ("cpu-clock", SOFTWARE, PERF_COUNT_SW_CPU_CLOCK),
    ("task-clock", SOFTWARE, PERF_COUNT_SW_TASK_CLOCK),
    ("page-faults", SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS),
    ("faults", SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS),
    ("minor-faults", SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN),
    ("major-faults", SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ),
    ("context-switches", SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES),
    ("cs", SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES),
    ("cpu-migrations", SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS),
    ("migrations", SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS),
    ("alignment-faults", SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS),
    ("emulation-faults", SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS),
];

/// Returns perf's name for an event of the kernel. None for other events.
#[must_use]
pub fn event_name(kind: u32, config: u64) -> Option<&'static str> {
    let is_it =
        |(_, known, number): &&(_, u32, u32)| (*known, u64::from(*number)) == (kind, config);
    EVENT_NAMES.iter().find(is_it).map(|(name, ..)| *name)
}
