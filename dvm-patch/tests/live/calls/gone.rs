//! Removed methods are distinguished from those that reuse their pointers.

use super::{INVOKE, RETURN, calls, counts, order, told};
use varid_tunnel::abi::{CALL_LEFT_OUT, RETIRED};
use varid_tunnel::control::Order;

#[test]
fn a_pointer_may_become_another_methods_any_number_of_times() {
    let dir = tempfile::tempdir().unwrap();
    let (mut vm, _control) = told(&dir);
    for times in 1..=100u64 {
        vm.tell(&format!("call {INVOKE} 10 {times:x}"));
        vm.tell("methodgone 10");
    }
    // A method of another dex file at the same pointer. The VM reports the removal of the first one only later.
    for dex in 1..=100u64 {
        vm.tell(&format!("call {INVOKE} 10 1 {dex:x}0000"));
        vm.tell(&format!("call {RETURN} 10 1 {dex:x}0000"));
    }
    let counted = calls(&vm).read().unwrap();
    assert_eq!((counted.calls.len(), counted.uncounted), (200, 0));
    let (first, second) = counted.calls.split_at(100);
    for (times, call) in (1..).zip(first) {
        assert_eq!((call.method, call.invokes), (RETIRED, times));
    }
    for (dex, call) in (1u64..).zip(second) {
        assert_eq!((call.dex, call.invokes, call.returns), (dex << 16, 1, 1));
        let method = if dex == 100 { 0x10 } else { RETIRED };
        assert_eq!(call.method, method);
    }
    vm.end();
}

#[test]
fn a_method_that_is_freed_before_it_is_described_is_not_requested() {
    let dir = tempfile::tempdir().unwrap();
    let (mut vm, mut control) = told(&dir);
    vm.tell(&format!("call {INVOKE} 10"));
    vm.tell(&format!("call {INVOKE} 11"));
    // A description of the method would now end the process.
    vm.tell("die 10");
    control
        .set(&Order {
            filters: vec!["org.other.".to_owned()],
            ..order(2)
        })
        .unwrap();
    vm.tell("poll");
    let counted = calls(&vm).read().unwrap();
    let left_out: Vec<u32> = counted.calls.iter().map(|call| call.flags).collect();
    assert_eq!(left_out, [CALL_LEFT_OUT, 0]);
    vm.end();
}

#[test]
fn counts_of_a_freed_method_stay_and_a_reused_pointer_starts_at_zero() {
    let dir = tempfile::tempdir().unwrap();
    let (mut vm, _control) = told(&dir);
    vm.tell(&format!("call {INVOKE} 10 3"));
    vm.tell(&format!("call {INVOKE} 20 4"));
    vm.tell("methodgone 10");
    vm.tell("methodgone 30");
    vm.tell(&format!("call {INVOKE} 10 5"));
    let counted = calls(&vm).read().unwrap();
    let expected = [(RETIRED, 3, 0, 0), (0x20, 4, 0, 0), (0x10, 5, 0, 0)];
    assert_eq!(counts(&counted), expected);
    assert_eq!(
        counted.calls[0].insns, 0x1000,
        "it is still known which it was"
    );
    vm.tell("methodsgone 10000");
    vm.tell(&format!("call {INVOKE} 20"));
    let counted = calls(&vm).read().unwrap();
    assert!(counted.calls[..3].iter().all(|call| call.method == RETIRED));
    assert_eq!(counts(&counted)[3], (0x20, 1, 0, 0));
    vm.end();
}
