//! The kernel accepts the programs, and targets reach them.

use super::*;
use crate::target::{CodeState, LeaveFrame};
use crate::{Body, target_flags};
use varid_model::Machine;
use varid_tunnel::abi::RULE_AT_SP;

mod frames;
mod java;

/// Returns true if this kernel and this user can load BPF programs. If not, prints the reason.
fn can_load() -> bool {
    // SAFETY: geteuid takes nothing and cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    let btf = std::path::Path::new("/sys/kernel/btf/vmlinux").exists();
    if !root {
        eprintln!("skipped: only root can load BPF programs");
    } else if !btf {
        eprintln!("skipped: this kernel has no BTF (/sys/kernel/btf/vmlinux)");
    }
    root && btf
}

/// Returns true if the kernel has bpf_loop, that is, from 5.17 on.
fn has_bpf_loop() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release
        .split(['.', '-'])
        .map_while(|part| part.trim().parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (5, 17)
}

const OVERFLOW: Hook = Hook::Overflow { keep_all: false };
const HIT: Hook = Hook::Tracepoint { period: 1 };
const PROBED: Hook = Hook::Probe {
    period: 1,
    weight: HitWeight::Allocation,
};
const SWITCH: Hook = Hook::Switch { period: 1 };

fn loads(variants: &'static [Variant], hook: Hook) {
    let name = variants[0].entry;
    for tail_calls in [true, false] {
        let mut shim = Shim::load_one_of(variants, hook, 256, tail_calls)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(shim.variant(), name);
        assert_eq!(shim.counters().unwrap(), Counters::default());
        let target = Target {
            rules: 1 << RULE_AT_SP,
            ..Target::default()
        };
        assert!(target.needs_walker() && !Target::default().needs_walker());
        // A kernel that cannot walk these frames must not end the session.
        shim.set_target(42, &target)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(shim.walker().load().is_ok(), tail_calls);
    }
}

#[test]
fn the_verifier_takes_the_variant_with_bpf_loop() {
    if !has_bpf_loop() {
        eprintln!("skipped: this kernel has no bpf_loop");
    } else if can_load() {
        loads(&VARIANTS[..1], OVERFLOW);
        loads(&off_cpu::VARIANTS[..1], SWITCH);
        loads(&tracepoint::VARIANTS[..1], HIT);
        loads(&probe::VARIANTS[..1], PROBED);
    }
}

#[test]
fn the_verifier_takes_the_variant_without_bpf_loop() {
    if can_load() {
        loads(&VARIANTS[1..], OVERFLOW);
        loads(&off_cpu::VARIANTS[1..], SWITCH);
        loads(&tracepoint::VARIANTS[1..], HIT);
        loads(&probe::VARIANTS[1..], PROBED);
    }
}

#[test]
fn a_variant_that_is_not_there_is_named() {
    if !can_load() {
        return;
    }
    static NONE: [Variant; 1] = [Variant {
        entry: "no_such_program",
        any: "no_such_program",
    }];
    let error = Shim::load_first_of(&NONE, OVERFLOW, 0).unwrap_err();
    assert!(
        matches!(error, BpfError::Missing("no_such_program")),
        "{error}"
    );
}

#[test]
fn targets_come_and_go() {
    if !can_load() {
        return;
    }
    let mut shim = Shim::load(0).unwrap();
    let target = Target {
        flags: target_flags::READY | target_flags::FOLLOW,
        body: [Body { start: 5, end: 9 }; 4],
        ..Target::default()
    };
    shim.set_target(42, &target).unwrap();
    let found = shim.targets.get(&42, 0).unwrap();
    assert_eq!((found.flags, found.body), (target.flags, target.body));
    shim.set_target(42, &Target::default()).unwrap();
    assert_eq!(shim.targets.get(&42, 0).unwrap().flags, 0);
    shim.remove_target(42).unwrap();
    assert!(shim.targets.get(&42, 0).is_err());
    shim.remove_target(42).unwrap();
    shim.admit_everyone(&target).unwrap();
    assert_eq!(shim.everyone.get(&0, 0).unwrap().flags, target.flags);
}

/// A process whose interpreter has one state, which starts at `start`.
fn with_states(start: u32) -> Target {
    let leave = LeaveFrame {
        register: 7,
        word: None,
        bias: 8,
        has_pc: false,
        saved_pc: false,
        saved_frame: false,
        saved_return: true,
    };
    let state = CodeState {
        start,
        leave: Some(leave),
    };
    Target {
        states: CodeStates::new(&[state], Machine::X86_64),
        ..Target::default()
    }
}

#[test]
fn equal_states_share_a_slot_and_one_that_nobody_uses_is_used_again() {
    if !can_load() {
        return;
    }
    let mut shim = Shim::load(0).unwrap();
    let slots = shim.states.len();
    let slot_of = |shim: &mut Shim, pid: u32, start: u32| {
        shim.set_target(pid, &with_states(start)).unwrap();
        shim.targets.get(&pid, 0).unwrap().states
    };
    for number in 1..=slots {
        assert_eq!(slot_of(&mut shim, number, number), number);
    }
    assert_eq!(slot_of(&mut shim, 100, 3), 3);
    // All slots are used.
    assert_eq!(slot_of(&mut shim, 101, 101), 0);
    shim.remove_target(3).unwrap();
    assert_eq!(slot_of(&mut shim, 101, 101), 0, "it still has another user");
    shim.remove_target(100).unwrap();
    assert_eq!(slot_of(&mut shim, 101, 101), 3);
    let table = shim.states.get(&2, 0).unwrap();
    assert_eq!((table.count, table.states[0].start), (1, 101));
    // A process without states releases its slot.
    shim.set_target(1, &Target::default()).unwrap();
    assert_eq!(slot_of(&mut shim, 102, 102), 1);
}

#[test]
fn a_ring_is_as_large_as_its_cpus_need_and_may_be() {
    const PAGE: usize = 4096;
    assert_eq!(shared_ring(0, 4, PAGE), 4096);
    assert_eq!(shared_ring(256, 2, PAGE), 2 << 20);
    assert_eq!(shared_ring(256, 6, PAGE), 8 << 20);
    assert_eq!(shared_ring(usize::MAX, 6, PAGE), 1 << 30);
    // A quarter of a CPU's part of the actual ring, not of the requested one.
    assert_eq!(wake_bytes(2 << 20, 2), 256 << 10);
    assert_eq!(wake_bytes(1 << 30, 1024), 256 << 10);
    assert_eq!(wake_bytes(4096, 4096), 1);
}

#[test]
fn a_smaller_ring_is_tried_only_where_memory_lacks() {
    let refused = |name: &str, error| {
        lacks_memory(&EbpfError::MapError(MapError::CreateError {
            name: name.to_owned(),
            io_error: io::Error::from_raw_os_error(error),
        }))
    };
    assert!(refused("records", libc::ENOMEM) && refused("records", libc::EPERM));
    assert!(!refused("records", libc::EINVAL));
    assert!(!refused("targets", libc::ENOMEM));
    assert!(!lacks_memory(&EbpfError::NoBTF));
}
