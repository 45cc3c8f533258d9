//! PMUs are read from sysfs, and events are encoded as perf encodes them.

use super::testing::{big_little, x86};
use super::*;
use proptest::prelude::*;

#[test]
fn pmus_are_read_with_their_cpus_and_events() {
    let board = big_little();
    let names: Vec<_> = board.pmus().iter().map(|pmu| pmu.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "arm_cmn_0",
            "armv8_cortex_a53",
            "armv8_cortex_a72",
            "software"
        ]
    );
    let [bus, little, big, software] = board.pmus() else {
        panic!("four")
    };
    assert!(!bus.core && little.core && big.core && !software.core);
    assert_eq!(little.cpus.as_deref(), Some(&[0, 1, 2, 3][..]));
    assert!(big.serves(5) && !big.serves(0) && software.serves(0) && !bus.serves(1));
    assert_eq!(
        little.events.keys().collect::<Vec<_>>(),
        ["cpu_cycles", "l2d_cache"]
    );
    assert!(bus.is_called("arm_cmn") && bus.is_called("arm_cmn_0") && !bus.is_called("arm"));
    assert_eq!(x86().pmus()[0].max_precise, 2);
}

#[test]
fn a_hostile_table_is_read_as_far_as_it_makes_sense() {
    let machine = testing::Machine::new(&[
        ("cpu/type", "4"),
        ("cpu/format/event", "config:0-7,60-99"),
        ("cpu/format/umask", "config:9-2"),
        ("cpu/format/inv", "config9:1"),
        ("cpu/format/edge", "config:63"),
        ("cpu/events/loop", "loop"),
        ("cpu/events/empty", ""),
        ("cpu/events/huge", "edge=99999999999999999999999"),
        ("cpu/cpus", "0-4294967295"),
        ("other/type", "x"),
    ]);
    let [cpu] = machine.pmus() else {
        panic!("the one with a type")
    };
    assert_eq!(cpu.fields().collect::<Vec<_>>(), ["edge"]);
    let encode = |name: &str| cpu.encode(&syntax::alias(name).unwrap());
    assert_eq!(encode("edge"), Ok([1 << 63, 0, 0]));
    assert!(encode("loop").unwrap_err().contains("loop"));
    assert!(encode("huge").unwrap_err().contains("number"));
    assert!(encode("event=1").unwrap_err().contains("event"));
    assert_eq!(cpu.cpus, None);
}

proptest! {
    #[test]
    fn a_placed_value_is_found_in_its_bits_and_nowhere_else(value: u64, first in 0u32..64, len in 0u32..64, other in 0u32..64) {
        let last = (first + len).min(63);
        let other = if (first..=last).contains(&other) { None } else { Some((other, other)) };
        let ranges: Vec<_> = [(first, last)].into_iter().chain(other).collect();
        let bits: u32 = ranges.iter().map(|(first, last)| last - first + 1).sum();
        let fits = bits == 64 || value >> bits == 0;
        prop_assert_eq!(place(value, &ranges).is_some(), fits);
        if let Some(placed) = place(value, &ranges) {
            let mask = ranges.iter().flat_map(|(first, last)| *first..=*last).fold(0, |mask, bit| mask | 1u64 << bit);
            prop_assert_eq!(placed & !mask, 0);
            prop_assert_eq!(placed.count_ones(), value.count_ones());
        }
    }

    #[test]
    fn lists_of_cpus_and_formats_never_panic(text in "[0-9,:a-z-]{0,40}") {
        if let Some(cpus) = cpu_list(&text) {
            prop_assert!(cpus.iter().all(|cpu| *cpu < 65_536));
        }
        let _ = parse_format(&text);
    }
}
