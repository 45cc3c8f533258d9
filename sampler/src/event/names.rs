//! The events that have a number in the kernel's ABI (linux/perf_event.h), by name.

use varid_model::perf::{self, EVENT_NAMES};

/// perf's names of the caches, in the order of `PERF_COUNT_HW_CACHE_*`.
const CACHES: [&[&str]; 7] = [
    &["l1-dcache", "l1-d", "l1d"],
    &["l1-icache", "l1-i", "l1i"],
    &["llc", "l2"],
    &["dtlb", "d-tlb"],
    &["itlb", "i-tlb"],
    &["branch", "bpu", "btb", "bpc"],
    &["node"],
];

/// The name that lists use for each of [`CACHES`].
const CACHE_NAMES: [&str; 7] = [
    "L1-dcache",
    "L1-icache",
    "LLC",
    "dTLB",
    "iTLB",
    "branch",
    "node",
];

/// Operations in the order of `PERF_COUNT_HW_CACHE_OP_*`: the name before `-misses`, the name of all accesses, other names.
const OPERATIONS: [(&str, &str, &[&str]); 3] = [
    ("load", "loads", &["read"]),
    ("store", "stores", &["write"]),
    ("prefetch", "prefetches", &["prefetch"]),
];

/// Returns one name of each event: hardware events, then software events, then cache events.
pub fn listed() -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut listed = Vec::new();
    for (name, kind, config) in EVENT_NAMES {
        if !listed.contains(&(kind, config)) {
            listed.push((kind, config));
            names.push((*name).to_owned());
        }
    }
    for cache in CACHE_NAMES {
        for (operation, plural, _) in OPERATIONS {
            names.push(format!("{cache}-{plural}"));
            names.push(format!("{cache}-{operation}-misses"));
        }
    }
    names
}

/// Looks up the type and config of an event. Case is ignored, and underscores equal hyphens.
pub fn lookup(name: &str) -> Option<(u32, u64)> {
    let name = name.to_ascii_lowercase().replace('_', "-");
    let named = EVENT_NAMES.iter().find(|(known, ..)| *known == name);
    named
        .map(|(_, kind, config)| (*kind, u64::from(*config)))
        .or_else(|| cache(&name).map(|config| (perf::PERF_TYPE_HW_CACHE, config)))
}

/// Parses `CACHE-OPERATION[-RESULT]`: `l1-dcache-load-misses`, `llc-loads`, `dtlb-prefetch-misses`.
fn cache(name: &str) -> Option<u64> {
    for (cache, names) in (0u64..).zip(CACHES) {
        let mut rests = names.iter().filter_map(|prefix| {
            let rest = name.strip_prefix(prefix)?;
            rest.strip_prefix('-')
        });
        let found = rests.find_map(operation);
        if let Some((operation, result)) = found {
            return Some(cache | operation << 8 | result << 16);
        }
    }
    None
}

/// Returns the kernel's numbers of the operation and the result in `loads`, `load-misses` or `load-refs`.
fn operation(text: &str) -> Option<(u64, u64)> {
    for (index, (name, plural, others)) in (0u64..).zip(OPERATIONS) {
        for known in [name, plural].iter().chain(others) {
            match text.strip_prefix(known) {
                Some("" | "-refs" | "-reference" | "-ops" | "-access") => return Some((index, 0)),
                Some("-misses" | "-miss") => return Some((index, 1)),
                _ => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_name_is_of_another_event() {
        let mut meanings: Vec<_> = listed().iter().map(|name| lookup(name).unwrap()).collect();
        meanings.sort_unstable();
        let count = meanings.len();
        meanings.dedup();
        assert_eq!(meanings.len(), count);
    }

    #[test]
    fn cache_events_are_encoded_as_the_kernel_has_them() {
        // As `perf record -vv -e NAME` shows them.
        for (name, config) in [
            ("L1-dcache-loads", 0x0),
            ("L1-dcache-load-misses", 0x10000),
            ("L1-dcache-stores", 0x100),
            ("L1-icache-load-misses", 0x10001),
            ("LLC-loads", 0x2),
            ("LLC-store-misses", 0x10102),
            ("dTLB-load-misses", 0x10003),
            ("iTLB-loads", 0x4),
            ("branch-load-misses", 0x10005),
            ("node-prefetches", 0x206),
            ("LLC-prefetch-misses", 0x10202),
        ] {
            assert_eq!(lookup(name), Some((3, config)), "{name}");
        }
        for unknown in ["L1-dcache", "L1-dcache-", "LLC-load-hits", "loads", ""] {
            assert_eq!(lookup(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn names_of_other_tools_are_understood() {
        assert_eq!(lookup("CPU_CYCLES"), lookup("cycles"));
        assert_eq!(lookup("INSTRUCTIONS"), lookup("instructions"));
        assert_eq!(lookup("branch-instructions"), lookup("branches"));
    }
}
