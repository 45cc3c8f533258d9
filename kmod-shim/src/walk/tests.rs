//! A walk finds the frames of a VM, and stops at inconsistent ones.

mod areas;
mod at_sp;
mod inner;
mod java;
mod mixed;
mod sized;

use super::*;
use crate::abi::frame_flags::{OUTERMOST, QUICK, RELATIVE};
use proptest::prelude::*;
use std::collections::BTreeMap;
use varid_tunnel::abi::{LAYOUT_ON_NATIVE_STACK, RULE_LIST, RULE_SHADOW, Rule};

const PAGE: u64 = 4096;
const TID: u32 = 77;
/// The thread's base.
const BASE: u64 = 0x10_0000;
/// The stack pointer; frames have higher addresses.
const SP: u64 = 0x7f00_0000;

/// Memory that is readable only where something was written.
#[derive(Default)]
struct Memory(BTreeMap<u64, Vec<u8>>);

impl Memory {
    fn put(&mut self, address: u64, bytes: &[u8]) {
        for (at, byte) in (address..).zip(bytes) {
            let page = self
                .0
                .entry(at / PAGE)
                .or_insert_with(|| vec![0; PAGE as usize]);
            page[(at % PAGE) as usize] = *byte;
        }
    }

    fn read(&self, address: u64, to: &mut [u8]) -> bool {
        (address..)
            .zip(to)
            .all(|(at, byte)| match self.0.get(&(at / PAGE)) {
                Some(page) => {
                    *byte = page[(at % PAGE) as usize];
                    true
                }
                None => false,
            })
    }
}

/// A thread's frames under construction, in one VM's layout.
struct Vm {
    layout: Layout,
    memory: Memory,
}

impl Vm {
    /// ART 11 on x86-64.
    fn wide() -> Self {
        let list = Rule {
            kind: RULE_LIST,
            frame_link: 0,
            frame_method: 8,
            frame_pc: 24,
            frame_insns: 32,
            frame_index: 52,
            ..Rule::default()
        };
        let layout = Layout {
            flags: LAYOUT_ON_NATIVE_STACK,
            machine: 62,
            word: 8,
            reference: 4,
            thread_tid: 0x10,
            thread_fragment: 0xb8,
            fragment_quick: 0,
            fragment_link: 8,
            fragment_top: 16,
            ..Layout::with_rules(&[list])
        };
        Self::with(layout)
    }

    /// ART 11 on 32-bit ARM.
    fn narrow() -> Self {
        let list = Rule {
            frame_method: 4,
            frame_pc: 12,
            frame_insns: 16,
            frame_index: 28,
            ..Self::wide().layout.rules[0]
        };
        let layout = Layout {
            machine: 40,
            word: 4,
            thread_fragment: 0xac,
            fragment_link: 4,
            fragment_top: 8,
            rules: Layout::with_rules(&[list]).rules,
            ..Self::wide().layout
        };
        Self::with(layout)
    }

    fn with(layout: Layout) -> Self {
        let mut vm = Self {
            layout,
            memory: Memory::default(),
        };
        vm.memory.put(BASE, &[0; 512]);
        vm.memory
            .put(BASE + u64::from(layout.thread_tid), &TID.to_le_bytes());
        vm
    }

    fn word(&mut self, address: u64, value: u64) {
        self.memory
            .put(address, &value.to_le_bytes()[..self.layout.word.into()]);
    }

    fn base_fragment(&self) -> u64 {
        BASE + u64::from(self.layout.thread_fragment)
    }

    fn fragment(&mut self, at: u64, quick: u64, top: u64, link: u64) {
        let layout = self.layout;
        self.memory.put(at, &[0; 64]);
        self.word(at + u64::from(layout.fragment_quick), quick);
        self.word(at + u64::from(layout.fragment_top), top);
        self.word(at + u64::from(layout.fragment_link), link);
    }

    /// A frame whose pc has been exported.
    fn frame(&mut self, at: u64, link: u64, method: u64, pc: u64) {
        let rule = self.layout.rules[0];
        self.memory.put(at, &[0; 72]);
        self.word(at + u64::from(rule.frame_link), link);
        self.word(at + u64::from(rule.frame_method), method);
        self.word(at + u64::from(rule.frame_pc), pc);
    }

    /// All that a walk from the base finds; None: it did not start.
    fn walk(&self, registers: Option<(u64, u64)>) -> Option<(Vec<ManagedFrame>, Step)> {
        let read = |address, to: &mut [u8]| self.memory.read(address, to);
        Walk::from_base(&self.layout, BASE, TID, SP, registers, read).map(all)
    }
}

/// Returns the frames of a walk, and how it ended.
fn all<R: FnMut(u64, &mut [u8]) -> bool>(mut walk: Walk<'_, R>) -> (Vec<ManagedFrame>, Step) {
    let mut frames = Vec::new();
    loop {
        match walk.step() {
            Step::Frame(frame) if frames.len() < crate::MAX_FRAMES => frames.push(frame),
            end => return (frames, end),
        }
    }
}

fn frame(addr: u64, method: u64, pc: u64, flags: u64) -> ManagedFrame {
    ManagedFrame {
        addr,
        method,
        pc,
        flags,
    }
}

#[test]
fn frames_come_innermost_first_across_fragments_in_both_word_sizes() {
    for mut vm in [Vm::wide(), Vm::narrow()] {
        let (inner, outer) = (SP + 0x100, SP + 0x800);
        // The VM's tag is not part of a quick frame's address.
        vm.fragment(vm.base_fragment(), (SP + 0x40) | 1, inner, outer);
        vm.word(SP + 0x40, 0x5000);
        vm.frame(inner, inner + 0x100, 0x5010, 0x9010);
        vm.frame(inner + 0x100, 0, 0x5020, 0x9020);
        vm.fragment(outer, 0, outer + 0x100, 0);
        vm.frame(outer + 0x100, 0, 0x5030, 0x9030);
        let expected = vec![
            frame(SP + 0x40, 0x5000, 0, QUICK),
            frame(inner, 0x5010, 0x9010, 0),
            frame(inner + 0x100, 0x5020, 0x9020, OUTERMOST),
            frame(outer + 0x100, 0x5030, 0x9030, OUTERMOST),
        ];
        assert_eq!(
            vm.walk(None),
            Some((expected, Step::End)),
            "words of {}",
            vm.layout.word
        );
    }
}

#[test]
fn a_quick_frame_below_the_stack_pointer_is_no_more() {
    let mut vm = Vm::wide();
    vm.fragment(vm.base_fragment(), SP - 8, SP + 0x100, 0);
    vm.word(SP - 8, 0x5000);
    vm.frame(SP + 0x100, 0, 0x5010, 0x9010);
    let expected = vec![frame(SP + 0x100, 0x5010, 0x9010, OUTERMOST)];
    assert_eq!(vm.walk(None), Some((expected.clone(), Step::End)));
    // Nor does it contradict the register that leads to the frame.
    assert_eq!(
        vm.walk(Some((SP + 0x100, 0x9010))),
        Some((expected, Step::End))
    );
}

#[test]
fn quick_frames_alone_lead_to_the_next_fragment() {
    let mut vm = Vm::wide();
    vm.fragment(vm.base_fragment(), SP + 0x40, 0, SP + 0x100);
    vm.word(SP + 0x40, 0x5000);
    vm.fragment(SP + 0x100, SP + 0x200, 0, 0);
    vm.word(SP + 0x200, 0x5010);
    let expected = vec![
        frame(SP + 0x40, 0x5000, 0, QUICK),
        frame(SP + 0x200, 0x5010, 0, QUICK),
    ];
    assert_eq!(vm.walk(None), Some((expected, Step::End)));
}

#[test]
fn a_registers_pc_is_the_first_frames_only() {
    let mut vm = Vm::wide();
    vm.fragment(vm.base_fragment(), 0, SP + 0x100, 0);
    vm.frame(SP + 0x100, SP + 0x200, 0x5010, 0x9010);
    vm.frame(SP + 0x200, 0, 0x5020, 0x9020);
    let (frames, end) = vm.walk(Some((SP + 0x100, 0x9016))).unwrap();
    assert_eq!(
        frames.iter().map(|frame| frame.pc).collect::<Vec<_>>(),
        [0x9016, 0x9020]
    );
    assert_eq!(end, Step::End);
}

#[test]
fn a_frame_that_is_not_the_registers_one_is_torn() {
    let mut vm = Vm::wide();
    vm.fragment(vm.base_fragment(), 0, SP + 0x100, 0);
    vm.frame(SP + 0x100, 0, 0x5010, 0x9010);
    assert_eq!(vm.walk(Some((SP + 0x180, 0x9016))), None);
    // A live quick frame means that the loop is not running.
    vm.fragment(vm.base_fragment(), SP + 0x40, SP + 0x100, 0);
    assert_eq!(vm.walk(Some((SP + 0x100, 0x9016))), None);
    assert!(vm.walk(None).is_some());
}

#[test]
fn a_pc_that_was_not_exported_comes_from_the_index() {
    for mut vm in [Vm::wide(), Vm::narrow()] {
        let at = SP + 0x100;
        vm.fragment(vm.base_fragment(), 0, at, 0);
        vm.frame(at, 0, 0x5010, 0);
        vm.memory.put(
            at + u64::from(vm.layout.rules[0].frame_index),
            &7u32.to_le_bytes(),
        );
        // Pushed and not entered: its first instruction is not yet stored.
        let relative = vec![frame(at, 0x5010, 14, OUTERMOST | RELATIVE)];
        assert_eq!(vm.walk(None), Some((relative, Step::End)));
        vm.word(at + u64::from(vm.layout.rules[0].frame_insns), 0x9000);
        assert_eq!(
            vm.walk(None),
            Some((vec![frame(at, 0x5010, 0x900e, OUTERMOST)], Step::End))
        );
        // An index of half the address space must not wrap around to an absolute address.
        vm.memory.put(
            at + u64::from(vm.layout.rules[0].frame_index),
            &u32::MAX.to_le_bytes(),
        );
        assert_eq!(
            vm.walk(None).unwrap().0[0].pc,
            0x9000 + 2 * u64::from(u32::MAX)
        );
    }
}

#[test]
fn a_link_that_does_not_ascend_is_torn() {
    for link in [SP + 0x100, SP + 0xf8, 8] {
        let mut vm = Vm::wide();
        vm.fragment(vm.base_fragment(), 0, SP + 0x100, 0);
        vm.frame(SP + 0x100, link, 0x5010, 0x9010);
        assert_eq!(vm.walk(None), Some((vec![], Step::Torn)), "{link:#x}");
    }
}

#[test]
fn what_cannot_be_read_is_torn_behind_what_could() {
    let mut vm = Vm::wide();
    let absent = 0x7f10_0000;
    vm.fragment(vm.base_fragment(), 0, SP + 0x100, absent);
    vm.frame(SP + 0x100, SP + 0x200, 0x5010, 0x9010);
    vm.frame(SP + 0x200, 0, 0x5020, 0x9020);
    let (frames, end) = vm.walk(None).unwrap();
    assert_eq!((frames.len(), end), (2, Step::Torn), "the next fragment");
    vm.frame(SP + 0x200, absent, 0x5020, 0x9020);
    let (frames, end) = vm.walk(None).unwrap();
    assert_eq!((frames.len(), end), (2, Step::Torn), "the next frame");
    vm.fragment(vm.base_fragment(), absent, 0, 0);
    assert_eq!(vm.walk(None), Some((vec![], Step::Torn)), "a quick frame");
    // The last frame of the last page: its window extends beyond the page, the required words do not.
    vm.memory.0.remove(&(BASE / PAGE));
    assert_eq!(vm.walk(None), None, "the thread");
}

#[test]
fn another_threads_base_is_no_base() {
    for layout in [Vm::wide().layout, shadow_layout()] {
        let mut vm = Vm::with(layout);
        let tid_at = if layout.has_rule(RULE_SHADOW) {
            BASE
        } else {
            BASE + u64::from(layout.thread_tid)
        };
        vm.memory.put(tid_at, &(TID + 1).to_le_bytes());
        assert_eq!(vm.walk(None), None);
        vm.memory.put(tid_at, &TID.to_le_bytes());
        assert_eq!(vm.walk(None), Some((vec![], Step::End)));
    }
}

fn shadow_layout() -> Layout {
    let mut layout = Vm::wide().layout;
    layout.rules[0].kind = RULE_SHADOW;
    layout
}

fn shadow(capacity: u32, depth: u64, records: &[(u64, u64)]) -> Vm {
    let mut vm = Vm::with(shadow_layout());
    let mut bytes = [TID.to_le_bytes(), capacity.to_le_bytes()].concat();
    bytes.extend(depth.to_le_bytes());
    for (method, sp) in records {
        bytes.extend([method.to_le_bytes(), sp.to_le_bytes()].concat());
    }
    vm.memory.put(BASE, &bytes);
    vm
}

#[test]
fn shadow_records_come_innermost_first() {
    let records = [
        (0x9000, SP + 0x300),
        (0x9100, SP + 0x200),
        (0x9200, SP + 0x100),
    ];
    let expected: Vec<_> = records
        .iter()
        .rev()
        .map(|(method, sp)| frame(*sp, 0, *method, 0))
        .collect();
    assert_eq!(
        shadow(8, 3, &records).walk(None),
        Some((expected.clone(), Step::End))
    );
    // Records above the depth belong to calls that have returned.
    assert_eq!(
        shadow(8, 2, &records).walk(None),
        Some((expected[1..].to_vec(), Step::End))
    );
    assert_eq!(shadow(8, 0, &records).walk(None), Some((vec![], Step::End)));
}

#[test]
fn a_shadow_stack_that_holds_less_than_its_depth_is_torn() {
    assert_eq!(shadow(2, 3, &[(1, 1), (2, 2)]).walk(None), None);
    assert_eq!(shadow(u32::MAX, u64::MAX, &[]).walk(None), None);
    // Capacity and depth are consistent but wrong: no records are readable.
    assert_eq!(
        shadow(u32::MAX, u64::from(u32::MAX), &[]).walk(None),
        Some((vec![], Step::Torn))
    );
}

/// Words that often point into the memory that contains them.
fn words() -> impl Strategy<Value = Vec<u64>> {
    let word = prop_oneof![
        2 => Just(0),
        1 => Just(u64::from(TID)),
        1 => Just(u64::from(TID) << 32),
        8 => (0u64..0x200).prop_map(|slot| BASE + 8 * slot),
        1 => any::<u64>(),
    ];
    prop::collection::vec(word, 0x240)
}

proptest! {
    /// In no memory does a step read more than three windows, or a chain turn back.
    #[test]
    fn steps_are_bounded_and_chains_ascend_in_any_memory(
        words in words(),
        shadow: bool,
        narrow: bool,
        sp in prop_oneof![Just(0), Just(BASE), any::<u64>()],
        registers in prop::option::of((words_into(), any::<u64>())),
    ) {
        let layout = if narrow { Vm::narrow().layout } else { Vm::wide().layout };
        let mut layout = layout;
        layout.rules[0].kind = if shadow { RULE_SHADOW } else { RULE_LIST };
        let mut memory = Memory::default();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        memory.put(BASE, &bytes);
        let tid_at = if shadow { BASE } else { BASE + u64::from(layout.thread_tid) };
        memory.put(tid_at, &TID.to_le_bytes());
        let reads = std::cell::Cell::new(0);
        let read = |address, to: &mut [u8]| {
            assert!(to.len() <= 64, "a read of {} bytes", to.len());
            reads.set(reads.get() + 1);
            memory.read(address, to)
        };
        if let Some(mut walk) = Walk::from_base(&layout, BASE, TID, sp, registers, read) {
            prop_assert!(reads.take() <= 2);
            let mut below = None;
            for _ in 0..crate::MAX_FRAMES {
                let step = walk.step();
                prop_assert!(reads.take() <= 3);
                let Step::Frame(frame) = step else { break };
                if !shadow && !frame.is_quick() {
                    prop_assert!(below.is_none_or(|below| below < frame.addr));
                    below = (!frame.is_outermost()).then_some(frame.addr);
                }
            }
        }
        // A chain without fragments ascends, so it ends by itself.
        if !shadow {
            let mut walk = Walk::from_frame(&layout, BASE, 0, read);
            let steps = std::iter::from_fn(|| matches!(walk.step(), Step::Frame(_)).then_some(())).count();
            prop_assert!(steps <= bytes.len() / 8 + 1, "{steps} frames in {} bytes", bytes.len());
        }
    }
}

fn words_into() -> impl Strategy<Value = u64> {
    (0u64..0x200).prop_map(|slot| BASE + 8 * slot)
}
