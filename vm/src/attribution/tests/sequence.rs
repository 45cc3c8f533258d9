//! Samples of a process one after another, and what happens to it between them.

use super::world::*;
use proptest::prelude::*;
use std::path::Path;
use varid_process::ProcessImage;
use varid_shim::flags::{FRAMES_TRUNCATED, IN_BODY, IN_KERNEL, LINKED_ONLY, NOT_READY, TORN};
use varid_shim::{CapturedSample, FramePc, ManagedFrame};
use varid_vm::Method;

/// So far from the dex file it may be mapped once more.
const AGAIN: u64 = 0x10_0000;

/// What happens between two samples.
#[derive(Debug, Clone, Copy)]
enum Event {
    Nothing,
    /// The dex file is unmapped, or other memory is where it was.
    Unmapped,
    Replaced,
    Mapped,
    /// Something is mapped elsewhere: other memory, the dex file once more.
    MappedElsewhere,
    MappedAgain,
    /// The dex file's mapping shows other things than before.
    Renewed,
    /// The VM describes itself anew: a class was unloaded, its method's memory is another's.
    Unloaded,
    /// A method that could not be read can be.
    Readable,
    /// Its child is sampled, which has all that it has.
    Forked,
    /// It runs a program that is the same, at the same addresses.
    Exec,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        60 => Just(Event::Nothing),
        1 => Just(Event::Unmapped),
        1 => Just(Event::Replaced),
        2 => Just(Event::Mapped),
        1 => Just(Event::MappedElsewhere),
        2 => Just(Event::MappedAgain),
        1 => Just(Event::Renewed),
        1 => Just(Event::Unloaded),
        2 => Just(Event::Readable),
        1 => Just(Event::Forked),
        1 => Just(Event::Exec),
    ]
}

fn happens(world: &mut World, event: Event) {
    let anon = |start| {
        let image = ProcessImage::Other(Path::new("//anon").into());
        mapped(start, 0x1000, 0, image)
    };
    let process = &mut world.process;
    match event {
        Event::Nothing => {}
        Event::Unmapped => process.process.space.remove(DEX, DEX + 0x1000),
        Event::Replaced => assert!(process.process.space.insert(anon(DEX))),
        Event::Mapped => world.map_dex(DEX),
        Event::MappedElsewhere => assert!(process.process.space.insert(anon(NOWHERE + 0x10_0000))),
        Event::MappedAgain => world.map_dex(DEX + AGAIN),
        Event::Renewed => process.process.space.renew(&(DEX..DEX + 0x1000)),
        Event::Unloaded => {
            process.describe_vm_anew(&world.description);
            process.set_method(FIRST, Method::Runtime);
            process.set_method(SECOND, world.native.clone());
        }
        Event::Readable => process.set_method(UNREADABLE, world.native.clone()),
        Event::Forked => world.process = process.fork(process.pid()),
        Event::Exec => {
            process.exec_the_same();
            process.set_method(SECOND, Method::Runtime);
            process.set_method(NATIVE, world.native.clone());
        }
    }
}

/// A frame: what it runs, whether native code called it.
type Frame = (usize, bool);

fn frame() -> impl Strategy<Value = Frame> {
    (0usize..9, prop::bool::weighted(0.2))
}

/// A record, and what has happened before it.
#[derive(Debug, Clone)]
pub struct Sample {
    event: Event,
    tid: u32,
    /// From the outermost on; None: those of the sample before.
    frames: Option<Vec<Frame>>,
    flags: u32,
    /// Its native frames: where the leaf is, what has called that.
    function: &'static str,
    caller: &'static str,
    /// What the leaf's registers say of the bytecode, and by how many bytes they miss the
    /// innermost frame.
    pc: usize,
    misses: u64,
}

prop_compose! {
    fn sample()(
        event in event(),
        tid in 0u32..2,
        frames in prop::option::weighted(0.2, frames()),
        flags in prop_oneof![
            40 => Just(IN_BODY),
            1 => Just(IN_BODY | IN_KERNEL),
            1 => Just(IN_BODY | TORN),
            1 => Just(IN_BODY | FRAMES_TRUNCATED),
            1 => Just(IN_BODY | NOT_READY),
            1 => Just(IN_BODY | LINKED_ONLY),
            1 => Just(0),
        ],
        function in prop_oneof![20 => Just("body"), 1 => Just("interpreter"), 1 => Just("nowhere")],
        caller in prop_oneof![8 => Just("bridge"), 1 => Just("native")],
        pc in prop_oneof![8 => 0usize..2, 2 => 2usize..9],
        misses in prop_oneof![12 => Just(0), 1 => Just(FRAME)],
    ) -> Sample {
        Sample { event, tid, frames, flags, function, caller, pc, misses }
    }
}

fn frames() -> impl Strategy<Value = Vec<Frame>> {
    let outer = prop::sample::select(vec![
        vec![(0, true)],
        vec![(0, true), (1, false), (2, false)],
        vec![(0, true), (1, false), (3, true), (1, false)],
    ]);
    (outer, prop::collection::vec(frame(), 0..3)).prop_map(|(outer, inner)| [outer, inner].concat())
}

/// Samples of a process, in order.
pub fn samples() -> impl Strategy<Value = Vec<Sample>> {
    prop::collection::vec(sample(), 1..64)
}

/// A process of which two accounts are kept: with a memory of its threads' last samples, and without.
pub struct Twice {
    pub remembers: World,
    pub forgets: World,
    frames: Vec<Frame>,
    time: u64,
}

impl Twice {
    pub fn new() -> Self {
        Self {
            remembers: World::list(),
            forgets: World::list(),
            frames: vec![(0, true), (1, false)],
            time: 1,
        }
    }

    /// What has happened happens, and here is the record.
    pub fn next(&mut self, sample: Sample) -> CapturedSample {
        happens(&mut self.remembers, sample.event);
        happens(&mut self.forgets, sample.event);
        self.forgets.process.invalidate_callchains();
        self.frames = sample.frames.unwrap_or(std::mem::take(&mut self.frames));
        let world = &self.remembers;
        let mut record = world.record(&[sample.function, sample.caller, "native"]);
        self.time += 1;
        record.time = varid_model::MonotonicNs::new(self.time);
        (record.tid, record.flags) = (varid_model::Tid::new(sample.tid), sample.flags);
        // Frames of one depth lie where they lay.
        let numbered = (0..).zip(&self.frames);
        let outermost_first = numbered.map(|(n, frame)| managed_frame(world, 20 - n, *frame));
        let mut frames: Vec<_> = outermost_first.collect();
        frames.reverse();
        record.frames = frames[..].into();
        let address = frames
            .first()
            .map(|frame| frame.address().get() + FRAME + sample.misses);
        record.regs.set(FRAME_REGISTER, address);
        let frame = managed_frame(world, 0, (sample.pc, false));
        let pc = match frame.pc() {
            FramePc::Absolute(pc) => pc.get(),
            FramePc::Relative { offset, .. } => offset.to_bytes(2),
            FramePc::Exported { pc, .. } => pc.get(),
            FramePc::Compiled { .. } | FramePc::Native { .. } => 0,
        };
        record.regs.set(PC, Some(pc));
        record
    }
}

/// A frame by the number of what it runs: a method, or nobody's.
pub fn managed_frame(world: &World, n: u64, (what, outermost): (usize, bool)) -> ManagedFrame {
    let [first, second] = &world.code;
    let (method, pc, flags) = match what {
        0 => (0, first.start, 0),
        1 => (0, second.start + 2, 0),
        2 => (FIRST, 2, RELATIVE),
        3 => (NATIVE, 0, QUICK),
        4 => (SECOND, 0, QUICK),
        5 => (RUNTIME, 0, QUICK),
        6 => (UNREADABLE, 0, QUICK),
        7 => (0, first.start + AGAIN, 0),
        _ => (0, NOWHERE, 0),
    };
    managed(n, method, pc, flags | if outermost { OUTERMOST } else { 0 })
}
