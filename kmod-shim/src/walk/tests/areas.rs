//! A walk finds Dalvik's frames, for every generation and machine, and none where there are none.

use super::*;
use crate::abi::frame_flags::EXPORTED;
use varid_tunnel::abi::RULE_SAVE_AREA;

/// The end of a thread's frames: nothing above is readable.
const STACK_END: u64 = 0x5000_0000;

/// A build of Dalvik, with the layout of its structures.
struct Build {
    name: &'static str,
    layout: Layout,
}

/// 1.6, 2.3 and 4.4 for their machines; 4.4 also with `EASY_GDB`, and as 64-bit code.
fn builds() -> Vec<Build> {
    let build = |name, machine, word: u8, area: i16, thread_tid, thread_fragment| {
        let field = u16::from(word);
        Build {
            name,
            layout: Layout {
                machine,
                word,
                reference: word,
                thread_tid,
                thread_fragment,
                ..Layout::with_rules(&[Rule {
                    kind: RULE_SAVE_AREA,
                    frame_bias: -area,
                    frame_link: if area == 24 { 4 } else { 0 },
                    frame_caller_pc: field + if area == 24 { 4 } else { 0 },
                    frame_method: 2 * field + if area == 24 { 4 } else { 0 },
                    frame_pc: 3 * field + if area == 24 { 4 } else { 0 },
                    ..Rule::default()
                }])
            },
        }
    };
    vec![
        build("1.6, ARM, no returnAddr", 40, 4, 16, 24, 44),
        build("2.3, ARM", 40, 4, 20, 20, 40),
        build("2.3, x86", 3, 4, 20, 20, 40),
        build("4.4, ARM", 40, 4, 20, 124, 4),
        build("4.4, x86", 3, 4, 20, 124, 4),
        build("4.4, MIPS", 8, 4, 20, 124, 4),
        build("4.4, EASY_GDB", 3, 4, 24, 124, 4),
        build("64-bit", 62, 8, 40, 16, 8),
    ]
}

/// An area under construction.
#[derive(Clone, Copy, Default)]
struct Area {
    frame: u64,
    caller: u64,
    caller_pc: u64,
    method: u64,
    exported: u64,
}

struct Thread {
    layout: Layout,
    memory: BTreeMap<u64, u8>,
}

impl Thread {
    fn new(layout: Layout, current: u64, areas: &[Area]) -> Self {
        let mut thread = Self {
            layout,
            memory: BTreeMap::new(),
        };
        thread.put(BASE + u64::from(layout.thread_tid), &TID.to_le_bytes());
        thread.word(BASE + u64::from(layout.thread_fragment), current);
        for area in areas {
            let at = thread.area(area.frame);
            let size = u64::from(layout.rules[0].frame_bias.unsigned_abs());
            // Memory that is not written below contains garbage.
            thread.put(at, &vec![0xa5; size as usize]);
            for (offset, value) in [
                (layout.rules[0].frame_link, area.caller),
                (layout.rules[0].frame_caller_pc, area.caller_pc),
                (layout.rules[0].frame_method, area.method),
                (layout.rules[0].frame_pc, area.exported),
            ] {
                thread.word(at + u64::from(offset), value);
            }
        }
        thread
    }

    fn put(&mut self, at: u64, bytes: &[u8]) {
        self.memory.extend((at..).zip(bytes.iter().copied()));
    }

    fn word(&mut self, at: u64, value: u64) {
        self.put(at, &value.to_le_bytes()[..self.layout.word.into()]);
    }

    fn area(&self, frame: u64) -> u64 {
        frame.wrapping_add_signed(self.layout.rules[0].frame_bias.into())
    }

    /// Only bytes that were written can be read.
    fn read(&self, address: u64, to: &mut [u8]) -> bool {
        (address..)
            .zip(to)
            .all(|(at, byte)| match self.memory.get(&at) {
                Some(known) => {
                    *byte = *known;
                    true
                }
                None => false,
            })
    }

    /// `registers`: frame pointer and pc, as in the loop's body.
    fn walk(&self, registers: Option<(u64, u64)>) -> Option<(Vec<ManagedFrame>, Step)> {
        let read = |address, to: &mut [u8]| self.read(address, to);
        let registers = registers.map(|(frame, pc)| (self.area(frame), pc));
        Walk::from_base(&self.layout, BASE, TID, SP, registers, read).map(all)
    }
}

/// `main` called `run`, which called JNI; that called back `visit`, which called `leaf`. Below
/// `main` is the frame of the native method that stands for the thread.
fn stack() -> [Area; 7] {
    let top = STACK_END;
    let frames = [
        top - 0x100,
        top - 0xc0,
        top - 0xa0,
        top - 0x80,
        top - 0x50,
        top - 0x20,
        top,
    ];
    let [leaf, visit, callback, native, run, start, first] = frames;
    let area = |frame, caller, caller_pc, method, exported| Area {
        frame,
        caller,
        caller_pc,
        method,
        exported,
    };
    [
        area(leaf, visit, 0x9210, 0x7300, 0x9999),
        area(visit, callback, 0, 0x7200, 0x9204),
        area(callback, native, 0, 0, 0),
        area(native, run, 0x9114, 0x7100, 3),
        area(run, start, 0, 0x7000, 0x9110),
        area(start, first, 0, 0x6f00, 1),
        area(first, 0, 0, 0, 0),
    ]
}

#[test]
fn frames_come_with_the_pc_that_their_callee_keeps() {
    for Build { name, layout } in builds() {
        let areas = stack();
        let [leaf, visit, _, native, run, start, _] = areas;
        let thread = Thread::new(layout, leaf.frame, &areas);
        let at = |area: Area| thread.area(area.frame);
        // The fake native frame's savedPc is null if it is the thread's outermost frame.
        let outer = [
            frame(at(visit), visit.method, 0x9210, OUTERMOST),
            frame(at(native), native.method, 3, EXPORTED),
            frame(at(run), run.method, 0x9114, OUTERMOST),
            frame(at(start), start.method, 1, EXPORTED | OUTERMOST),
        ];
        let with = |first| {
            let frames: Vec<_> = std::iter::once(first).chain(outer).collect();
            Some((frames, Step::End))
        };
        // In a helper: the leaf's pc is the exported one.
        let exported = frame(at(leaf), leaf.method, 0x9999, EXPORTED);
        assert_eq!(thread.walk(None), with(exported), "{name}");
        // In the body: the leaf's pc is in the register.
        let exact = frame(at(leaf), leaf.method, 0x9306, 0);
        assert_eq!(
            thread.walk(Some((leaf.frame, 0x9306))),
            with(exact),
            "{name}"
        );
    }
}

#[test]
fn a_register_that_is_not_the_threads_frame_has_no_pc_beside_it() {
    for Build { name, layout } in builds() {
        let areas = stack();
        let [leaf, visit, ..] = areas;
        let thread = Thread::new(layout, leaf.frame, &areas);
        for other in [visit.frame, leaf.frame + 4, 0x4000_0000] {
            assert_eq!(
                thread.walk(Some((other, 0x9306))),
                thread.walk(None),
                "{name}: {other:#x}"
            );
        }
    }
}

#[test]
fn a_thread_without_frames_has_none_and_another_s_base_is_refused() {
    for Build { name, layout } in builds() {
        let thread = Thread::new(layout, 0, &[]);
        assert_eq!(thread.walk(None), Some((vec![], Step::End)), "{name}");
        // Only a break: an attached thread that is not in a method.
        let first = stack()[6];
        let thread = Thread::new(layout, first.frame, &[first]);
        assert_eq!(thread.walk(None), Some((vec![], Step::End)), "{name}");
        let mut thread = Thread::new(layout, 0, &[]);
        thread.put(
            BASE + u64::from(layout.thread_tid),
            &(TID + 1).to_le_bytes(),
        );
        assert_eq!(thread.walk(None), None, "{name}");
        let mut thread = Thread::new(layout, 0, &[]);
        thread.memory.retain(|at, _| *at < BASE + 4);
        assert_eq!(thread.walk(None), None, "{name}: absent");
    }
}

#[test]
fn torn_and_hostile_chains_end_where_they_are_torn() {
    for Build { name, layout } in builds() {
        let areas = stack();
        let leaf = areas[0].frame;
        let torn = |change: &dyn Fn(&mut [Area; 7]), frames: usize| {
            let mut areas = stack();
            change(&mut areas);
            let thread = Thread::new(layout, leaf, &areas);
            let (found, end) = thread.walk(None).unwrap();
            assert_eq!((found.len(), end), (frames, Step::Torn), "{name}");
        };
        // A caller that is the frame itself, lies below it, or before the first address.
        torn(&|areas| areas[0].caller = areas[0].frame, 0);
        torn(&|areas| areas[1].caller = areas[0].frame, 1);
        torn(&|areas| areas[1].caller = 8, 2);
        // The caller's area is not readable.
        torn(&|areas| areas[0].caller = 0x4000_0000 + STACK_END, 1);
        torn(&|areas| areas[2].caller = 0x4000_0000 + STACK_END, 2);
        // Two consecutive breaks, and a break that leads back.
        torn(&|areas| areas[3].method = 0, 2);
        torn(&|areas| areas[2].caller = areas[1].frame, 2);
        // The innermost frame's own area is not readable.
        let thread = Thread::new(layout, 0x4000_0000, &areas);
        assert_eq!(thread.walk(None), Some((vec![], Step::Torn)), "{name}");
    }
}

#[test]
fn a_break_has_no_pc_for_what_called_across_it() {
    for Build { name, layout } in builds() {
        let mut areas = stack();
        // A stale pc that was not cleared.
        areas[2].caller_pc = 0x9777;
        let thread = Thread::new(layout, areas[0].frame, &areas);
        let (frames, end) = thread.walk(None).unwrap();
        assert_eq!((frames.len(), end), (5, Step::End), "{name}");
        assert_eq!((frames[2].pc, frames[2].flags), (3, EXPORTED), "{name}");
    }
}

#[test]
fn an_area_at_the_very_end_of_its_stack_is_read_by_itself() {
    for Build { name, layout } in builds() {
        let only = Area {
            frame: STACK_END,
            method: 0x7000,
            exported: 0x9000,
            ..Area::default()
        };
        let thread = Thread::new(layout, only.frame, &[only]);
        let expected = frame(
            thread.area(only.frame),
            0x7000,
            0x9000,
            EXPORTED | OUTERMOST,
        );
        assert_eq!(
            thread.walk(None),
            Some((vec![expected], Step::End)),
            "{name}"
        );
    }
}

proptest! {
    /// In no memory does a step read more than two areas, or a chain turn back.
    #[test]
    fn areas_ascend_in_any_memory(
        words in prop::collection::vec(
            prop_oneof![
                2 => Just(0u32),
                8 => (0u32..0x200).prop_map(|slot| BASE as u32 + 4 * slot),
                1 => any::<u32>(),
            ],
            0x240,
        ),
        which in 0usize..8,
        registers in prop::option::of((0u64..0x200, any::<u32>())),
    ) {
        let layout = builds().swap_remove(which).layout;
        let mut memory = Memory::default();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        memory.put(BASE, &bytes);
        memory.put(BASE + u64::from(layout.thread_tid), &TID.to_le_bytes());
        let reads = std::cell::Cell::new(0);
        let read = |address, to: &mut [u8]| {
            assert!(to.len() <= 60, "a read of {} bytes", to.len());
            reads.set(reads.get() + 1);
            memory.read(address, to)
        };
        let registers = registers.map(|(slot, pc)| (BASE + 4 * slot, u64::from(pc)));
        if let Some(mut walk) = Walk::from_base(&layout, BASE, TID, SP, registers, read) {
            prop_assert!(reads.take() <= 2);
            let mut below = 0;
            for _ in 0..crate::MAX_FRAMES {
                let step = walk.step();
                prop_assert!(reads.take() <= 2);
                let Step::Frame(frame) = step else { break };
                prop_assert!(frame.addr > below && frame.method != 0);
                below = frame.addr;
            }
        }
    }
}
