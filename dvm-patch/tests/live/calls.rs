//! Each event of a VM that counts is counted exactly once.

mod control;
mod gone;
mod log;
mod start;

use crate::dim::Vm;
use varid_tunnel::abi::{
    MAX_CALLS, REMAP_FIRST, TACTIC_LOAD_FROM_DEX, TACTIC_METHOD_INVOKE, VmFile,
};
use varid_tunnel::calls::{CallsFile, Counted};
use varid_tunnel::control::{ControlPage, Order};

pub const INVOKE: u32 = 0;
const RETURN: u32 = 1;
const UNWIND: u32 = 2;

pub fn counting(dir: &tempfile::TempDir) -> Vm {
    let mut vm = Vm::start(dir.path());
    vm.tell("init");
    assert_eq!(vm.tell("calls"), 0, "nobody wants it yet");
    vm
}

/// A VM that was ordered to count, and its control page.
fn told(dir: &tempfile::TempDir) -> (Vm, ControlPage) {
    let mut vm = counting(dir);
    let mut control = take(&vm);
    control.set(&order(1)).unwrap();
    vm.tell("poll");
    (vm, control)
}

pub fn page(vm: &Vm) -> VmFile {
    vm.read().control.unwrap()
}

pub fn take(vm: &Vm) -> ControlPage {
    ControlPage::take(varid_model::Pid::new(vm.pid), &page(vm)).unwrap()
}

pub fn order(session: u64) -> Order {
    Order {
        tactic: TACTIC_METHOD_INVOKE,
        session,
        ..Order::default()
    }
}

pub fn calls(vm: &Vm) -> CallsFile {
    CallsFile::open(varid_model::Pid::new(vm.pid), &vm.read().calls.unwrap()).unwrap()
}

/// (method, invokes, returns, unwinds)
pub fn counts(counted: &Counted) -> Vec<(u64, u64, u64, u64)> {
    let calls = counted.calls.iter();
    calls
        .map(|call| (call.method, call.invokes, call.returns, call.unwinds))
        .collect()
}

#[test]
fn events_are_counted_while_a_session_wants_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut vm = counting(&dir);
    vm.tell("call 0 10");
    vm.tell("poll");
    assert_eq!(vm.read().tactic, TACTIC_LOAD_FROM_DEX);
    assert_eq!(vm.read().calls, None);

    let mut control = take(&vm);
    vm.tell("poll");
    assert_eq!(vm.read().tactic, TACTIC_LOAD_FROM_DEX, "only locked");
    control.set(&order(7)).unwrap();
    assert_eq!(vm.tell("poll"), 2, "the VM was told");
    assert_eq!(vm.read().tactic, TACTIC_METHOD_INVOKE);
    vm.tell(&format!("call {INVOKE} 10 5"));
    vm.tell(&format!("call {RETURN} 10 3"));
    vm.tell(&format!("call {UNWIND} 10"));
    vm.tell(&format!("call {INVOKE} 1234"));
    let counted = calls(&vm).read().unwrap();
    assert_eq!(counts(&counted), [(0x10, 5, 3, 1), (0x1234, 1, 0, 0)]);
    assert_eq!(counted.session, 7);
    let first = counted.calls[0];
    assert_eq!((first.insns, first.dex, first.index), (0x1000, 0x10000, 16));
    assert_eq!(vm.tell("remap 1234"), REMAP_FIRST + 1);

    // The same session continues; another one resets the counts.
    control.set(&order(7)).unwrap();
    vm.tell("poll");
    vm.tell(&format!("call {INVOKE} 10"));
    assert_eq!(calls(&vm).read().unwrap().calls[0].invokes, 6);
    control.set(&order(8)).unwrap();
    vm.tell("poll");
    vm.tell(&format!("call {INVOKE} 1234"));
    let anew = calls(&vm).read().unwrap();
    assert_eq!(counts(&anew), [(0x10, 0, 0, 0), (0x1234, 1, 0, 0)]);

    control
        .set(&Order {
            session: 8,
            ..Order::default()
        })
        .unwrap();
    assert_eq!(vm.tell("poll"), 21, "on, then off");
    vm.tell(&format!("call {INVOKE} 10"));
    assert_eq!(calls(&vm).read().unwrap(), anew);
    vm.end();
}

#[test]
fn what_was_counted_outlives_the_process() {
    let dir = tempfile::tempdir().unwrap();
    let (mut vm, mut control) = told(&dir);
    let file = calls(&vm);
    vm.tell(&format!("call {INVOKE} 10 123"));
    vm.end();
    assert_eq!(counts(&file.read().unwrap()), [(0x10, 0x123, 0, 0)]);
    control.set(&order(2)).unwrap();
}

#[test]
fn threads_lose_no_event() {
    let dir = tempfile::tempdir().unwrap();
    let (mut vm, _control) = told(&dir);
    vm.tell("threads 8 100 40000");
    let counted = calls(&vm).read().unwrap();
    assert_eq!(counted.calls.len(), 64);
    assert!(
        counted
            .calls
            .iter()
            .all(|call| call.invokes == 8 * 0x40000 / 64)
    );
    vm.end();
}

#[test]
fn methods_beyond_the_room_are_counted_as_such() {
    let dir = tempfile::tempdir().unwrap();
    let (mut vm, _control) = told(&dir);
    let events = u64::from(MAX_CALLS) + 500;
    vm.tell(&format!("sweep 7f0000000000 20 {events:x}"));
    let counted = calls(&vm).read().unwrap();
    let known: u64 = counted.calls.iter().map(|call| call.invokes).sum();
    assert_eq!(known, counted.calls.len() as u64);
    assert_eq!(known + counted.uncounted, events);
    assert!(counted.uncounted >= 500, "{}", counted.uncounted);
    // The table uses nearly all its entries.
    assert!(known >= u64::from(MAX_CALLS) * 9 / 10, "{known}");
    vm.end();
}

#[test]
fn a_forked_child_counts_for_itself() {
    let dir = tempfile::tempdir().unwrap();
    let (mut vm, _control) = told(&dir);
    vm.tell(&format!("call {INVOKE} 10 2"));
    let parents = calls(&vm);
    let parent = vm.pid;
    vm.tell("fork");
    // The fork was not reported to dim.
    vm.tell(&format!("call {INVOKE} 10 9"));
    vm.tell(&format!("call {INVOKE} 30 9"));
    assert_ne!(vm.pid, parent);
    assert_eq!(vm.tell("poll"), 21, "the VM is told that it is off");
    assert_eq!(vm.read().tactic, TACTIC_LOAD_FROM_DEX);
    vm.tell(&format!("call {INVOKE} 10 9"));
    let mut own = take(&vm);
    own.set(&order(2)).unwrap();
    assert_eq!(vm.tell("poll"), 212);
    vm.tell(&format!("call {INVOKE} 20 7"));
    let counted = counts(&calls(&vm).read().unwrap());
    assert_eq!(counted, [(0x10, 0, 0, 0), (0x20, 7, 0, 0)]);
    assert_eq!(counts(&parents.read().unwrap()), [(0x10, 2, 0, 0)]);
    vm.end();
}
