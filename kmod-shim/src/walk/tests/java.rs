//! HotSpot's frames: the words of the stack by which they are left, and their code.

use super::*;
use crate::java::{CodeHeapPlace, JvmPlaces};
use std::cell::RefCell;
use varid_model::{Address, Resumption};

/// The code heap, its size, and its segment map.
const HEAP: u64 = 0x7e00_0000;
const HEAP_SIZE: u64 = 0x40_0000;
const SEGMENTS: u64 = 0x7d00_0000;
const LOG2: u64 = 7;
const INTERPRETER: u64 = HEAP + 0x1_0000;
const CALL_RETURNS: u64 = HEAP + 0x800;
/// From a block to its blob, and from a blob to its code.
const HEADER: u64 = 16;
const CODE: u64 = 0x180;
const COMPLETE: u64 = 12;
const NATIVE: u64 = 0x5555_0000;
/// A `JavaThread`.
const THREAD: u64 = 0x7b00_0000;

fn target() -> JvmTarget {
    let address = Address::new;
    let heap = CodeHeapPlace {
        reserved: address(HEAP)..address(HEAP + HEAP_SIZE),
        segment_map: address(SEGMENTS),
        log2_segment_size: LOG2 as u8,
    };
    let interpreter = address(INTERPRETER)..address(INTERPRETER + 0x8000);
    JvmTarget::new(&JvmPlaces::of_jdk_17(
        heap,
        interpreter,
        address(CALL_RETURNS),
    ))
    .unwrap()
}

/// A thread of a VM under construction.
struct Jvm {
    memory: Memory,
    /// The next free block of the heap.
    block: u64,
}

impl Jvm {
    fn new() -> Self {
        let mut memory = Memory::default();
        memory.put(SEGMENTS, &[0xff; (HEAP_SIZE >> LOG2) as usize]);
        // The stack is readable.
        for page in 0..32 {
            memory.put(SP - 2 * PAGE + page * PAGE, &[0]);
        }
        let block = HEAP + 0x10_0000;
        Self { memory, block }
    }

    fn word(&mut self, at: u64, word: u64) {
        self.memory.put(at, &word.to_le_bytes());
    }

    /// Makes a blob of so many bytes, whose frames have so many words. Returns the address of its code.
    fn blob(&mut self, size: u64, words: i32, compile_id: u32) -> u64 {
        let block = self.block;
        self.block += size.next_multiple_of(1 << LOG2) + (1 << LOG2);
        let first = (block - HEAP) >> LOG2;
        let last = (block + HEADER + size - 1 - HEAP) >> LOG2;
        for segment in first..=last {
            // As HotSpot numbers them: 0, 1 ... 254, 1 ...
            let number = match segment - first {
                0 => 0,
                number => ((number - 1) % 254 + 1) as u8,
            };
            self.memory.put(SEGMENTS + segment, &[number]);
        }
        let blob = block + HEADER;
        for (offset, number) in [
            (12, size as u32),
            (20, COMPLETE as u32),
            (28, words as u32),
            (304, compile_id),
        ] {
            self.memory.put(blob + offset, &number.to_le_bytes());
        }
        self.word(blob + 32, blob + CODE);
        self.memory.put(blob + CODE, &[0x90; 64]);
        blob + CODE
    }

    /// Puts a frame of so many words at `sp`, left by these two words. Returns its caller's stack pointer.
    fn frame(&mut self, sp: u64, words: u64, caller_fp: u64, returns: u64) -> u64 {
        let caller = sp + 8 * words;
        self.word(caller - 16, caller_fp);
        self.word(caller - 8, returns);
        caller
    }

    fn interpreted(&mut self, fp: u64, sender: u64, caller_fp: u64, returns: u64) {
        for (at, word) in [
            (fp - 64, 0xbc),
            (fp - 24, 0x3e70),
            (fp - 8, sender),
            (fp, caller_fp),
            (fp + 8, returns),
        ] {
            self.word(at, word);
        }
    }

    /// Puts the frame of a call from the VM. `anchor`: the last Java frame before it, its pc and frame pointer.
    fn entry(&mut self, fp: u64, [sp, pc, last_fp]: [u64; 3]) {
        let wrapper = 0x6000_0000 + fp;
        self.frame(fp, 2, 0x1234, NATIVE);
        self.word(fp - 48, wrapper);
        for (offset, word) in [(32, sp), (40, pc), (48, last_fp)] {
            self.word(wrapper + offset, word);
        }
        self.word(wrapper + 72, 0);
    }

    /// Puts the last Java frame of [`THREAD`]: its stack pointer, pc and frame pointer.
    fn anchor(&mut self, words: [u64; 3]) {
        let anchor = THREAD + 656;
        for (at, word) in (anchor..).step_by(8).zip(words) {
            self.word(at, word);
        }
        self.word(anchor + 32, 0);
    }

    fn walk(&self, ip: u64, sp: u64, fp: u64) -> Vec<RawJavaFrame> {
        self.walk_of_thread(0, ip, sp, fp)
    }

    /// `thread`: its `JavaThread`, if it is known.
    fn walk_of_thread(&self, thread: u64, ip: u64, sp: u64, fp: u64) -> Vec<RawJavaFrame> {
        let leaf = JavaLeaf {
            ip,
            sp,
            fp,
            r15: 0,
            thread,
            stack: SP - 128,
        };
        java_walk(&target(), &leaf, |at, to| self.memory.read(at, to)).0
    }
}

/// The link, the return address and the compilation of a frame of compiled code.
fn compiled(frame: &RawJavaFrame) -> (u64, u64, u32) {
    assert_eq!(frame.sender, 0, "{frame:?}");
    let at = SP - 128 + u64::from(frame.at);
    (at, frame.returns, frame.detail as u32)
}

#[test]
fn compiled_frames_are_left_by_their_size_up_to_the_call_from_the_vm() {
    let mut jvm = Jvm::new();
    let (inner, outer) = (jvm.blob(0x200, 4, 7), jvm.blob(0x300, 6, 8));
    let caller = jvm.frame(SP, 4, 1, outer + 0x20);
    let entry = jvm.frame(caller, 6, SP + 0x400, CALL_RETURNS);
    jvm.entry(SP + 0x400, [0; 3]);
    let frames = jvm.walk(inner + 0x20, SP, 0);
    let found: Vec<_> = frames.iter().map(compiled).collect();
    let expected = [
        (caller - 16, outer + 0x20, 7),
        (entry - 16, CALL_RETURNS, 8),
        (SP + 0x400, NATIVE, 0),
    ];
    assert_eq!(found, expected);
    assert_eq!(frames[0].code, inner - CODE);
    assert_eq!(frames[1].detail >> 32, 0x300);
    assert_eq!(frames[2].code, 0, "a call from the VM");
}

#[test]
fn interpreted_frames_are_left_by_the_frame_pointer() {
    let mut jvm = Jvm::new();
    let compiled = jvm.blob(0x200, 4, 7);
    let fp = SP + 0x100;
    // The caller's arguments are part of the frame: its stack pointer is further up.
    jvm.interpreted(fp, fp + 0x40, fp + 0x100, INTERPRETER + 0x500);
    jvm.interpreted(fp + 0x100, fp + 0x110, 5, compiled + 0x20);
    jvm.frame(fp + 0x110, 4, 0, NATIVE);
    let frames = jvm.walk(INTERPRETER + 0x100, SP, fp);
    let [first, second, third, ..] = &frames[..] else {
        panic!("{frames:?}");
    };
    assert_eq!((first.at, first.sender), (0x180, 0x40));
    assert_eq!((first.code, first.detail), (0x3e70, 0xbc));
    assert_eq!((second.sender, second.returns), (0x10, compiled + 0x20));
    assert_eq!((third.caller_fp, third.returns), (0, NATIVE));
}

#[test]
fn the_frame_that_called_the_vm_follows_a_call_from_the_vm() {
    let mut jvm = Jvm::new();
    let code = jvm.blob(0x200, 4, 7);
    let fp = SP + 0x100;
    jvm.frame(SP, 4, fp, CALL_RETURNS);
    let outer = SP + 0x800;
    // Its pc is not in the anchor, but below its stack pointer.
    jvm.entry(fp, [outer, 0, 9]);
    jvm.word(outer - 8, code + 0x30);
    jvm.frame(outer, 4, 0, NATIVE);
    let frames = jvm.walk(code + 0x20, SP, 0);
    let [code_of_leaf, entry, resumes, last] = &frames[..] else {
        panic!("{frames:?}");
    };
    let found = [code_of_leaf, entry, last].map(compiled);
    let expected = [
        (SP + 16, CALL_RETURNS, 7),
        (fp, NATIVE, 0),
        (outer + 16, NATIVE, 7),
    ];
    assert_eq!(found, expected);
    // What the VM has executed between them is native code.
    let expected = Resumption {
        from: Address::new(fp),
        sp: Address::new(outer),
        fp: 9,
        returns: Address::new(code + 0x30),
    };
    let stack = Address::new(SP - 128);
    assert_eq!(resumes.resumption(stack), Some(expected));
    assert_eq!(resumes.words(stack).count(), 0);
    assert_eq!(entry.resumption(stack), None);
    // An anchor that leads back ends the walk.
    jvm.entry(fp, [fp, code + 0x30, 0]);
    assert_eq!(jvm.walk(code + 0x20, SP, 0).len(), 2);
}

#[test]
fn a_leaf_without_a_complete_frame_has_the_next_return_address_as_its_caller() {
    let mut jvm = Jvm::new();
    let (leaf, caller) = (jvm.blob(0x200, 4, 7), jvm.blob(0x200, 4, 8));
    let places = [
        (0, 0x90),
        (COMPLETE - 1, 0x90),
        (0x20, 0x5d),
        (0x20, 0xc3),
        (0x20, 0xc2),
    ];
    // One word is pushed.
    jvm.word(SP, 0x77);
    jvm.word(SP + 8, caller + 0x20);
    jvm.frame(SP + 16, 4, 0, caller + 0x30);
    for (offset, byte) in places {
        jvm.memory.put(leaf + offset, &[byte]);
        let frames = jvm.walk(leaf + offset, SP, 0);
        // Of the leaf there is the code.
        assert_eq!((frames[0].at, frames[0].code), (0, leaf - CODE), "{offset}");
        assert_eq!(compiled(&frames[1]), (SP + 32, caller + 0x30, 8));
        jvm.memory.put(leaf + offset, &[0x90]);
    }
    assert_eq!(compiled(&jvm.walk(leaf + 0x20, SP, 0)[0]).0, SP + 16);
    for bytes in [&[0x49, 0x3b, 0x67][..], &[0x49, 0x3b, 0xa7], &[0x0f, 0x87]] {
        jvm.memory.put(leaf + 0x20, bytes);
        assert_eq!(jvm.walk(leaf + 0x20, SP, 0)[0].at, 0, "{bytes:x?}");
    }
}

#[test]
fn native_code_is_left_where_a_return_address_has_a_caller() {
    let mut jvm = Jvm::new();
    let code = jvm.blob(0x200, 4, 7);
    // A word that is no code, one in a free block, and one whose frame has no caller in code.
    jvm.word(SP + 0x10, 0x1234);
    jvm.word(SP + 0x18, HEAP + HEAP_SIZE - 8);
    jvm.word(SP + 0x20, code + 0x10);
    let at = SP + 0x318;
    jvm.word(at, code + 0x20);
    jvm.frame(at + 8, 4, 0, code + 0x30);
    let frames = jvm.walk(NATIVE, SP, 0);
    assert_eq!(compiled(&frames[0]), (at + 24, code + 0x30, 7));
    // An interpreter's frame is where the callee has saved the frame pointer.
    let mut jvm = Jvm::new();
    let fp = SP + 0x400;
    jvm.word(SP + 0x20, fp);
    jvm.word(SP + 0x28, INTERPRETER + 0x20);
    jvm.interpreted(fp, fp + 16, 0, INTERPRETER + 0x40);
    assert_eq!(jvm.walk(NATIVE, SP, 0)[0].at, 0x480);
    // A word of an earlier call leads to a frame whose caller is in no code.
    let mut jvm = Jvm::new();
    let (stale, code) = (jvm.blob(0x200, 4, 6), jvm.blob(0x200, 4, 7));
    jvm.word(SP + 8, stale + 0x20);
    jvm.frame(SP + 16, 4, 0, stale + 0x30);
    jvm.frame(SP + 48, 4, 0, NATIVE);
    jvm.word(SP + 0x98, code + 0x20);
    jvm.frame(SP + 0xa0, 4, SP + 0x100, CALL_RETURNS);
    jvm.entry(SP + 0x100, [0; 3]);
    let ids: Vec<_> = jvm
        .walk(NATIVE, SP, 0)
        .iter()
        .map(|frame| frame.detail as u32)
        .collect();
    assert_eq!(ids, [6, 6, 7, 0]);
    // It is too far away.
    let mut jvm = Jvm::new();
    let code = jvm.blob(0x200, 4, 7);
    jvm.word(SP + 0x1200, code + 0x20);
    jvm.frame(SP + 0x1208, 4, 0, code + 0x30);
    assert_eq!(jvm.walk(NATIVE, SP, 0), []);
}

#[test]
fn native_code_is_left_by_the_threads_anchor() {
    let mut jvm = Jvm::new();
    let code = jvm.blob(0x200, 4, 7);
    // It is further away than return addresses are looked for.
    let last = SP + 0x8000;
    jvm.anchor([last, code + 0x20, 0]);
    jvm.frame(last, 4, 0, NATIVE);
    let frames = jvm.walk_of_thread(THREAD, NATIVE, SP, 0);
    let expected = Resumption {
        from: Address::default(),
        sp: Address::new(last),
        fp: 0,
        returns: Address::new(code + 0x20),
    };
    let stack = Address::new(SP - 128);
    assert_eq!(frames[0].resumption(stack), Some(expected));
    assert_eq!(compiled(&frames[1]), (last + 16, NATIVE, 7));
    assert_eq!(frames.len(), 2);
    // In Java there is no anchor. One of another stack, and one that leads to no code, are not used.
    let elsewhere = SP + (1 << 20);
    jvm.word(elsewhere, 0);
    for words in [
        [0, 0, 0],
        [SP, code, 0],
        [elsewhere, code, 0],
        [last, NATIVE, 0],
    ] {
        jvm.anchor(words);
        assert_eq!(jvm.walk_of_thread(THREAD, NATIVE, SP, 0), [], "{words:x?}");
    }
}

#[test]
fn a_stub_keeps_a_frame_pointer() {
    let mut jvm = Jvm::new();
    let (stub, caller) = (jvm.blob(0x200, 12, 0), jvm.blob(0x200, 4, 7));
    jvm.memory.put(stub, &[0x55, 0x48, 0x8b, 0xec]);
    let fp = SP + 0x40;
    jvm.word(SP + 0x8, stub + 0x20);
    jvm.frame(fp, 2, 0, caller + 0x20);
    jvm.frame(fp + 16, 4, 0, NATIVE);
    let frames = jvm.walk(NATIVE, SP, fp);
    let found: Vec<_> = frames.iter().map(compiled).collect();
    assert_eq!(found[0].0, fp);
    assert_eq!(found[1], (fp + 32, NATIVE, 7));
}

#[test]
fn a_large_blob_is_found_from_its_last_byte() {
    let mut jvm = Jvm::new();
    let size = 0x10_0000;
    let code = jvm.blob(size, 4, 7);
    jvm.frame(SP, 4, 0, NATIVE);
    let last = code - CODE + size - 1;
    jvm.memory.put(last, &[0x90; 8]);
    assert_eq!(jvm.walk(last, SP, 0).len(), 1);
    jvm.memory.put(last + 1, &[0x90; 8]);
    assert_eq!(jvm.walk(last + 1, SP, 0), []);
}

#[test]
fn deep_recursion_is_walked_to_its_entry() {
    let mut jvm = Jvm::new();
    let code = jvm.blob(0x200, 8, 7);
    let depth = 1000;
    for frame in 0..depth {
        jvm.frame(SP + frame * 64, 8, 0, code + 0x20);
    }
    let (last, fp) = (SP + (depth - 1) * 64, SP + depth * 64 + 64);
    jvm.frame(last, 8, fp, CALL_RETURNS);
    jvm.entry(fp, [0; 3]);
    let frames = jvm.walk(code + 0x10, SP, 0);
    assert_eq!(frames.len() as u64, depth + 1);
    assert_eq!(compiled(frames.last().unwrap()), (fp, NATIVE, 0));
}

proptest! {
    /// Whatever the memory has, a walk ends, and the words that it tells are those of the memory.
    #[test]
    fn only_words_of_the_stack_are_told(
        words in prop::collection::vec((0..0x1000_u64, any::<prop::sample::Index>(), -8..8_i64), 1..64),
        leaf in any::<prop::sample::Index>(),
        fp in 0..0x1000_u64,
    ) {
        let jvm = RefCell::new(Jvm::new());
        let code = jvm.borrow_mut().blob(0x200, 4, 7);
        let stub = jvm.borrow_mut().blob(0x200, -1, 0);
        let interesting = [
            code + 0x20, stub + 0x20, INTERPRETER + 0x20, CALL_RETURNS, NATIVE, SP + 0x100, SP + 0x800,
            HEAP, SEGMENTS, u64::MAX, 0,
        ];
        for (at, what, offset) in words {
            let word = what.get(&interesting).wrapping_add_signed(8 * offset);
            jvm.borrow_mut().word(SP + 8 * at, word);
        }
        let jvm = jvm.into_inner();
        let frames = jvm.walk(*leaf.get(&interesting), SP, SP + 8 * fp);
        prop_assert!(frames.len() <= crate::abi::MAX_JAVA);
        for word in JavaWalk(frames).words(Address::new(SP - 128)) {
            let mut bytes = [0; 8];
            prop_assert!(jvm.memory.read(word.at.get(), &mut bytes), "{word:?}");
            prop_assert_eq!(word.word, u64::from_le_bytes(bytes));
        }
    }
}

#[test]
fn a_stub_that_has_called_the_vm_is_left_by_its_size_without_a_frame_pointer() {
    let mut jvm = Jvm::new();
    let (stub, code) = (jvm.blob(0x200, 6, 0), jvm.blob(0x200, 4, 7));
    jvm.memory.put(stub, &[0x55, 0x48, 0x8b, 0xec]);
    let last = SP + 0x8000;
    let caller = jvm.frame(last, 6, 0, code + 0x20);
    jvm.frame(caller, 4, 0, NATIVE);
    let mut walk = |fp: u64| {
        jvm.anchor([last, stub + 0x20, fp]);
        let frames = jvm.walk_of_thread(THREAD, NATIVE, SP, 0);
        let frames = frames.iter().skip(1);
        frames.map(compiled).collect::<Vec<_>>()
    };
    let expected = [(caller - 16, code + 0x20, 0), (caller + 16, NATIVE, 7)];
    assert_eq!(walk(0), expected);
    // Or by its frame pointer.
    assert_eq!(walk(caller - 16), expected);
}
