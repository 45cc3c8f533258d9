//! A VM obeys the orders in its control page, and only those of the lock's holder.

use std::os::unix::fs::FileExt;

use super::{INVOKE, calls, counting, order, page, take, told};
use varid_tunnel::TunnelError;
use varid_tunnel::abi::{CALL_LEFT_OUT, TACTIC_LOAD_FROM_DEX, TACTIC_METHOD_INVOKE, VmFile};
use varid_tunnel::calls::{CallsFile, Counted};
use varid_tunnel::control::{ControlPage, Order};

#[test]
fn a_filter_leaves_methods_out_and_may_change() {
    let dir = tempfile::tempdir().unwrap();
    let mut vm = counting(&dir);
    let mut control = take(&vm);
    let only = |prefixes: &[&str]| Order {
        filters: prefixes.iter().map(|&prefix| prefix.to_owned()).collect(),
        ..order(1)
    };
    let mut counted_with = |prefixes: &[&str]| {
        control.set(&only(prefixes)).unwrap();
        vm.tell("poll");
        let before = calls(&vm).read().unwrap();
        // An even method, an odd one, and one without a name.
        for method in ["10", "11", "1000"] {
            vm.tell(&format!("call {INVOKE} {method}"));
        }
        let after = calls(&vm).read().unwrap();
        [0x10, 0x11, 0x1000].map(|method| {
            let find = |counted: &Counted| {
                counted
                    .calls
                    .iter()
                    .find(|call| call.method == method)
                    .copied()
            };
            let invokes = |counted: &Counted| find(counted).map_or(0, |call| call.invokes);
            let left_out = find(&after).unwrap().flags & CALL_LEFT_OUT != 0;
            let counted = invokes(&after) - invokes(&before) == 1;
            assert_ne!(left_out, counted);
            counted
        })
    };
    assert_eq!(counted_with(&["org.example."]), [true, false, true]);
    assert_eq!(counted_with(&["org.other.Odd.m"]), [false, true, true]);
    assert_eq!(counted_with(&["org.other.Odd.mm"]), [false, false, true]);
    assert_eq!(
        counted_with(&["x", "org.o", "org.example.Even"]),
        [true, true, true]
    );
    assert_eq!(counted_with(&["org/example"]), [false, false, true]);
    assert_eq!(counted_with(&[]), [true, true, true]);
    vm.end();
}

#[test]
fn two_sessions_refuse_each_other_and_a_dead_one_is_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let (mut vm, first) = told(&dir);
    let second = ControlPage::take(varid_model::Pid::new(vm.pid), &page(&vm));
    assert!(
        matches!(second, Err(TunnelError::Controlled { .. })),
        "{second:?}"
    );
    assert_eq!(vm.read().tactic, TACTIC_METHOD_INVOKE);
    // As the kernel releases the lock when the owner dies.
    drop(first);
    vm.tell("poll");
    assert_eq!(vm.read().tactic, TACTIC_LOAD_FROM_DEX);
    vm.tell("poll");
    // Orders of a dead owner are void.
    let mut second = take(&vm);
    vm.tell("poll");
    assert_eq!(vm.read().tactic, TACTIC_LOAD_FROM_DEX);
    second.set(&order(2)).unwrap();
    vm.tell("poll");
    assert_eq!(vm.read().tactic, TACTIC_METHOD_INVOKE);
    vm.end();
}

#[test]
fn a_hostile_page_puts_the_vm_back_into_its_default() {
    let dir = tempfile::tempdir().unwrap();
    let mut vm = counting(&dir);
    let mut control = take(&vm);
    let file = page(&vm);
    let raw = std::fs::OpenOptions::new()
        .write(true)
        .open(format!("/proc/{}/fd/{}", vm.pid, file.fd))
        .unwrap();
    let set_generation = |value: u32| raw.write_all_at(&value.to_le_bytes(), 16).unwrap();
    let mut generation = 2;
    let lies: [(u64, Vec<u8>); 7] = [
        (20, vec![2]),         // an unknown tactic
        (24, vec![0; 8]),      // no session
        (32, vec![33]),        // more filters than fit
        (32, vec![0xff; 4]),   // many more
        (32, vec![1]),         // an empty filter
        (40, vec![b'/'; 216]), // a log path without a terminator
        (40, b"relative".to_vec()),
    ];
    for (refused, (at, lie)) in lies.iter().enumerate() {
        control.set(&order(1)).unwrap();
        generation += 2;
        vm.tell("poll");
        assert_eq!(vm.read().tactic, TACTIC_METHOD_INVOKE, "{at}: {lie:?}");
        raw.write_all_at(lie, *at).unwrap();
        set_generation(0x1000 + generation);
        vm.tell("poll");
        assert_eq!(vm.read().tactic, TACTIC_LOAD_FROM_DEX, "{at}: {lie:?}");
        assert_eq!(calls(&vm).read().unwrap().refused, refused as u32 + 1);
    }
    // Torn: a writer is active or has died there. The previous orders stay valid.
    control.set(&order(1)).unwrap();
    vm.tell("poll");
    set_generation(0x2001);
    raw.write_all_at(&[9], 20).unwrap();
    vm.tell("poll");
    assert_eq!(vm.read().tactic, TACTIC_METHOD_INVOKE);
    drop(control);
    vm.tell("poll");
    assert_eq!(vm.read().tactic, TACTIC_LOAD_FROM_DEX);
    // The next one writes a complete order.
    take(&vm).set(&order(3)).unwrap();
    vm.end();
}

#[test]
fn nothing_but_the_control_page_can_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let (vm, _control) = told(&dir);
    let description = vm.read();
    let open = |file: VmFile| {
        std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(format!("/proc/{}/fd/{}", vm.pid, file.fd))
            .unwrap()
    };
    let calls = open(description.calls.unwrap());
    assert!(
        calls.write_all_at(&[0], 0).is_err(),
        "its counts can be written"
    );
    assert!(calls.set_len(0).is_err(), "its counts can be truncated");
    let page = open(description.control.unwrap());
    assert!(
        page.set_len(0).is_err(),
        "the control page can be truncated"
    );
    assert!(page.set_len(8192).is_err(), "the control page can grow");
    assert!(
        page.write_all_at(&[0], 4096).is_err(),
        "there is more than a page"
    );
    vm.end();
}

#[test]
fn another_file_behind_the_descriptor_is_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    let vm = counting(&dir);
    let good = page(&vm);
    for lie in [
        VmFile { fd: 0, ..good },
        VmFile {
            fd: 1 << 20,
            ..good
        },
    ] {
        // The mapping is opened if that is permitted, and never the other file.
        match ControlPage::take(varid_model::Pid::new(vm.pid), &lie) {
            Ok(mut control) => control.set(&order(1)).unwrap(),
            Err(error) => assert!(matches!(error, TunnelError::File { .. }), "{error}"),
        }
    }
    let address = vm.read();
    let elsewhere = VmFile {
        address: good.address + 4096,
        ..good
    };
    assert!(ControlPage::take(varid_model::Pid::new(vm.pid), &elsewhere).is_err());
    let larger = VmFile { size: 8192, ..good };
    assert!(ControlPage::take(varid_model::Pid::new(vm.pid), &larger).is_err());
    let calls = CallsFile::open(varid_model::Pid::new(vm.pid), &good);
    assert!(
        matches!(calls, Err(TunnelError::File { .. })),
        "the control page is no calls"
    );
    assert_eq!(address.calls, None);
    vm.end();
}

#[test]
fn a_vm_that_cannot_follow_its_orders_reports_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut vm = counting(&dir);
    let mut control = take(&vm);
    vm.tell("busy");
    control.set(&order(1)).unwrap();
    assert_eq!(vm.tell("poll"), 0);
    assert_eq!(vm.read().tactic, TACTIC_LOAD_FROM_DEX);
    vm.tell(&format!("call {INVOKE} 10"));
    let counted = calls(&vm).read().unwrap();
    assert_eq!((counted.refused, counted.calls.len()), (1, 0));
    vm.tell("busy");
    control.set(&order(2)).unwrap();
    assert_eq!(vm.tell("poll"), 2);
    assert_eq!(vm.read().tactic, TACTIC_METHOD_INVOKE);
    // Stopping is tried again.
    vm.tell("busy");
    drop(control);
    assert_eq!(vm.tell("poll"), 2);
    assert_eq!(vm.read().tactic, TACTIC_LOAD_FROM_DEX);
    vm.tell("busy");
    assert_eq!(vm.tell("poll"), 21);
    vm.end();
}
