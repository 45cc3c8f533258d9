//! The walker (C code that also runs in the kernel) over untrusted memory. It stays within its buffers, and chains have
//! no cycles.
//!
//! The input is a layout, the start of the walk, then the memory, which repeats below 4 GiB. Addresses above are
//! unreadable.

use varid_model::Address;
use varid_shim::{
    CodeHeapPlace, JavaLeaf, JvmPlaces, JvmTarget, Leaf, LeafRegisters, LeafState, LeaveFrame,
    Step, Walk, java_walk,
};
use varid_tunnel::abi::{Layout, RULE_SAVE_AREA, RULE_SHADOW};
use varid_tunnel::layout;

/// The size of walker.h's largest buffer.
const WINDOW: usize = 136;
/// Callers of the walker limit their own loop.
const MAX_STEPS: usize = 1024;

struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }
    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }
    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
    fn layout(&mut self) -> Option<Layout> {
        self.take().map(|bytes| Layout::from_bytes(&bytes))
    }
}

fn steps<R: FnMut(u64, &mut [u8]) -> bool>(mut walk: Walk<'_, R>, layout: &Layout) {
    let mut below = None;
    for _ in 0..MAX_STEPS {
        let Step::Frame(frame) = walk.step() else {
            return;
        };
        if layout.has_rule(RULE_SHADOW) || frame.is_quick() {
            continue;
        }
        assert!(
            below.is_none_or(|below| below < frame.address()),
            "a caller's frame that does not lie above"
        );
        // Fragments may have any address. Save areas form one list.
        below =
            (layout.has_rule(RULE_SAVE_AREA) || !frame.is_outermost()).then_some(frame.address());
    }
}

/// JDK 17's HotSpot, whose code heap starts here.
fn jvm(start: u64) -> Option<JvmTarget> {
    const SIZE: u64 = 1 << 24;
    let address = Address::new;
    let end = start.checked_add(SIZE)?;
    let heap = CodeHeapPlace {
        reserved: address(start)..address(end),
        segment_map: address(start.wrapping_sub(SIZE)),
        log2_segment_size: 7,
    };
    let interpreter = address(end.wrapping_sub(SIZE / 2))..address(end);
    JvmTarget::new(&JvmPlaces::of_jdk_17(heap, interpreter, address(start)))
}

/// Walks HotSpot's frames. It tells nothing that is not in the memory.
fn java(code: u64, sp: u64, fp: u64, read: impl Fn(u64, &mut [u8]) -> bool) {
    let Some(jvm) = jvm(code & !0x7f) else {
        return;
    };
    for ip in [0, code] {
        let stack = sp.wrapping_sub(128);
        let leaf = JavaLeaf {
            ip,
            sp,
            fp,
            r15: 0,
            thread: fp,
            stack,
        };
        for word in java_walk(&jvm, &leaf, &read).words(Address::new(stack)) {
            let mut bytes = [0; 8];
            assert!(
                read(word.at.get(), &mut bytes),
                "a word of nothing: {word:?}"
            );
            assert_eq!(u64::from_le_bytes(bytes), word.word, "another word");
        }
    }
}

fn run(bytes: &[u8]) -> Option<()> {
    let mut input = Input(bytes);
    let layout = input.layout()?;
    let (base, tid) = (input.u64()?, input.u32()?);
    let (sp, frame, pc) = (input.u64()?, input.u64()?, input.u64()?);
    let memory = input.0;
    let read = |address: u64, to: &mut [u8]| {
        assert!(to.len() <= WINDOW, "a read of {} bytes", to.len());
        if memory.is_empty() || address >= 1 << 32 {
            return false;
        }
        for (at, byte) in to.iter_mut().enumerate() {
            *byte = memory[(address as usize + at) % memory.len()];
        }
        true
    };
    java(pc, sp, frame, read);
    if layout::check(&layout).is_err() {
        return None;
    }
    for registers in [None, Some((frame, pc))] {
        if let Some(walk) = Walk::from_base(&layout, base, tid, sp, registers, read) {
            steps(walk, &layout);
        }
        let registers = registers.map(|(frame, pc)| LeafRegisters {
            rule: layout.quick_rule.into(),
            frame,
            pc,
        });
        // Any state, from the bits of a number that the walk ignores.
        let is_set = |bit: u32| frame >> bit & 1 != 0;
        let state = LeafState {
            leave: LeaveFrame {
                register: 0,
                word: is_set(0).then_some(-8),
                bias: pc as i16,
                has_pc: is_set(1),
                saved_pc: is_set(2),
                saved_frame: is_set(3),
                saved_return: is_set(4),
            },
            register: frame,
            frame,
            pc,
        };
        for state in [None, Some(state)] {
            let leaf = Leaf {
                ip: pc,
                sp,
                registers,
                state,
                quick: (0, 0),
                link: pc,
            };
            if let Some(walk) = Walk::from_leaf(&layout, base, tid, &leaf, read) {
                steps(walk, &layout);
            }
        }
    }
    if !layout.has_rule(RULE_SHADOW) {
        steps(Walk::from_frame(&layout, frame, pc, read), &layout);
    }
    Some(())
}

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    run(bytes);
}
