//! Does unwind information alone say what ran in a VM that nobody knows, and nothing that did not?
#![cfg(target_arch = "x86_64")] // The frames' rules name its registers.

use super::world::*;
use varid_model::{Reason, Stack};
use varid_shim::CapturedSample;
use varid_shim::flags::{IN_KERNEL, NO_WALK, NOT_READY};

/// DWARF number of the trampoline's register.
const RBX: u16 = 3;

/// A method, the address of its invoke of the other, and the other's first instruction.
fn caller_and_callee(world: &World) -> (u64, u64) {
    let caller = world.method("org.example.Balls.compareTo(java.lang.Object)");
    let callee = world.method("org.example.Balls.compareTo(org.example.Balls)");
    // After a check-cast of two code units.
    (caller.start + 4, callee.start)
}

/// A record whose first interpreter frame executes one bytecode, and the second another; `outer` is that frame's number.
fn record(world: &World, functions: &[&str], inner: u64, outer: (u64, u64)) -> CapturedSample {
    let mut record = world.record(functions);
    record.regs.set(PC, Some(inner));
    // What the inner frame has saved of its caller's.
    put(&mut record, SP + FRAME * outer.0 + FRAME - 24, outer.1);
    record
}

#[test]
fn a_leaf_in_a_loop_is_what_its_register_says() {
    let mut world = World::unknown();
    let pc = world.code[0].start + 2;
    let mut record = world.record(&["loop", "vm_code", "native", "outermost"]);
    record.regs.set(PC, Some(pc));
    for flags in [0, NOT_READY, NO_WALK] {
        let user = world.user(record.clone(), flags, &[], Stack::Vertical);
        assert_eq!(user, [pc], "{flags}");
    }
    let kernel = world.user(record.clone(), IN_KERNEL, &[], Stack::Vertical);
    assert_eq!(kernel, [pc + 1]);
    let (vm, native, outermost) = (
        world.at("vm_code"),
        world.at("native"),
        world.at("outermost"),
    );
    let full = world.user(record.clone(), 0, &[], Stack::Full);
    assert_eq!(full, [pc, vm, native, outermost]);
    record.stack.clear();
    assert_eq!(world.user(record, 0, &[], Stack::None), [pc]);
}

#[test]
fn nothing_but_the_invoke_lies_between_a_method_and_the_one_that_it_invokes() {
    let mut world = World::unknown();
    let (invoke, callee) = caller_and_callee(&world);
    let functions = ["native", "loop", "vm_code", "vm_code", "loop", "outermost"];
    let native = world.at("native");
    let outermost = world.at("outermost");
    let found = record(&world, &functions, callee, (1, invoke));
    assert_eq!(
        world.user(found.clone(), 0, &[], Stack::Full),
        [native, callee + 1, invoke + 1, outermost]
    );
    // Another instruction of the caller ran something else in between.
    let found = record(&world, &functions, callee, (1, invoke - 4));
    assert_eq!(
        world.user(found.clone(), 0, &[], Stack::Vertical),
        [native, callee + 1, left_out(), invoke - 4 + 1]
    );
    let vm = world.at("vm_code");
    assert_eq!(
        world.user(found, 0, &[], Stack::Full),
        [native, callee + 1, vm, vm, invoke - 4 + 1, outermost]
    );
    // Native code called the callee.
    let functions = ["loop", "vm_code", "native", "loop", "outermost"];
    let found = record(&world, &functions, callee, (0, invoke));
    assert_eq!(
        world.user(found, 0, &[], Stack::Vertical),
        [callee, left_out(), invoke + 1]
    );
}

#[test]
fn a_trampolines_method_stands_for_the_interpreter_that_it_calls() {
    let mut world = World::unknown();
    let method = world.code[0].clone();
    let mut record = world.record(&["vm_code", "trampoline", "native", "outermost"]);
    record.regs.set(RBX, Some(method.start));
    let user = world.user(record.clone(), 0, &[], Stack::Vertical);
    assert_eq!(user, [method.start]);
    // It is a method's first instruction or a mistake.
    record.regs.set(RBX, Some(method.start + 2));
    let user = world.user(record, 0, &[], Stack::Vertical);
    assert_eq!(user, [world.at("vm_code"), because(Reason::TornFrames)]);
}

#[test]
fn where_a_method_is_entered_or_left_its_register_is_not_believed() {
    let mut world = World::unknown();
    let (invoke, callee) = caller_and_callee(&world);
    for window in ["entering", "leaving"] {
        let functions = [window, "vm_code", "loop", "outermost"];
        let found = record(&world, &functions, callee, (0, invoke));
        let ip = found.ip.get();
        let user = world.user(found, 0, &[], Stack::Vertical);
        let (torn, caller) = (because(Reason::TornFrames), user.last().copied());
        assert_eq!(
            user.get(..3),
            Some(&[ip, torn, left_out()][..]),
            "{window} {user:x?}"
        );
        // `leaving` has given r12 back: what it restores is its caller's as it is.
        let own = if window == "entering" { invoke } else { callee };
        assert_eq!(caller, Some(own + 1), "{window}");
    }
}

#[test]
fn bytecode_in_no_method_is_counted() {
    let mut world = World::unknown();
    let code = world.code.clone();
    let header = code[0].start & !0xfff;
    for (pc, reason) in [
        (NOWHERE, Reason::UnknownMapping),
        (JIT, Reason::UnknownMapping),
        (header, Reason::UnknownMethod),
    ] {
        let mut record = world.record(&["loop", "outermost"]);
        record.regs.set(PC, Some(pc));
        let ip = record.ip.get();
        let user = world.user(record, 0, &[], Stack::Vertical);
        assert_eq!(user, [ip, because(reason)], "{pc:#x}");
    }
}

#[test]
fn frames_beyond_the_copy_are_counted() {
    let mut world = World::unknown();
    let pc = world.code[0].start;
    let mut record = world.record(&["loop", "vm_code", "loop", "outermost"]);
    record.regs.set(PC, Some(pc));
    record.stack.truncate(FRAME as usize + 8);
    let user = world.user(record, 0, &[], Stack::Vertical);
    assert_eq!(user, [pc, because(Reason::Truncated)]);
}

#[test]
fn a_thread_without_interpreters_is_native() {
    let mut world = World::unknown();
    let record = world.record(&["vm_code", "native", "outermost"]);
    let expected = ["vm_code", "native", "outermost"].map(|name| world.at(name));
    assert_eq!(world.user(record, 0, &[], Stack::Vertical), expected);
}
