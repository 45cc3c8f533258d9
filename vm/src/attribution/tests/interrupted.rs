//! Are the frames that a signal interrupted those that lie behind its handler's, wherever the handler's stack is?

use super::world::*;
use varid_model::{Reason, Stack};
use varid_shim::CapturedSample;
use varid_shim::flags::{INTERRUPTED, NO_WALK};

/// Stacks for a signal's handler: one below the thread's own, and one above.
const ALTERNATE: [u64; 2] = [SP - 0x10_0000, SP + 0x10_0000];

/// The method at the stack pointer of native frame `n` of what a signal interrupted.
fn put_method(record: &mut CapturedSample, n: u64, method: u64) {
    let at = (SP + n * FRAME - record.interrupted.start.get()) as usize;
    record.interrupted.bytes[at..at + 8].copy_from_slice(&method.to_le_bytes());
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn methods_that_a_signal_interrupted_come_behind_its_frame() {
    for alternate in ALTERNATE {
        for stack in [Stack::Vertical, Stack::Full] {
            let mut world = World::list();
            let [first, second] = world.code.clone();
            let pc = first.start + 4;
            let functions = ["quick", "bridge", "native", "body", "bridge", "outermost"];
            let mut record = world.interrupted(&functions, alternate);
            record.regs.set(PC, Some(pc));
            put_method(&mut record, 0, FIRST);
            let walked = [managed(3, SECOND, second.start, OUTERMOST)];
            let [handler, signal, native, outermost] =
                ["native", "signal", "native", "outermost"].map(|name| world.at(name));
            let user = world.user(record, 0, &walked, stack);
            let callers = match stack {
                Stack::Full => vec![native, second.start + 1, outermost],
                _ => vec![native, second.start + 1],
            };
            let expected = [&[handler, signal + 1, pc + 1][..], &callers].concat();
            assert_eq!(user, expected, "{alternate:x} {stack:?}");
        }
    }
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn what_was_searched_for_at_another_place_than_unwinding_finds_is_none() {
    for alternate in ALTERNATE {
        let mut world = World::list();
        let second = world.code[1].clone();
        let mut record = world.interrupted(&["native", "body", "bridge", "outermost"], alternate);
        record.interrupted.start = record.interrupted.start.wrapping_add(FRAME);
        let walked = [managed(1, SECOND, second.start, OUTERMOST)];
        let [handler, signal, native] = ["native", "signal", "native"].map(|name| world.at(name));
        let user = world.user(record, 0, &walked, Stack::Vertical);
        assert_eq!(user[..3], [handler, signal + 1, native + 1]);
        assert!(!user.contains(&(second.start + 1)));
        assert_eq!(unattributed(&user), Some(Reason::TornFrames));
    }
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn where_the_alternate_stack_alone_is_copied_callers_are_missing_behind_the_interrupted_method() {
    for alternate in ALTERNATE {
        for stack in [Stack::Vertical, Stack::Full] {
            let mut world = World::list();
            let pc = world.code[0].start + 4;
            let mut record = world.interrupted(&["nterp", "native", "outermost"], alternate);
            record.regs.set(PC, Some(pc));
            record.flags = NO_WALK & !INTERRUPTED;
            record.interrupted = Default::default();
            let [handler, signal] = ["native", "signal"].map(|name| world.at(name));
            assert_eq!(
                world.user(record, 0, &[], stack),
                [handler, signal + 1, pc + 1, because(Reason::Truncated)],
                "{alternate:x} {stack:?}"
            );
        }
    }
}
