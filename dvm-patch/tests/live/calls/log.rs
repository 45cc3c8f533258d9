//! Each event is in the log of the session that requested one.

use super::{INVOKE, calls, counting, order, take};
use crate::dim::Vm;
use varid_tunnel::control::Order;

#[test]
fn a_log_that_cannot_be_written_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let mut vm = counting(&dir);
    let mut control = take(&vm);
    let nowhere = dir.path().join("no/such/folder/log");
    control
        .set(&Order {
            log: nowhere.to_str().unwrap().to_owned(),
            ..order(1)
        })
        .unwrap();
    vm.tell("poll");
    vm.tell(&format!("call {INVOKE} 10 4"));
    let counted = calls(&vm).read().unwrap();
    assert_eq!((counted.calls[0].invokes, counted.unlogged), (4, 4));
    vm.end();
}

#[test]
fn lines_go_to_the_log_of_the_session_that_counts() {
    let dir = tempfile::tempdir().unwrap();
    let mut vm = counting(&dir);
    let path = |name: &str| dir.path().join(name);
    let lines = |pid: u32, name: &str| {
        let file = path(&format!("{name}.{pid}"));
        std::fs::read_to_string(file).map_or(0, |text| text.lines().count())
    };
    let mut events = 0;
    let mut session = |vm: &mut Vm, number: u64, log: &str| {
        // The previous session has ended between two polls of the VM.
        let mut control = take(vm);
        let log = match log {
            "" => String::new(),
            log => path(log).display().to_string(),
        };
        control
            .set(&Order {
                log,
                ..order(number)
            })
            .unwrap();
        vm.tell("poll");
        events += 1;
        vm.tell(&format!("call {INVOKE} 10 {events:x}"));
        calls(vm).read().unwrap().unlogged
    };
    assert_eq!(session(&mut vm, 1, "a"), 0);
    assert_eq!(session(&mut vm, 2, "b"), 0);
    assert_eq!((lines(vm.pid, "a"), lines(vm.pid, "b")), (1, 2));
    assert_eq!(session(&mut vm, 3, ""), 0);
    assert_eq!((lines(vm.pid, "a"), lines(vm.pid, "b")), (1, 2));
    // Without a log, after one that had one.
    assert_eq!(session(&mut vm, 4, "b"), 0);
    assert_eq!(session(&mut vm, 5, "no/such/folder/log"), 5);
    assert_eq!((lines(vm.pid, "a"), lines(vm.pid, "b")), (1, 6));
    assert_eq!(session(&mut vm, 6, "a"), 0);
    assert_eq!((lines(vm.pid, "a"), lines(vm.pid, "b")), (7, 6));
    vm.end();
}
