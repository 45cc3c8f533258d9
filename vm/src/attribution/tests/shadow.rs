//! Does a shadow stack say what runs while it is behind, or ahead of, what runs?

use super::world::*;
use crate::Method;
use varid_model::{Reason, Stack};
use varid_shim::ManagedFrame;
use varid_shim::flags::NOT_READY;
use varid_tunnel::abi::{Call, NO_INDEX, REMAP_FIRST, RETIRED};

/// The record that native frame `n` made at its entry.
fn entered(n: u64, pc: u64) -> ManagedFrame {
    frame_at(SP + FRAME * n + FRAME - 8, 0, pc, 0)
}

const CALLS: [&str; 4] = ["interpreter", "interpreter", "native", "outermost"];

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn every_record_is_its_native_frames_method() {
    let mut world = World::shadow();
    let [first, second] = world.code.clone().map(|code| code.start);
    let (native, outermost) = (world.at("native"), world.at("outermost"));
    let records = [entered(0, first), entered(1, second)];
    let record = world.record(&CALLS);
    assert_eq!(
        world.user(record.clone(), 0, &records, Stack::Vertical),
        [first, second + 1]
    );
    assert_eq!(
        world.user(record, 0, &records, Stack::Full),
        [first, second + 1, native, outermost]
    );
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn a_remapped_address_is_its_method_with_bytecode_or_without() {
    let mut world = World::shadow();
    let first = world.code[0].start;
    let Method::Known { index, .. } = world.native.clone() else {
        panic!("a known method")
    };
    let entry = |insns, index| Call {
        // Forgotten: the entry says which it was.
        method: RETIRED,
        insns,
        dex: DEX,
        index,
        ..Call::default()
    };
    let unknown = Call {
        method: RETIRED,
        index: NO_INDEX,
        ..Call::default()
    };
    let entries = vec![entry(first, NO_INDEX), entry(0, index), unknown];
    world.process.set_remapped(&world.description, entries);
    let slot = world.native_slot();
    let record = world.record(&CALLS);
    let records = [entered(0, REMAP_FIRST), entered(1, REMAP_FIRST + 1)];
    assert_eq!(
        world.user(record.clone(), 0, &records, Stack::Vertical),
        [first, slot + 1]
    );
    let records = [entered(0, REMAP_FIRST + 1), entered(1, REMAP_FIRST + 2)];
    assert_eq!(
        world.user(record, 0, &records, Stack::Vertical),
        [slot, because(Reason::VmGone)]
    );
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn records_that_an_exception_left_behind_are_dropped() {
    let mut world = World::shadow();
    let [first, second] = world.code.clone().map(|code| code.start);
    let left = |below: u64| frame_at(SP - below, 0, second, 0);
    let records = [left(200), left(8), entered(0, first), entered(1, second)];
    let record = world.record(&CALLS);
    assert_eq!(
        world.user(record, 0, &records, Stack::Vertical),
        [first, second + 1]
    );
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn a_method_that_has_not_published_its_record_is_not_its_caller() {
    let mut world = World::shadow();
    let second = world.code[1].start;
    let record = world.record(&CALLS);
    let ip = record.ip.get();
    let user = world.user(record, 0, &[entered(1, second)], Stack::Vertical);
    assert_eq!(user, [ip, because(Reason::TornFrames), second + 1]);
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn the_innermost_record_is_not_believed_where_the_leafs_own_frame_cannot_be_left() {
    let mut world = World::shadow();
    let second = world.code[1].start;
    let mut record = world.record(&CALLS);
    record.stack.clear();
    let ip = record.ip.get();
    let user = world.user(record, 0, &[entered(1, second)], Stack::Vertical);
    assert_eq!(user[..2], [ip, because(Reason::TornFrames)], "{user:x?}");
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn a_native_leaf_stands_above_the_record_of_its_caller() {
    let mut world = World::shadow();
    let [first, second] = world.code.clone().map(|code| code.start);
    let record = world.record(&["native", "interpreter", "interpreter", "outermost"]);
    let native = record.ip.get();
    let records = [entered(1, first), entered(2, second)];
    assert_eq!(
        world.user(record, 0, &records, Stack::Vertical),
        [native, first + 1, second + 1]
    );
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the frames' rules name x86-64's registers"
)]
fn records_of_a_vm_that_was_not_known_yet_are_missing_wherever_its_methods_called() {
    let mut world = World::shadow();
    let missing = because(Reason::VmNotReady);
    let called = world.record(&["native", "interpreter", "native", "outermost"]);
    let user = world.user(called, NOT_READY, &[], Stack::Vertical);
    assert_eq!(user.last(), Some(&missing), "{user:x?}");
    // Of a thread that ends without one there is nothing to say; of one whose end is not to be seen, there is.
    let whole = world.record(&["native", "native", "outermost"]);
    let user = world.user(whole.clone(), NOT_READY, &[], Stack::Vertical);
    assert!(!user.contains(&missing), "{user:x?}");
    let mut cut = whole;
    cut.stack.truncate(FRAME as usize);
    let user = world.user(cut, NOT_READY, &[], Stack::Vertical);
    assert_eq!(user.last(), Some(&missing), "{user:x?}");
}
