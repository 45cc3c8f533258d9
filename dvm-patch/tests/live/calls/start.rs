//! A VM that is launched to count does so from its first call on.

use super::{INVOKE, RETURN, UNWIND, calls, counts, order, take};
use crate::dim::Vm;
use varid_tunnel::abi::{FILTER_SIZE, FILTERS, TACTIC_METHOD_INVOKE};
use varid_tunnel::control::Order;

#[test]
fn a_vm_may_count_from_its_start_on() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let mut vm = Vm::start(dir.path());
    vm.tell("init");
    assert_eq!(
        vm.tell(&format!("calls method-invoke {}", log.display())),
        1
    );
    vm.tell(&format!("call {INVOKE} 10 3"));
    vm.tell("poll");
    assert_eq!(
        vm.read().tactic,
        TACTIC_METHOD_INVOKE,
        "somebody may still come"
    );
    let mut control = take(&vm);
    control.set(&order(5)).unwrap();
    vm.tell("poll");
    vm.tell(&format!("call {RETURN} 10 3"));
    vm.tell(&format!("call {UNWIND} 11"));
    let counted = calls(&vm).read().unwrap();
    assert_eq!(counts(&counted), [(0x10, 3, 3, 0), (0x11, 0, 0, 1)]);
    assert_eq!((counted.session, counted.unlogged), (5, 0));
    let written = std::fs::read_to_string(format!("{}.{}", log.display(), vm.pid)).unwrap();
    let events: Vec<&str> = written
        .lines()
        .map(|line| line.rsplitn(3, ' ').last().unwrap())
        .collect();
    assert_eq!(
        events,
        [
            "> 1000", "> 1000", "> 1000", "< 1000", "< 1000", "< 1000", "! 1100"
        ]
    );
    vm.end();

    let mut other = Vm::start(dir.path());
    other.tell("init");
    assert_eq!(other.tell("calls load-from-dex"), 0);
    other.end();
}

#[test]
fn a_vm_counts_by_its_filters_from_its_start_on() {
    let dir = tempfile::tempdir().unwrap();
    let most = |size: usize, count: usize| {
        let filters = (0..count).map(|index| format!("{index:x>size$}"));
        filters.collect::<Vec<_>>().join(";")
    };
    let all = [true, true, true];
    for (filters, counted) in [
        ("org.example.", [true, false, true]),
        ("org.other.Odd.m", [false, true, true]),
        (";;org.other.;x;", [false, true, true]),
        ("org.example.Even.mm", [false, false, true]),
        ("org.example.Even;org.other.Odd", all),
        (";", all),
        (&most(FILTER_SIZE - 1, FILTERS), [false, false, true]),
    ] {
        let mut vm = Vm::start(dir.path());
        vm.tell("init");
        assert_eq!(vm.tell(&format!("calls method-invoke - {filters}")), 1);
        for method in ["10", "11", "1000"] {
            vm.tell(&format!("call {INVOKE} {method}"));
        }
        let found = calls(&vm).read().unwrap().calls;
        let found: Vec<bool> = found.iter().map(|call| call.invokes == 1).collect();
        assert_eq!(found, counted, "{filters}");
        // The first session may have another filter; the counts of methods in both filters are kept.
        let mut control = take(&vm);
        let order = Order {
            filters: vec!["org.example.".to_owned()],
            ..order(5)
        };
        control.set(&order).unwrap();
        vm.tell("poll");
        vm.tell(&format!("call {INVOKE} 10"));
        let even = calls(&vm).read().unwrap().calls[0];
        assert_eq!((even.invokes, even.flags), (1 + u64::from(counted[0]), 0));
        vm.end();
    }
    // Filters that do not fit are not truncated.
    for filters in [most(FILTER_SIZE, 1), most(1, FILTERS + 1), most(500, 15)] {
        let mut vm = Vm::start(dir.path());
        vm.tell("init");
        assert_eq!(vm.tell(&format!("calls method-invoke - {filters}")), 0);
        vm.tell(&format!("call {INVOKE} 10"));
        let counted = calls(&vm).read().unwrap();
        assert_eq!((counted.refused, counted.calls.len()), (1, 0));
        vm.end();
    }
}
