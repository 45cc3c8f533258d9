//! Is what was found of a thread's callers ever taken for what is no longer so?

use super::world::*;
use crate::process::Method;
use proptest::prelude::*;
use varid_recording::Stack;
use varid_shim::ManagedFrame;
use varid_shim::flags::IN_BODY;
use varid_shim::frame_flags::{OUTERMOST, QUICK, RELATIVE};

/// What happens between two samples.
#[derive(Debug, Clone, Copy)]
enum Event {
    Nothing,
    /// The dex file is unmapped, or other memory is where it was.
    Unmapped,
    Replaced,
    Mapped,
    /// The VM describes itself anew: a class was unloaded, its method's memory is another's.
    Unloaded,
    Exec,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        12 => Just(Event::Nothing),
        1 => Just(Event::Unmapped),
        1 => Just(Event::Replaced),
        2 => Just(Event::Mapped),
        1 => Just(Event::Unloaded),
        1 => Just(Event::Exec),
    ]
}

fn happens(world: &mut World, event: Event) {
    let anon = || crate::process::Image::Other(std::path::Path::new("//anon").into());
    match event {
        Event::Nothing => {}
        Event::Unmapped => world.process.space.remove(DEX, DEX + 0x1000),
        Event::Replaced => {
            let other = crate::process::testing::mapped(DEX, 0x1000, 0, anon());
            world.process.space.insert(other);
        }
        Event::Mapped => world.map_dex(),
        Event::Unloaded => {
            world.process.describe_vm_anew();
            world.process.set_method(FIRST, Method::Runtime);
            let native = world.native.clone();
            world.process.set_method(SECOND, native);
        }
        Event::Exec => world.process.exec(),
    }
}

/// A frame: what it runs, whether native code called it.
type Frame = (usize, bool);

fn frame() -> impl Strategy<Value = Frame> {
    (0usize..7, prop::bool::weighted(0.2))
}

/// Its thread, its frames from the outermost on, what has happened before.
type Sample = (u32, Vec<Frame>, Event);

fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let outer = prop::sample::select(vec![
        vec![(0, true)],
        vec![(0, true), (1, false), (2, false)],
        vec![(0, true), (1, false), (3, true), (1, false)],
    ]);
    let frames = (outer, prop::collection::vec(frame(), 0..3))
        .prop_map(|(outer, inner)| [outer, inner].concat());
    prop::collection::vec((0u32..2, frames, event()), 1..24)
}

fn managed_frame(world: &World, n: u64, (what, outermost): (usize, bool)) -> ManagedFrame {
    let [first, second] = &world.code;
    let (method, pc, flags) = match what {
        0 => (0, first.start, 0),
        1 => (0, second.start + 2, 0),
        2 => (FIRST, 2, RELATIVE),
        3 => (NATIVE, 0, QUICK),
        4 => (SECOND, 0, QUICK),
        5 => (RUNTIME, 0, QUICK),
        _ => (0, NOWHERE, 0),
    };
    managed(n, method, pc, flags | if outermost { OUTERMOST } else { 0 })
}

proptest! {
    #[test]
    fn the_answer_is_the_one_without_a_memory(samples in samples()) {
        let (mut remembers, mut forgets) = (World::list(), World::list());
        for (tid, frames, event) in samples {
            happens(&mut remembers, event);
            happens(&mut forgets, event);
            forgets.process.callers.clear();
            let mut record = remembers.record(&["body", "bridge", "native"]);
            (record.tid, record.flags) = (tid, IN_BODY);
            // Frames of one depth lie where they lay.
            let numbered = (0..).zip(&frames);
            let outermost_first = numbered.map(|(n, frame)| managed_frame(&remembers, 20 - n, *frame));
            record.frames = outermost_first.collect();
            record.frames.reverse();
            let (with, without) = (
                remembers.attribute(&record, Stack::Vertical),
                forgets.attribute(&record, Stack::Vertical),
            );
            prop_assert_eq!(with.user, without.user);
            prop_assert!(without.known.is_empty());
        }
    }
}

#[test]
fn callers_that_were_seen_before_are_known() {
    let mut world = World::list();
    let mut record = world.record(&["body", "bridge", "native"]);
    record.flags = IN_BODY;
    record.frames = (1..6)
        .map(|n| managed_frame(&world, n, (0, false)))
        .collect();
    let first = world.attribute(&record, Stack::Vertical);
    record.frames[0].pc += 2;
    let second = world.attribute(&record, Stack::Vertical);
    assert!(first.known.is_empty());
    assert_eq!(second.known, 1..5);
    assert_eq!(first.user[1..], second.user[1..]);
    // Another thread that has this one's frames has this one's answer.
    record.tid += 1;
    assert_eq!(world.attribute(&record, Stack::Vertical).user, second.user);
    world.process.space.remove(DEX, DEX + 0x1000);
    assert!(world.attribute(&record, Stack::Vertical).known.is_empty());
}
