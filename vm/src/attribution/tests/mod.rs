//! Does a callchain say what ran, with nothing in the wrong place and nothing missing unsaid?

mod areas;
mod at_sp;
mod callers;
mod interrupted;
mod marked;
mod reasons;
pub mod sequence;
mod shadow;
mod shared_code;
pub mod world;

use varid_model::{Address, Reason, Stack};
use varid_recording::remap;
use varid_shim::flags::{IN_BODY, IN_KERNEL, NO_WALK, NOT_READY};
use world::*;

/// A helper of the loop that has saved the loop's registers, native frames below.
const HELPED: [&str; 5] = ["helper", "body", "bridge", "native", "outermost"];

#[test]
fn a_leaf_in_the_loop_is_its_frames_method() {
    let mut world = World::list();
    let [first, second] = world.code.clone();
    let frames = [
        managed(1, FIRST, first.start + 4, 0),
        managed(2, SECOND, second.start + 2, OUTERMOST),
    ];
    let record = world.record(&["body", "bridge", "native"]);
    let user = world.user(record, IN_BODY, &frames, Stack::Vertical);
    assert_eq!(user, [first.start + 4, second.start + 2 + 1]);
}

#[test]
fn native_frames_between_fragments_are_marked_as_left_out() {
    let mut world = World::list();
    let [first, second] = world.code.clone();
    let frames = [
        managed(1, FIRST, first.start, OUTERMOST),
        managed(4, SECOND, second.start, 0),
        managed(5, FIRST, first.start + 2, OUTERMOST),
    ];
    let record = world.record(&["body", "bridge"]);
    let user = world.user(record, IN_BODY, &frames, Stack::Vertical);
    assert_eq!(
        user,
        [first.start, left_out(), second.start + 1, first.start + 3]
    );
    assert_eq!(unattributed(&user), None);
}

#[test]
fn a_transition_is_the_top_frames_and_said_to_be_one() {
    let mut world = World::list();
    let pc = world.code[0].start;
    let mut record = world.record(&["interpreter", "bridge", "native", "outermost"]);
    record.frames = [managed(1, FIRST, pc, OUTERMOST)][..].into();
    let attributed = world.attribute(&record, Stack::Vertical);
    assert_eq!(
        (addresses(&attributed.user), attributed.transition),
        (vec![pc], true)
    );
    record.regs.set_frame(world.at("native"), SP, 0);
    assert!(!world.attribute(&record, Stack::Vertical).transition);
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn the_exact_pc_below_a_helper_is_the_restored_register() {
    let mut world = World::list();
    let (stale, exact) = (world.code[0].start, world.code[0].start + 6);
    let frame = managed(2, FIRST, stale, OUTERMOST);
    let mut record = world.record(&HELPED);
    put(&mut record, SP + FRAME - 24, exact);
    put(&mut record, SP + FRAME - 32, frame.address().get() + 64);
    let helper = record.ip.get();
    assert_eq!(
        world.user(record.clone(), 0, &[frame], Stack::Vertical),
        [helper, exact + 1]
    );
    // A frame that has not yet said where its instructions are is known by the register, too.
    let relative = managed(2, FIRST, 0, OUTERMOST | RELATIVE);
    assert_eq!(
        world.user(record.clone(), 0, &[relative], Stack::Vertical),
        [helper, exact + 1]
    );
    // The register of another frame says nothing about this one.
    put(&mut record, SP + FRAME - 32, frame.address().get());
    assert_eq!(
        world.user(record, 0, &[frame], Stack::Vertical),
        [helper, stale + 1]
    );
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn managed_frames_stand_where_their_native_ones_lie() {
    let mut world = World::list();
    let [first, second] = world.code.clone();
    // native calls into the VM (frame 6), which runs SECOND; that calls JNI code (1, 2), which calls FIRST.
    let functions = [
        "body",
        "bridge",
        "native",
        "body",
        "bridge",
        "vm",
        "native",
        "outermost",
    ];
    let frames = [
        managed(1, FIRST, first.start, OUTERMOST),
        managed(4, SECOND, second.start, OUTERMOST),
    ];
    let record = world.record(&functions);
    let native = world.at("native");
    let (vm, outermost) = (world.at("vm"), world.at("outermost"));
    let full = world.user(record.clone(), IN_BODY, &frames, Stack::Full);
    assert_eq!(
        full,
        [first.start, native, second.start + 1, vm, native, outermost]
    );
    let vertical = world.user(record, IN_BODY, &frames, Stack::Vertical);
    assert_eq!(vertical, [first.start, left_out(), second.start + 1]);
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn between_frames_of_one_fragment_there_is_only_an_invoke() {
    let mut world = World::list();
    let [first, second] = world.code.clone();
    let functions = [
        "native",
        "body",
        "bridge",
        "vm",
        "body",
        "bridge",
        "outermost",
    ];
    let frames = [
        managed(2, FIRST, first.start, 0),
        managed(5, SECOND, second.start, OUTERMOST),
    ];
    let record = world.record(&functions);
    let (native, outermost) = (world.at("native"), world.at("outermost"));
    let user = world.user(record, 0, &frames, Stack::Full);
    assert_eq!(user, [native, first.start + 1, second.start + 1, outermost]);
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn a_native_method_has_a_slot_if_a_trampoline_holds_its_frame() {
    let mut world = World::list();
    let pc = world.code[0].start;
    let frames = [
        managed(1, NATIVE, 0, QUICK),
        managed(3, FIRST, pc, OUTERMOST),
    ];
    let record = world.record(&["native", "bridge", "body", "bridge", "native", "outermost"]);
    let (native, slot) = (world.at("native"), world.native_slot());
    assert!(remap::contains(Address::new(slot)) && slot >= remap::FIRST_METHOD);
    let user = world.user(record.clone(), 0, &frames, Stack::Vertical);
    assert_eq!(user, [native, slot + 1, pc + 1]);
    // The same method again has the same slot.
    assert_eq!(world.user(record, 0, &frames, Stack::Vertical)[1], slot + 1);
    // The VM's note of a frame that is no more: no trampoline is there.
    let record = world.record(&["native", "native", "body", "bridge", "native", "outermost"]);
    assert_eq!(
        world.user(record, 0, &frames, Stack::Vertical),
        [native, native, pc + 1]
    );
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn a_trampoline_that_makes_its_frame_holds_no_native_method_yet() {
    let mut world = World::list();
    let pc = world.code[0].start;
    let stack = ["bridge", "body", "bridge", "native", "outermost"];
    let record = world.record(&stack);
    let [leaf, native, outermost] = ["bridge", "native", "outermost"].map(|name| world.at(name));
    let slot = world.native_slot();
    for (address, expected) in [
        // An earlier call's note: its frame is where this one's will be.
        (SP, vec![leaf, pc + 1, native, outermost]),
        (SP + 8, vec![leaf, slot + 1, pc + 1, native, outermost]),
    ] {
        let frames = [
            frame_at(address, NATIVE, 0, QUICK),
            managed(2, FIRST, pc, OUTERMOST),
        ];
        let user = world.user(record.clone(), 0, &frames, Stack::Full);
        assert_eq!(user, expected);
    }
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn what_lies_inside_a_frame_that_was_unwound_is_no_compiled_codes() {
    let mut world = World::list();
    let pc = world.code[0].start;
    // A note of the top frame that is outdated leads to what an earlier call has left inside a frame of today.
    let frames = [
        managed(1, SECOND, 0x5000, COMPILED),
        managed(3, FIRST, pc, OUTERMOST),
    ];
    let record = world.record(&["vm", "vm", "body", "bridge", "native", "outermost"]);
    let [vm, native, outermost] = ["vm", "native", "outermost"].map(|name| world.at(name));
    let user = world.user(record.clone(), 0, &frames, Stack::Full);
    assert_eq!(user, [vm, vm, pc + 1, native, outermost]);
    // Unwinding has ended at what the note led to.
    let user = world.user(record, 0, &frames, Stack::Vertical);
    assert_eq!(user, [vm, vm, pc + 1]);
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn what_has_called_the_outermost_frame_that_was_unwound_is_left_out() {
    let mut world = World::list();
    let second = world.code[1].start;
    let [native, quick] = ["native", "quick"].map(|name| world.at(name));
    // The copy of the stack ends with the first frame that was walked.
    let frames = [
        frame_at(SP + FRAME, FIRST, quick, COMPILED | OUTERMOST),
        managed(5, SECOND, second, OUTERMOST),
    ];
    let record = world.record(&["native", "quick", "native", "outermost"]);
    let user = world.user(record, 0, &frames, Stack::Vertical);
    let not_known = because(Reason::UnknownCompiledCode);
    assert_eq!(user, [native, not_known, left_out(), second + 1]);
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn the_vms_own_methods_are_no_frames() {
    let mut world = World::list();
    let pc = world.code[0].start;
    let frames = [
        managed(1, RUNTIME, 0, QUICK),
        managed(3, FIRST, pc, OUTERMOST),
    ];
    let record = world.record(&["native", "bridge", "body", "bridge", "outermost"]);
    let native = world.at("native");
    assert_eq!(
        world.user(record, 0, &frames, Stack::Vertical),
        [native, pc + 1]
    );
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn compiled_code_with_bytecode_is_its_methods_entry() {
    let mut world = World::list();
    let frames = [managed(1, SECOND, 0, QUICK)];
    let record = world.record(&["native", "bridge", "native", "outermost"]);
    let (native, outermost, entry) = (
        world.at("native"),
        world.at("outermost"),
        world.code[1].start,
    );
    let user = world.user(record, 0, &frames, Stack::Full);
    assert_eq!(user, [native, entry + 1, native, outermost]);
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn an_interpreter_with_native_frames_is_known_by_its_method_and_pc() {
    let mut world = World::list();
    let pc = world.code[0].start + 4;
    let mut record = world.record(&["native", "quick", "quick", "outermost"]);
    record.regs.set(PC, Some(pc));
    put(&mut record, SP + FRAME, FIRST);
    put(&mut record, SP + 2 * FRAME, FIRST);
    let (native, outermost) = (world.at("native"), world.at("outermost"));
    assert_eq!(
        world.user(record.clone(), 0, &[], Stack::Full),
        [native, pc + 1, pc + 1, outermost]
    );
    // As the leaf, the pc is exact.
    let mut leaf = world.record(&["quick", "outermost"]);
    leaf.regs.set(PC, Some(pc));
    put(&mut leaf, SP, FIRST);
    assert_eq!(world.user(leaf, 0, &[], Stack::Full), [pc, outermost]);
}

#[test]
fn a_kernel_samples_frames_are_all_callers() {
    let mut world = World::list();
    let [first, second] = world.code.clone();
    let frames = [
        managed(1, FIRST, first.start, 0),
        managed(2, SECOND, second.start, OUTERMOST),
    ];
    let mut record = world.record(&["body", "bridge"]);
    record.ip = Address::new(0xffff_ffff_8100_0000);
    record.kernel = vec![record.ip];
    let user = world.user(record, IN_BODY | IN_KERNEL, &frames, Stack::Vertical);
    assert_eq!(user, [first.start + 1, second.start + 1]);
}

#[test]
fn in_a_kernel_sample_the_reason_for_missing_frames_follows_the_interpreter_s_frame() {
    let mut world = World::list();
    let pc = world.code[0].start;
    let mut record = world.record(&["body", "bridge", "outermost"]);
    record.ip = Address::new(0xffff_ffff_8100_0000);
    record.kernel = vec![record.ip];
    // The thread touches a page of its stack for the first time.
    record.stack.clear();
    let frames = [managed(1, FIRST, pc, OUTERMOST)];
    let user = world.user(record.clone(), IN_BODY | IN_KERNEL, &frames, Stack::Full);
    assert_eq!(user, [pc + 1, because(Reason::Truncated)]);
    // The VM's own frame stands for no method: the leaf is there.
    let leaf = record.regs.ip().unwrap();
    let frames = [managed(1, RUNTIME, 0, OUTERMOST | QUICK)];
    let user = world.user(record, IN_KERNEL, &frames, Stack::Full);
    assert_eq!(user, [leaf, because(Reason::Truncated)]);
}

#[test]
fn a_kernel_thread_has_no_user_frames() {
    let mut world = World::list();
    let mut record = world.record(&["native"]);
    record.regs.set_frame(0, 0, 0);
    assert!(
        world
            .user(record, IN_KERNEL, &[], Stack::Vertical)
            .is_empty()
    );
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn without_stacks_there_is_the_leaf_only() {
    let mut world = World::list();
    let pc = world.code[0].start;
    let record = world.record(&["native", "native", "outermost"]);
    let native = record.ip.get();
    assert_eq!(world.user(record, 0, &[], Stack::None), [native]);
    let record = world.record(&["body", "bridge", "outermost"]);
    assert_eq!(
        world.user(record, IN_BODY, &[managed(1, FIRST, pc, 0)], Stack::None),
        [pc]
    );
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn a_copy_of_the_stack_holds_the_frames_that_nobody_walked() {
    let mut world = World::list();
    let [first, second] = world.code.clone();
    // ShadowFrames fill native frames 2 and 3, but for the return address.
    let (inner, outer) = (SP + 2 * FRAME, SP + 3 * FRAME);
    let mut record = world.record(&["helper", "body", "bridge", "bridge", "native", "outermost"]);
    for (frame, link, method, pc) in [
        (inner, outer, FIRST, first.start),
        (outer, 0, SECOND, second.start + 2),
    ] {
        put_shadow_frame(&mut record, frame, link, method, pc);
    }
    let exact = first.start + 6;
    put(&mut record, SP + FRAME - 24, exact);
    put(&mut record, SP + FRAME - 32, inner + 64);
    let (helper, native, outermost) = (
        world.at("helper"),
        world.at("native"),
        world.at("outermost"),
    );
    // Those that the VM had not linked yet are there, too.
    for flags in [NO_WALK, 0] {
        let user = world.user(record.clone(), flags, &[], Stack::Full);
        assert_eq!(
            user,
            [helper, exact + 1, second.start + 2 + 1, native, outermost]
        );
    }
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn beyond_native_code_a_copy_of_the_stack_has_not_all_methods() {
    let mut world = World::list();
    let [first, second] = world.code.clone();
    // In the middle of an invoke; what the second interpreter executes has called native code.
    let mut record = world.record(&["helper", "body", "bridge", "native", "helper", "body"]);
    let (inner, outer) = (SP + 2 * FRAME, SP + 5 * FRAME);
    for (frame, method, pc) in [(inner, FIRST, first.start), (outer, SECOND, second.start)] {
        put_shadow_frame(&mut record, frame, 0, method, pc);
    }
    put(&mut record, SP + FRAME - 24, first.start);
    put(&mut record, SP + FRAME - 32, inner + 64);
    put(&mut record, SP + 5 * FRAME - 24, second.start);
    put(&mut record, SP + 5 * FRAME - 32, outer + 64);
    let helper = world.at("helper");
    let user = world.user(record, 0, &[], Stack::Full);
    assert_eq!(user[..2], [helper, first.start + 1]);
    assert!(!user.contains(&(second.start + 1)), "{user:x?}");
    assert_eq!(unattributed(&user), Some(Reason::TornFrames));
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn a_loop_that_native_code_enters_has_no_frame_in_a_copy_of_the_stack() {
    let mut world = World::list();
    let [first, _] = world.code.clone();
    let stack = [
        "interpreter",
        "bridge",
        "native",
        "helper",
        "body",
        "outermost",
    ];
    let mut record = world.record(&stack);
    let caller = SP + 4 * FRAME;
    put_shadow_frame(&mut record, caller, 0, FIRST, first.start);
    put(&mut record, SP + 4 * FRAME - 24, first.start);
    put(&mut record, SP + 4 * FRAME - 32, caller + 64);
    for (flag, reason) in [
        (NOT_READY, Reason::VmNotReady),
        (NO_WALK, Reason::TornFrames),
    ] {
        let user = world.user(record.clone(), flag, &[], Stack::Full);
        let [leaf, native, helper, outermost] =
            ["interpreter", "native", "helper", "outermost"].map(|name| world.at(name));
        let marker = because(reason);
        assert_eq!(
            user,
            [
                leaf,
                marker,
                native,
                helper,
                first.start + 1,
                outermost,
                marker
            ]
        );
    }
}
