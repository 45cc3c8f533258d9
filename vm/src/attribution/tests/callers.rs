//! Is what was found of a thread's callers ever taken for what is no longer so?

use super::sequence::*;
use super::world::*;
use proptest::prelude::*;
use varid_model::{Address, Stack};
use varid_shim::FramePc;
use varid_shim::flags::IN_BODY;

/// What is written of a sample gives its addresses names.
fn recorded(world: &mut World, user: &[Address]) {
    for address in user {
        if let Some(mapped) = world.process.process.space.at(address.get()) {
            world.recorded.insert(mapped.id.serial);
        }
    }
}

proptest! {
    #[test]
    fn the_answer_is_the_one_without_a_memory(
        samples in samples(),
        stack in prop::sample::select(vec![Stack::Vertical, Stack::Vertical, Stack::None, Stack::Full]),
    ) {
        let mut twice = Twice::new();
        for sample in samples {
            let record = twice.next(sample);
            let with = twice.remembers.attribute(&record, stack);
            let without = twice.forgets.attribute(&record, stack);
            prop_assert_eq!(&with.user, &without.user);
            prop_assert_eq!(with.transition, without.transition);
            prop_assert!(without.known.is_empty());
            for address in &with.user[with.known] {
                let mapped = twice.remembers.process.process.space.at(address.get());
                prop_assert!(mapped.is_none_or(|mapped| twice.remembers.recorded.contains(&mapped.id.serial)));
            }
            recorded(&mut twice.remembers, &with.user);
        }
    }
}

#[test]
fn callers_that_were_seen_before_are_known() {
    let mut world = World::list();
    let mut record = world.record(&["body", "bridge", "native"]);
    record.flags = IN_BODY;
    let mut frames: Vec<_> = (1..6)
        .map(|n| managed_frame(&world, n, (0, false)))
        .collect();
    record.frames = frames[..].into();
    let first = world.attribute(&record, Stack::Vertical);
    let pc = frames[0].absolute_pc().unwrap();
    frames[0].set_pc(FramePc::Absolute(pc.wrapping_add(2)));
    record.frames = frames[..].into();
    let second = world.attribute(&record, Stack::Vertical);
    assert!(first.known.is_empty());
    assert_eq!(second.known, 1..5);
    assert_eq!(first.user[1..], second.user[1..]);
    // Another thread that has this one's frames has this one's answer.
    record.tid = varid_model::Tid::new(record.tid.get() + 1);
    assert_eq!(world.attribute(&record, Stack::Vertical).user, second.user);
    world.process.process.space.remove(DEX, DEX + 0x1000);
    assert!(world.attribute(&record, Stack::Vertical).known.is_empty());
}

#[test]
fn a_sample_again_is_the_last_one_but_for_its_leaf() {
    let mut world = World::list();
    let mut record = world.record(&["body", "bridge", "native"]);
    record.flags = IN_BODY;
    let frames: Vec<_> = (1..6)
        .map(|n| managed_frame(&world, n, (0, false)))
        .collect();
    record.frames = frames[..].into();
    record
        .regs
        .set(FRAME_REGISTER, Some(frames[0].address().get() + FRAME));
    let mut sample = |world: &mut World, pc, count| {
        record.regs.set(PC, Some(pc));
        let attributed = world.attribute(&record, Stack::Vertical);
        assert_eq!(attributed.user[0], Address::new(pc));
        assert_eq!(attributed.known.len(), count);
        recorded(world, &attributed.user);
    };
    let pc = frames[0].absolute_pc().unwrap().get();
    sample(&mut world, pc, 0);
    sample(&mut world, pc + 2, 5);
    // A leaf elsewhere is not known to be recorded; what happens to what is mapped, for none.
    let image = varid_process::ProcessImage::Other(std::path::Path::new("//anon").into());
    let other = mapped(0x1000, 0x1000, 0, image);
    world.process.process.space.insert(other);
    sample(&mut world, pc, 0);
    sample(&mut world, pc, 5);
    world.process.invalidate_callchains();
    sample(&mut world, pc, 0);
}
