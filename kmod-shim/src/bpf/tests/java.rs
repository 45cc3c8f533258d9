//! The program finds HotSpot's frames on a thread's stack, as the walk in user space does.

use super::frames::{event, run};
use super::*;
use crate::java::{CodeHeapPlace, JvmPlaces, JvmTarget};
use crate::record::CapturedSample;
use std::hint::black_box;
use std::os::fd::OwnedFd;
use varid_model::{Address, StackWord};

/// Words of a frame, and the frames on the stack.
const WORDS: usize = 8;
const FRAMES: usize = 950;
/// Offset of the only blob in its heap, and of a return address in it.
const BLOB: usize = 16;
const RETURNS: usize = 0x400;
const SIZE: u32 = 0x800;
const COMPILE_ID: u32 = 77;
/// How often samples are taken, and iterations of some milliseconds.
const ATTEMPTS: usize = 100;
const SPINS: usize = 2_000_000;

/// A code heap with one blob.
struct Heap {
    memory: Vec<u64>,
    segments: Vec<u8>,
}

impl Heap {
    fn new() -> Self {
        let mut memory = vec![0; 0x1000 / 8];
        let mut put = |offset: usize, word: u64| memory[(BLOB + offset) / 8] |= word;
        put(8, u64::from(SIZE) << 32);
        put(24, (WORDS as u64) << 32);
        put(304, COMPILE_ID.into());
        // 32 segments of 128 bytes, all of the block.
        let segments = (0..32).collect();
        Self { memory, segments }
    }

    fn target(&self) -> JvmTarget {
        let start = self.start();
        let heap = CodeHeapPlace {
            reserved: start..start.wrapping_add(0x1000),
            segment_map: Address::new(self.segments.as_ptr().addr() as u64),
            log2_segment_size: 7,
        };
        let none = Address::new(1);
        JvmTarget::new(&JvmPlaces::of_jdk_17(heap, none..none, none)).unwrap()
    }

    fn start(&self) -> Address {
        Address::new(self.memory.as_ptr().addr() as u64)
    }
}

/// The leaf of the samples, whose frame has those of Java in it, and little else: they are looked for near the stack pointer. Returns the words
/// of these frames.
#[inline(never)]
fn leaf(clock: &OwnedFd, returns: Address) -> Vec<StackWord> {
    // Every frame has its number as its caller's frame pointer.
    let mut stack = [0_u64; WORDS * FRAMES];
    for (number, frame) in stack.chunks_mut(WORDS).enumerate() {
        frame[WORDS - 2] = number as u64 | 1 << 63;
        frame[WORDS - 1] = returns.get();
    }
    let stack = black_box(&stack);
    run(clock, true);
    for _ in 0..SPINS {
        black_box(stack);
    }
    run(clock, false);
    let words = stack.iter().map(|word| StackWord {
        at: Address::new(std::ptr::from_ref(word).addr() as u64),
        word: *word,
    });
    words.collect()
}

#[test]
fn words_of_frames_beyond_the_copy_are_told_with_their_code() {
    if !can_load() {
        return;
    }
    let heap = Heap::new();
    let returns = heap.start().wrapping_add(RETURNS as u64);
    let mut shim = Shim::load(1024).unwrap();
    shim.walker().load().unwrap();
    let jvm = Some(heap.target());
    let target = Target {
        jvm,
        ..Target::default()
    };
    let pid = std::process::id();
    shim.set_target(pid, &target).unwrap();
    let stored = shim.targets.get(&pid, 0).unwrap();
    assert_eq!(stored.flags, target_flags::JAVA);
    assert_eq!(shim.jvms.get(&pid, 0).unwrap(), heap.target().0);

    let (clock, output) = (event(0, 50_000), event(10, 1));
    shim.attach(0, clock.as_fd(), output.as_fd()).unwrap();
    let mut words = Vec::new();
    let mut walked = None;
    for _ in 0..ATTEMPTS {
        words = leaf(&clock, returns);
        shim.drain(|bytes| {
            let record = CapturedSample::decode(bytes).unwrap();
            if record.code.at(returns).is_some() {
                walked = Some(record);
            }
        });
        if walked.is_some() {
            break;
        }
    }
    let walked = walked.unwrap();
    let blob = walked.code.at(returns).unwrap();
    assert_eq!((blob.size, blob.compile_id), (SIZE, COMPILE_ID));
    assert_eq!(blob.start, heap.start().wrapping_add(BLOB as u64));
    let end = walked.stack_addr.wrapping_add(walked.stack.len() as u64);
    let mut told = 0;
    // The last frame's caller is none of them.
    for (index, StackWord { at, word }) in words.iter().enumerate().take(WORDS * (FRAMES - 1)) {
        let is_told = index % WORDS >= WORDS - 2 && *at >= end;
        // Bytes that frame pointers lead to may be there, too.
        if is_told {
            assert_eq!(walked.beyond.word(*at), Some(*word), "{index}");
            told += 1;
        }
    }
    assert!(told > FRAMES, "{told}");
    shim.remove_target(pid).unwrap();
    assert!(shim.jvms.get(&pid, 0).is_err());
}
