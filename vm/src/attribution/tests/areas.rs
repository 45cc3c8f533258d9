//! Do managed frames on a stack of their own come where their loop's native frames are?

use super::world::*;
use varid_model::{Reason, Stack};
use varid_shim::flags::{IN_BODY, NO_WALK};
use varid_shim::{CapturedSample, ManagedFrame};

/// A frame of the other stack, which lies anywhere: here below the native one.
fn area(n: u64, method: u64, pc: u64, flags: u64) -> ManagedFrame {
    frame_at(0x1000 + 0x40 * n, method, pc, flags)
}

/// Native code called SECOND, that called FIRST; that is where `n` and `flags` say.
fn frames(world: &World, pc: u64, flags: u64) -> [ManagedFrame; 2] {
    let method = if flags & EXPORTED != 0 { FIRST } else { 0 };
    [
        area(0, method, pc, flags),
        area(1, 0, world.code[1].start, OUTERMOST),
    ]
}

#[test]
fn a_leaf_in_the_loop_is_where_its_register_says() {
    let mut world = World::areas();
    let [first, second] = world.code.clone().map(|code| code.start);
    let record = world.record(&["body", "native"]);
    let frames = frames(&world, first + 4, 0);
    let user = world.user(record, IN_BODY, &frames, Stack::Vertical);
    assert_eq!(user, [first + 4, second + 1]);
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn native_frames_stand_before_the_frames_of_the_loop_that_called_them() {
    let mut world = World::areas();
    let [first, second] = world.code.clone().map(|code| code.start);
    let record = world.record(&["native", "native", "body", "native", "outermost"]);
    let native = world.at("native");
    let [inner, outer] = frames(&world, first + 4, EXPORTED);
    let user = world.user(record, 0, &[inner, outer], Stack::Vertical);
    assert_eq!(user, [native, native, first + 4 + 1, second + 1]);
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn each_loop_has_the_frames_up_to_a_break() {
    let mut world = World::areas();
    let [first, second] = world.code.clone().map(|code| code.start);
    let functions = ["native", "body", "native", "body", "native", "outermost"];
    let record = world.record(&functions);
    let (native, outermost) = (world.at("native"), world.at("outermost"));
    let frames = [
        area(0, 0, first, 0),
        area(1, 0, second, OUTERMOST),
        area(2, 0, first + 2, OUTERMOST),
    ];
    let full = world.user(record.clone(), 0, &frames, Stack::Full);
    let (first, second) = (first + 1, second + 1);
    assert_eq!(
        full,
        [native, first, second, native, first + 2, native, outermost]
    );
    let vertical = world.user(record, 0, &frames, Stack::Vertical);
    assert_eq!(vertical, [native, first, second, left_out(), first + 2]);
}

#[test]
fn a_stale_pc_is_not_believed() {
    let mut world = World::areas();
    let [first, second] = world.code.clone();
    let record = world.record(&["body", "native"]);
    let mut place = |pc| {
        let frames = frames(&world, pc, EXPORTED);
        world.user(record.clone(), 0, &frames, Stack::Vertical)[0]
    };
    assert_eq!(place(first.start + 4), first.start + 4);
    // Another method's that was there before; nobody's; behind the last instruction.
    for stale in [second.start, 0, first.end] {
        assert_eq!(place(stale), first.start, "{stale:#x}");
    }
}

#[test]
fn a_native_method_has_a_slot() {
    let mut world = World::areas();
    let second = world.code[1].start;
    let record = world.record(&["body", "native"]);
    let slot = world.native_slot();
    let frames = [
        area(0, NATIVE, 3, EXPORTED),
        area(1, 0, second, OUTERMOST),
        area(2, UNREADABLE, 3, EXPORTED),
    ];
    let user = world.user(record, 0, &frames, Stack::Vertical);
    let missing = because(Reason::VmGone);
    assert_eq!(user, [slot, second + 1, left_out(), missing]);
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn a_restored_register_is_exact_if_it_is_in_the_frames_method() {
    let mut world = World::areas();
    let [first, second] = world.code.clone().map(|code| code.start);
    let frames = frames(&world, first, EXPORTED);
    let mut record = world.record(&["helper", "body", "native", "outermost"]);
    let helper = record.ip.get();
    put(&mut record, SP + FRAME - 32, frames[0].address().get() + 64);
    for (restored, place) in [(first + 6, first + 6), (second + 2, first)] {
        put(&mut record, SP + FRAME - 24, restored);
        let user = world.user(record.clone(), 0, &frames, Stack::Vertical);
        assert_eq!(user, [helper, place + 1, second + 1]);
    }
    // What the frame's callee has kept needs no register.
    let frames = [area(0, 0, first + 4, 0), frames[1]];
    put(&mut record, SP + FRAME - 24, first + 6);
    let user = world.user(record, 0, &frames, Stack::Vertical);
    assert_eq!(user, [helper, first + 4 + 1, second + 1]);
}

/// A record whose leaf is `at` bytes into the code cache.
fn in_cache(world: &World, at: u64) -> CapturedSample {
    let mut record = world.record(&["jit", "native"]);
    record.ip = varid_model::Address::new(JIT + at);
    record.regs.set_frame(JIT + at, SP, 0);
    record
}

#[test]
fn compiled_code_is_the_bytecode_that_it_was_made_of() {
    let mut world = World::areas();
    let [first, second] = world.code.clone().map(|code| code.start);
    let mut leaf = |at| {
        let frames = frames(&world, first + 6, EXPORTED);
        let record = in_cache(&world, at);
        let attributed = {
            let mut record = record;
            record.frames = frames[..].into();
            world.attribute(&record, Stack::Vertical)
        };
        let user = addresses(&attributed.user);
        assert_eq!(user[1..], [second + 1]);
        (user[0], attributed.transition)
    };
    assert_eq!(leaf(0x10), (first + 2, false));
    assert_eq!(leaf(0x7f), (first + 2, false));
    // Before the first trace there are the VM's own stretches; the second is another method's.
    assert_eq!(leaf(0x0f), (first + 6, true));
    assert_eq!(leaf(0x80), (first + 6, true));
}

#[test]
fn a_copy_of_the_native_stack_holds_no_frames_but_the_register_its_pc() {
    let mut world = World::areas();
    let first = world.code[0].start;
    let mut record = world.record(&["body", "native"]);
    record.regs.set(PC, Some(first + 4));
    record.regs.set(FRAME_REGISTER, Some(0x1040));
    let user = world.user(record, NO_WALK, &[], Stack::Vertical);
    assert_eq!(user, [first + 4, because(Reason::Truncated)]);
}
