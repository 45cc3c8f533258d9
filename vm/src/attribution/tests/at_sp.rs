//! Is a callchain whole where an interpreter whose frames are native ones makes one of them?

use super::world::*;
use varid_model::{Reason, Stack};
use varid_shim::CapturedSample;
use varid_shim::flags::{IN_BODY, LINKED_ONLY};

/// Memory below the stack, where frames are made for a method that leaves its compiled code.
const ELSEWHERE: u64 = SP - 0x10_0000;

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn while_it_makes_one_its_callers_are_all_there() {
    let mut world = World::list();
    let pc = world.code[0].start + 4;
    let mut record = world.record(&["nterp_entry", "nterp", "nterp", "native", "outermost"]);
    record.regs.set(PC, Some(pc));
    put(&mut record, SP + FRAME, FIRST);
    put(&mut record, SP + 2 * FRAME, FIRST);
    let [native, outermost] = ["native", "outermost"].map(|name| world.at(name));
    assert_eq!(
        world.user(record, 0, &[], Stack::Full),
        [pc, pc + 1, native, outermost]
    );
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn it_executes_no_frames_that_lie_elsewhere() {
    let mut world = World::list();
    let pc = world.code[0].start;
    let left = frame_at(ELSEWHERE, FIRST, pc, OUTERMOST);
    let [native, entry, outermost] =
        ["native", "nterp_entry", "outermost"].map(|name| world.at(name));
    // The method has thrown; the exception's constructor is entered, and a function has been called for that.
    let record = world.record(&[
        "native",
        "nterp_entry",
        "native",
        "interpreter",
        "bridge",
        "outermost",
    ]);
    assert_eq!(
        world.user(record, 0, &[left], Stack::Full),
        [native, entry, native, pc + 1, outermost]
    );
    // Entered by another interpreter.
    let record = world.record(&["nterp_entry", "interpreter", "bridge", "outermost"]);
    assert_eq!(
        world.user(record, 0, &[left], Stack::Full),
        [entry, pc + 1, outermost]
    );
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn its_frames_are_unwound_where_linked_ones_alone_were_walked() {
    let mut world = World::list();
    let pc = world.code[0].start + 4;
    // Native code has called nterp, and that a method of the other interpreter.
    let mut record = world.record(&["body", "bridge", "nterp", "native", "outermost"]);
    let leaf = managed(1, FIRST, pc, OUTERMOST);
    let note = frame_at(SP + 2 * FRAME - 16, RUNTIME, 0, QUICK);
    record.regs.set(PC, Some(pc));
    let frame_register = leaf.address().get() + FRAME;
    record.regs.set(FRAME_REGISTER, Some(frame_register));
    put(&mut record, SP + 2 * FRAME, FIRST);
    let cut = CapturedSample {
        stack: record.stack[..2 * FRAME as usize].to_vec(),
        ..record.clone()
    };
    let [native, outermost] = ["native", "outermost"].map(|name| world.at(name));
    let truncated = because(Reason::Truncated);
    for (record, more, expected) in [
        // A walk by all rules has found all that there is.
        (&record, 0, vec![pc]),
        (&record, LINKED_ONLY, vec![pc, pc + 1, native, outermost]),
        (&cut, LINKED_ONLY, vec![pc, pc + 1, truncated]),
        (&record, 0, vec![pc]),
    ] {
        let user = world.user(
            record.clone(),
            IN_BODY | more,
            &[leaf, note],
            Stack::Vertical,
        );
        assert_eq!(user, expected, "{more}");
    }
}

/// A record whose copy of the stack ends in the frame behind the leaf's, which is a method's own.
fn cut_in(world: &World, function: &str, pc: u64) -> varid_shim::CapturedSample {
    let mut record = world.record(&["native", function, "native", "outermost"]);
    record.regs.set(PC, Some(pc));
    put(&mut record, SP + FRAME, FIRST);
    record.stack.truncate(FRAME as usize + 8);
    record
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn behind_a_managed_frame_that_unwinding_cannot_leave_its_callers_are_marked_as_missing() {
    // Of a call that is over.
    let note = [managed(9, RUNTIME, 0, QUICK)];
    for (function, walked) in [("quick", &[][..]), ("nterp", &note)] {
        for stack in [Stack::Vertical, Stack::Full] {
            let mut world = World::list();
            let pc = world.code[0].start + 4;
            let record = cut_in(&world, function, pc);
            let native = world.at("native");
            assert_eq!(
                world.user(record, 0, walked, stack),
                [native, pc + 1, because(Reason::Truncated)],
                "{function} {stack:?}"
            );
        }
    }
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn behind_the_copy_of_the_stack_frames_are_missing_outside_of_notes_alone() {
    let mut world = World::list();
    let [first, second] = world.code.clone().map(|code| code.start);
    let mut record = world.record(&["body", "bridge", "vm", "vm"]);
    record.stack.truncate(2 * FRAME as usize);
    let inner = managed(1, FIRST, first, 0);
    let outer = managed(10, SECOND, second, OUTERMOST);
    // The VM's own frame, by which nterp has called the interpreter of these two; who has called nterp is in the list, too.
    let note = frame_at(SP + 11 * FRAME, RUNTIME, 0, QUICK);
    let outside = managed(20, FIRST, first, OUTERMOST);
    let truncated = because(Reason::Truncated);
    let vm = world.at("vm");
    let mut user = |frames: &[_]| {
        let flags = IN_BODY | LINKED_ONLY;
        world.user(record.clone(), flags, frames, Stack::Vertical)
    };
    assert_eq!(user(&[inner, outer]), [first, second + 1]);
    assert_eq!(
        user(&[inner, outer, note, outside]),
        [first, second + 1, truncated, left_out(), first + 1]
    );
    // Unwinding has passed the note, and not the frames of nterp outside of it.
    let near = frame_at(SP + FRAME + 16, RUNTIME, 0, QUICK);
    assert_eq!(user(&[inner, near]), [first, vm, truncated]);
    // Unwinding has not come to the list.
    let beyond = managed(5, FIRST, first, 0);
    assert_eq!(
        user(&[beyond, outer])[1..],
        [truncated, first + 1, second + 1]
    );
}
