//! The app that contains dim is not harmed, and its counts are correct, whatever it does with descriptors and processes.

use crate::calls::{INVOKE, calls, counting, counts, order, take};
use crate::dim::Vm;
use crate::support::tunnels;
use varid_tunnel::abi::{REMAP_FIRST, TACTIC_LOAD_FROM_DEX};
use varid_tunnel::control::Order;

#[test]
fn a_forked_childs_shadow_stack_means_what_it_meant() {
    let dir = tempfile::tempdir().unwrap();
    let mut vm = counting(&dir);
    let base = vm.tell("thread 10");
    // One method that was removed, and two that are being executed.
    vm.tell("remap 30");
    for method in ["10", "20"] {
        vm.tell(&format!("record {method}"));
    }
    let parent = vm.pid;
    let parents = calls(&vm);
    vm.tell("fork");
    vm.tell("record 40");
    vm.tell("record 10");
    assert_ne!(vm.pid, parent);
    let (_, depth, records) = vm.shadow(base);
    assert_eq!(depth, 4);
    let own = calls(&vm).read().unwrap();
    let insns: Vec<u64> = records
        .iter()
        .map(|record| own.calls[(record - REMAP_FIRST) as usize].insns)
        .collect();
    assert_eq!(insns, [0x1000, 0x2000, 0x4000, 0x1000]);
    assert_eq!(parents.read().unwrap().calls.len(), 3);
    vm.end();
}

#[test]
fn a_forked_child_that_can_have_no_tunnel_counts_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("run");
    std::fs::create_dir(&folder).unwrap();
    let mut vm = Vm::start(dir.path());
    vm.tell("nomemfd");
    assert_eq!(vm.tell(&format!("init {}", folder.display())), 1);
    vm.tell("calls");
    let mut control = take(&vm);
    control.set(&order(1)).unwrap();
    assert_eq!(vm.tell("poll"), 2);
    vm.tell(&format!("call {INVOKE} 10 2"));
    let parents = calls(&vm);
    let parent = vm.pid;
    std::fs::remove_dir(&folder).unwrap();
    vm.tell("fork");
    vm.tell("afterfork");
    assert_ne!(vm.pid, parent);
    for method in ["10", "20"] {
        vm.tell(&format!("call {INVOKE} {method} 9"));
        assert_eq!(vm.tell(&format!("remap {method}")), 0);
    }
    assert_eq!(vm.tell("poll"), 21, "the VM is told that it is off");
    assert_eq!(tunnels(vm.pid), []);
    assert_eq!(counts(&parents.read().unwrap()), [(0x10, 2, 0, 0)]);
    vm.end();
}

#[test]
fn after_the_end_no_trace_is_requested_and_no_call_counted() {
    let dir = tempfile::tempdir().unwrap();
    let mut vm = counting(&dir);
    vm.tell("thread 10");
    let mut control = take(&vm);
    control.set(&order(1)).unwrap();
    vm.tell("poll");
    vm.tell(&format!("call {INVOKE} 10 2"));
    let counted = calls(&vm);
    vm.tell("shutdown");
    // A description of a method would now end the process.
    vm.tell("die 20");
    assert_eq!(vm.tell("remap 20"), 0);
    vm.tell("record 20");
    control.set(&order(2)).unwrap();
    assert_eq!(
        vm.tell("poll"),
        21,
        "it was told at the end, and of nothing since"
    );
    for method in ["10", "20"] {
        vm.tell(&format!("call {INVOKE} {method} 9"));
    }
    assert_eq!(counts(&counted.read().unwrap()), [(0x10, 2, 0, 0)]);
    vm.end();
}

#[test]
fn descriptors_that_the_app_has_closed_are_the_apps() {
    let dir = tempfile::tempdir().unwrap();
    let mut vm = counting(&dir);
    let mut control = take(&vm);
    let logged = |session: u64, name: &str| Order {
        log: dir.path().join(name).display().to_string(),
        ..order(session)
    };
    control.set(&logged(1, "log")).unwrap();
    vm.tell("poll");
    vm.tell(&format!("call {INVOKE} 10 2"));
    let counted = calls(&vm);
    let database = dir.path().join("database");
    let is_database = |pid: u32, fd: u64| {
        std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).is_ok_and(|path| path == database)
    };
    let whole = |pid: u32| {
        let size = std::fs::metadata(&database).unwrap().len();
        assert_eq!(size, 0, "it was written");
        assert!((3..15).all(|fd| is_database(pid, fd)), "one was replaced");
    };
    vm.tell("close 3");
    assert_eq!(vm.tell(&format!("open {} c", database.display())), 14);
    vm.tell(&format!("call {INVOKE} 10 3"));
    let read = counted.read().unwrap();
    assert_eq!((read.calls[0].invokes, read.unlogged), (5, 3));
    whole(vm.pid);
    // The lock can no longer be seen, so the orders are void.
    control.set(&logged(2, "other")).unwrap();
    vm.tell("poll");
    assert_eq!(vm.read().tactic, TACTIC_LOAD_FROM_DEX);
    whole(vm.pid);
    vm.tell("fork");
    vm.tell("poll");
    whole(vm.pid);
    vm.end();
}
