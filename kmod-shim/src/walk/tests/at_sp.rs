//! A walk finds frames that have their method at sp and no links, alone and mixed with linked ones.

use super::*;
use crate::target::LeaveFrame;
use crate::walk::LeafState;
use varid_tunnel::abi::{NO_FIELD, NO_WORD, RULE_AT_SP};

/// Where the pointers to special methods are, and the word that leads to them.
const SPECIALS: u64 = 0x20_0000;
const SPECIALS_WORD: u64 = 0x22_0000;
/// A native method, which has the native flag.
const NATIVE: u64 = 0x21_0000;
/// The second special method.
const SPECIAL: u64 = 0x6010;
/// A return address of the interpreter, and one of native code.
const RETURN: u64 = 0x8a_c000;
const OTHER_RETURN: u64 = 0x77_0000;
/// Instructions of the interpreter's body and of its prologue.
const IN_CODE: u64 = 0x8a_b570;

/// ART 14 on this machine with nterp alone, as in FACTS of that build.
fn nterp(machine: u16) -> Layout {
    let rule = Rule {
        kind: RULE_AT_SP,
        special_count: 6,
        cfa_word: -8,
        special_sizes: [96, 96, 208, 272, 272, 272],
        native_flag: 0x100,
        method_flags: 4,
        special_methods: SPECIALS_WORD,
        code_start: 0x8a_b560,
        code_end: 0x8b_aa12,
        ..Rule::default()
    };
    let (word, rule) = match machine {
        62 => (
            8,
            Rule {
                cfa_bias: 88,
                saved_pc: 40,
                saved_frame: 16,
                saved_return: 8,
                native_size: 208,
                ..rule
            },
        ),
        183 => (
            8,
            Rule {
                cfa_bias: 160,
                saved_pc: 72,
                saved_frame: 48,
                saved_return: 8,
                native_size: 224,
                ..rule
            },
        ),
        _ => (
            4,
            Rule {
                cfa_word: -4,
                cfa_bias: 100,
                saved_pc: 8,
                saved_frame: 28,
                saved_return: 4,
                native_size: 112,
                ..rule
            },
        ),
    };
    Layout {
        machine,
        word,
        reference: 4,
        flags: LAYOUT_ON_NATIVE_STACK,
        thread_tid: 12,
        thread_fragment: 0xb0,
        fragment_quick: 0,
        fragment_link: u16::from(word),
        fragment_top: NO_FIELD,
        quick_rule: 0,
        ..Layout::with_rules(&[rule])
    }
}

const MACHINES: [u16; 3] = [62, 183, 40];

/// A VM whose CFA is at a fixed distance from a register, and without native methods.
fn direct() -> Layout {
    let mut layout = nterp(62);
    layout.rules[0] = Rule {
        cfa_word: NO_WORD,
        cfa_bias: 32,
        special_count: 0,
        native_flag: 0,
        ..layout.rules[0]
    };
    layout
}

/// A frame under construction.
#[derive(Clone, Copy)]
struct Frame {
    size: u64,
    method: u64,
    pc: u64,
}

const fn frame_of(size: u64, method: u64, pc: u64) -> Frame {
    Frame { size, method, pc }
}

/// Writes frames, innermost first, from `at` upwards. The outermost one returns to native code. Returns their addresses.
fn put_frames(vm: &mut Vm, at: u64, frames: &[Frame]) -> Vec<u64> {
    let rule = vm.layout.rules[usize::from(vm.layout.quick_rule)];
    let mut places = vec![at];
    for frame in frames {
        places.push(places.last().unwrap() + frame.size);
    }
    vm.memory
        .put(at, &vec![0; (places[frames.len()] - at) as usize + 0x100]);
    for (index, frame) in frames.iter().enumerate() {
        let (sp, cfa) = (places[index], places[index + 1]);
        vm.word(sp, frame.method);
        let caller = frames.get(index + 1);
        let returns = if caller.is_some() {
            RETURN
        } else {
            OTHER_RETURN
        };
        vm.word(cfa - u64::from(rule.saved_return), returns);
        if let Some(caller) = caller {
            let register = register(&vm.layout, cfa);
            vm.word(cfa - u64::from(rule.saved_frame), register);
            vm.word(cfa - u64::from(rule.saved_pc), caller.pc);
        }
        if rule.cfa_word != NO_WORD {
            let at = register(&vm.layout, sp).wrapping_add_signed(rule.cfa_word.into());
            vm.word(at, cfa.wrapping_sub(rule.cfa_bias as u64));
        } else {
            assert_eq!(register(&vm.layout, sp) + rule.cfa_bias as u64, cfa);
        }
    }
    places.pop();
    places
}

/// The value of the frame's register while the frame at `sp` is executed.
fn register(layout: &Layout, sp: u64) -> u64 {
    match layout.rules[usize::from(layout.quick_rule)].cfa_word {
        // Frames of 64 bytes.
        NO_WORD => sp + 32,
        _ => sp + 24,
    }
}

fn in_body(layout: &Layout, sp: u64, pc: u64) -> Leaf {
    Leaf {
        ip: IN_CODE + 0x100,
        sp,
        registers: Some(LeafRegisters {
            rule: layout.quick_rule.into(),
            frame: register(layout, sp),
            pc,
        }),
        state: None,
        quick: (0, 0),
        link: 0,
    }
}

fn in_native(sp: u64) -> Leaf {
    Leaf {
        ip: 0x7000,
        sp,
        registers: None,
        state: None,
        quick: (0, 0),
        link: 0,
    }
}

fn walk_from(vm: &Vm, leaf: &Leaf) -> Option<(Vec<ManagedFrame>, Step)> {
    let read = |address, to: &mut [u8]| vm.memory.read(address, to);
    Walk::from_leaf(&vm.layout, BASE, TID, leaf, read).map(all)
}

fn vm_with(layout: Layout) -> Vm {
    let mut vm = Vm::with(layout);
    for (index, method) in [0x6000, SPECIAL, 0x6020, 0x6030, 0x6040, 0x6050]
        .iter()
        .enumerate()
    {
        vm.word(SPECIALS + index as u64 * u64::from(layout.word), *method);
    }
    vm.word(SPECIALS_WORD, SPECIALS);
    vm.memory.put(NATIVE, &[0; 16]);
    vm.memory.put(NATIVE + 4, &0x109u32.to_le_bytes());
    vm
}

const THREE: [Frame; 3] = [
    frame_of(0x100, 0x5000, 0x9000),
    frame_of(0x140, 0x5010, 0x9110),
    frame_of(0x180, 0x5020, 0x9220),
];

#[test]
fn the_leafs_registers_lead_from_frame_to_frame_on_every_machine() {
    for machine in MACHINES {
        let mut vm = vm_with(nterp(machine));
        let places = put_frames(&mut vm, SP, &THREE);
        // An outdated note is ignored, wherever it points to.
        vm.word(vm.base_fragment(), places[1]);
        let found = walk_from(&vm, &in_body(&vm.layout, SP, 0x9006));
        let expected = vec![
            frame(places[0], 0, 0x9006, 0),
            frame(places[1], 0, 0x9110, 0),
            frame(places[2], 0, 0x9220, OUTERMOST),
        ];
        assert_eq!(found, Some((expected, Step::End)), "{machine}");
    }
}

#[test]
fn a_cfa_at_a_fixed_distance_from_the_register_needs_no_word() {
    let mut vm = vm_with(direct());
    let frames = [
        frame_of(64, 0x5000, 0x9000),
        frame_of(64, 0x5010, 0x9110),
        frame_of(64, 0x5020, 0x9220),
    ];
    let places = put_frames(&mut vm, SP, &frames);
    let found = walk_from(&vm, &in_body(&vm.layout, SP, 0x9006));
    let expected = vec![
        frame(places[0], 0, 0x9006, 0),
        frame(places[1], 0, 0x9110, 0),
        frame(places[2], 0, 0x9220, OUTERMOST),
    ];
    assert_eq!(found, Some((expected, Step::End)));
}

#[test]
fn a_note_leads_to_a_native_method_and_its_callers() {
    for machine in MACHINES {
        let mut vm = vm_with(nterp(machine));
        let size = vm.layout.rules[0].native_size.into();
        let frames = [frame_of(size, NATIVE, 0), THREE[1], THREE[2]];
        let places = put_frames(&mut vm, SP + 0x40, &frames);
        vm.word(vm.base_fragment(), places[0] | 1);
        let expected = vec![
            frame(places[0], NATIVE, 0, QUICK),
            frame(places[1], 0, 0x9110, 0),
            frame(places[2], 0, 0x9220, OUTERMOST),
        ];
        assert_eq!(
            walk_from(&vm, &in_native(SP)),
            Some((expected, Step::End)),
            "{machine}"
        );
        // Below sp the note is outdated.
        assert_eq!(
            walk_from(&vm, &in_native(SP + 0x48)),
            Some((vec![], Step::End)),
            "{machine}"
        );
    }
}

#[test]
fn a_special_methods_frame_is_left_out() {
    for machine in MACHINES {
        let mut vm = vm_with(nterp(machine));
        let frames = [frame_of(96, SPECIAL, 0), THREE[1], THREE[2]];
        let places = put_frames(&mut vm, SP, &frames);
        vm.word(vm.base_fragment(), places[0]);
        let expected = vec![
            frame(places[1], 0, 0x9110, 0),
            frame(places[2], 0, 0x9220, OUTERMOST),
        ];
        assert_eq!(
            walk_from(&vm, &in_native(SP)),
            Some((expected, Step::End)),
            "{machine}"
        );
    }
}

#[test]
fn a_method_that_is_neither_special_nor_native_is_torn() {
    let mut vm = vm_with(nterp(62));
    vm.memory.put(0x5000, &[0; 16]);
    let places = put_frames(&mut vm, SP, &THREE);
    vm.word(vm.base_fragment(), places[0]);
    assert_eq!(walk_from(&vm, &in_native(SP)), Some((vec![], Step::Torn)));
}

#[test]
fn a_frame_that_is_being_made_is_torn_and_not_skipped() {
    let mut vm = vm_with(nterp(62));
    let places = put_frames(&mut vm, SP, &THREE);
    vm.word(vm.base_fragment(), places[0]);
    let leaf = |ip| Leaf {
        ip,
        sp: SP,
        registers: None,
        state: None,
        quick: (0, 0),
        link: 0,
    };
    assert_eq!(walk_from(&vm, &leaf(IN_CODE)), None);
    let rule = vm.layout.rules[0];
    assert_eq!(walk_from(&vm, &leaf(rule.code_start)), None);
    assert_eq!(walk_from(&vm, &leaf(rule.code_end - 1)), None);
    assert!(walk_from(&vm, &leaf(rule.code_start - 1)).is_some());
    assert!(walk_from(&vm, &leaf(rule.code_end)).is_some());
}

#[test]
fn a_null_method_ends_a_stretch() {
    let mut vm = vm_with(nterp(62));
    let places = put_frames(&mut vm, SP, &THREE);
    vm.word(places[2], 0);
    let expected = vec![
        frame(places[0], 0, 0x9006, 0),
        frame(places[1], 0, 0x9110, OUTERMOST),
    ];
    let leaf = in_body(&vm.layout, SP, 0x9006);
    assert_eq!(walk_from(&vm, &leaf), Some((expected, Step::End)));
}

#[test]
fn stretches_of_both_rules_alternate_through_their_links() {
    // As ART 14 on x86-64 with its switch interpreter and nterp.
    let list = Vm::wide().layout.rules[0];
    let nterp = nterp(62);
    let layout = Layout {
        rule_count: 2,
        quick_rule: 1,
        fragment_top: 16,
        rules: Layout::with_rules(&[list, nterp.rules[0]]).rules,
        ..nterp
    };
    let mut vm = vm_with(layout);
    // nterp; outside of a fragment: the switch interpreter; outside of another: a native method that nterp called.
    let inner = put_frames(&mut vm, SP, &THREE[..2]);
    let (second, third) = (SP + 0x800, SP + 0x1000);
    vm.fragment(vm.base_fragment(), 0, 0, second);
    vm.fragment(second, 0, second + 0x100, third);
    vm.frame(second + 0x100, second + 0x200, 0x5110, 0xa010);
    vm.frame(second + 0x200, 0, 0x5120, 0xa020);
    let outer = [frame_of(208, NATIVE, 0), THREE[2]];
    let outer = put_frames(&mut vm, third + 0x100, &outer);
    vm.fragment(third, outer[0], 0, 0);
    let stretches = |leaf| {
        vec![
            leaf,
            frame(inner[1], 0, 0x9110, OUTERMOST),
            frame(second + 0x100, 0x5110, 0xa010, 0),
            frame(second + 0x200, 0x5120, 0xa020, OUTERMOST),
            frame(outer[0], NATIVE, 0, QUICK),
            frame(outer[1], 0, 0x9220, OUTERMOST),
        ]
    };
    let leaf = in_body(&vm.layout, SP, 0x9006);
    let expected = stretches(frame(inner[0], 0, 0x9006, 0));
    assert_eq!(walk_from(&vm, &leaf), Some((expected, Step::End)));

    // The innermost frame is the switch interpreter's, as its registers show.
    vm.fragment(vm.base_fragment(), 0, SP + 0x40, second);
    vm.frame(SP + 0x40, 0, 0x5200, 0xb000);
    let leaf = Leaf {
        ip: 0x7b_3000,
        sp: SP,
        registers: Some(LeafRegisters {
            rule: 0,
            frame: SP + 0x40,
            pc: 0xb006,
        }),
        state: None,
        quick: (0, 0),
        link: 0,
    };
    let (frames, end) = walk_from(&vm, &leaf).unwrap();
    assert_eq!(frames[0], frame(SP + 0x40, 0x5200, 0xb006, OUTERMOST));
    assert_eq!((frames.len(), end), (5, Step::End));
}

#[test]
fn frames_that_do_not_ascend_or_cannot_be_read_are_torn() {
    /// A change to the memory of these frames, and the number of frames that are then found.
    type Spoil = (fn(&mut Vm, &[u64]), usize);
    let spoil: [Spoil; 6] = [
        // The word that leads to the CFA: pointing to itself, downwards, and further than any frame is large.
        (
            |vm, at| vm.word(register(&vm.layout, at[1]) - 8, at[1] - 88),
            1,
        ),
        (|vm, at| vm.word(register(&vm.layout, at[1]) - 8, 8), 1),
        (
            |vm, at| vm.word(register(&vm.layout, at[1]) - 8, at[1] + (2 << 20)),
            1,
        ),
        // The caller's register: null, or pointing nowhere.
        (|vm, at| vm.word(at[1] - 16, 0), 0),
        (|vm, at| vm.word(at[1] - 16, 0x4000_0000), 1),
        // A caller without a pc.
        (|vm, at| vm.word(at[1] - 40, 0), 0),
    ];
    for (which, (spoil, frames)) in spoil.iter().enumerate() {
        let mut vm = vm_with(nterp(62));
        let places = put_frames(&mut vm, SP, &THREE);
        spoil(&mut vm, &places);
        let (found, end) = walk_from(&vm, &in_body(&vm.layout, SP, 0x9006)).unwrap();
        assert_eq!((found.len(), end), (*frames, Step::Torn), "{which}");
    }
}

/// Makes the innermost of three frames as an instruction of the interpreter's prologue finds it: it has only what is saved already.
/// `saved`: whether the caller's pc, its frame's register and the return address are saved.
fn in_prologue(vm: &mut Vm, at: u64, saved: [bool; 3]) -> Leaf {
    const ELSEWHERE: u64 = 0xdead_0000;
    let rule = vm.layout.rules[usize::from(vm.layout.quick_rule)];
    let places = put_frames(vm, at, &THREE);
    let cfa = places[1];
    let [saved_pc, saved_frame, saved_return] = saved;
    let places_of = [
        (saved_pc, rule.saved_pc),
        (saved_frame, rule.saved_frame),
        (saved_return, rule.saved_return),
    ];
    for (is_saved, below) in places_of {
        if !is_saved {
            vm.word(cfa - u64::from(below), ELSEWHERE);
        }
    }
    let held = |is_saved: bool, value: u64| if is_saved { ELSEWHERE } else { value };
    let leave = LeaveFrame {
        register: 0,
        word: None,
        bias: 0x20,
        has_pc: false,
        saved_pc,
        saved_frame,
        saved_return,
    };
    Leaf {
        ip: IN_CODE,
        sp: cfa - 0x20,
        registers: None,
        state: Some(LeafState {
            leave,
            register: cfa - 0x20,
            frame: held(saved_frame, register(&vm.layout, cfa)),
            pc: held(saved_pc, THREE[1].pc),
        }),
        quick: (0, 0),
        link: held(saved_return, RETURN),
    }
}

#[test]
fn while_a_frame_is_made_or_left_its_callers_are_found_by_what_is_saved_and_what_is_not() {
    for machine in MACHINES {
        for saved in 0..8 {
            let saved = [saved & 1 != 0, saved & 2 != 0, saved & 4 != 0];
            let mut vm = vm_with(nterp(machine));
            let leaf = in_prologue(&mut vm, SP, saved);
            // An outdated note.
            vm.word(vm.base_fragment(), SP + 0x10);
            let second = SP + THREE[0].size;
            let expected = vec![
                frame(second, 0, 0x9110, 0),
                frame(second + THREE[1].size, 0, 0x9220, OUTERMOST),
            ];
            let found = walk_from(&vm, &leaf);
            assert_eq!(found, Some((expected, Step::End)), "{machine} {saved:?}");
        }
    }
}

/// The first instructions of arm64's prologue, and its return: nothing of the frame is on the stack, which may not be mapped there yet.
#[test]
fn a_frame_that_has_no_bytes_yet_or_no_longer_has_its_callers() {
    let mut vm = vm_with(nterp(183));
    let places = put_frames(&mut vm, SP, &THREE[1..]);
    let leave = LeaveFrame {
        register: 31,
        word: None,
        bias: 0,
        has_pc: false,
        saved_pc: false,
        saved_frame: false,
        saved_return: false,
    };
    let mut leaf = Leaf {
        ip: IN_CODE,
        sp: SP,
        registers: None,
        state: Some(LeafState {
            leave,
            register: SP,
            frame: register(&vm.layout, SP),
            pc: 0x9110,
        }),
        quick: (0, 0),
        link: RETURN,
    };
    let expected = vec![
        frame(places[0], 0, 0x9110, 0),
        frame(places[1], 0, 0x9220, OUTERMOST),
    ];
    assert_eq!(walk_from(&vm, &leaf), Some((expected, Step::End)));
    // A saved value has a place in the frame.
    vm.memory.put(SP - 0x100, &[0; 0x100]);
    leaf.state.as_mut().unwrap().leave.saved_return = true;
    assert_eq!(walk_from(&vm, &leaf), None);
}

#[test]
fn a_frame_that_native_code_makes_is_followed_by_those_of_the_next_fragment() {
    let mut vm = vm_with(nterp(62));
    let next = SP + 0x1000;
    let outer = put_frames(&mut vm, next + 0x100, &[frame_of(208, NATIVE, 0), THREE[2]]);
    vm.fragment(vm.base_fragment(), 0, 0, next);
    vm.fragment(next, outer[0], 0, 0);
    let mut leaf = in_prologue(&mut vm, SP, [false, false, true]);
    vm.word(SP + THREE[0].size - 8, OTHER_RETURN);
    let expected = vec![
        frame(outer[0], NATIVE, 0, QUICK),
        frame(outer[1], 0, 0x9220, OUTERMOST),
    ];
    assert_eq!(walk_from(&vm, &leaf), Some((expected, Step::End)));
    // If the CFA's word cannot be read, nothing is known.
    leaf.state.as_mut().unwrap().leave.word = Some(-8);
    leaf.state.as_mut().unwrap().register = 0x4000_0000;
    assert_eq!(walk_from(&vm, &leaf), None);
}

#[test]
fn a_complete_frame_may_be_led_to_by_another_register_than_the_bodys() {
    let mut vm = vm_with(nterp(62));
    let places = put_frames(&mut vm, SP, &THREE);
    let leave = LeaveFrame {
        register: 9,
        word: Some(-8),
        bias: 88,
        has_pc: true,
        saved_pc: true,
        saved_frame: true,
        saved_return: true,
    };
    let leaf = Leaf {
        ip: IN_CODE,
        sp: SP,
        registers: None,
        state: Some(LeafState {
            leave,
            register: register(&vm.layout, SP),
            // Still the caller's value.
            frame: register(&vm.layout, places[1]),
            pc: 0x9006,
        }),
        quick: (0, 0),
        link: 0,
    };
    let expected = vec![
        frame(places[0], 0, 0x9006, 0),
        frame(places[1], 0, 0x9110, 0),
        frame(places[2], 0, 0x9220, OUTERMOST),
    ];
    assert_eq!(walk_from(&vm, &leaf), Some((expected, Step::End)));
}

#[test]
fn a_special_method_that_native_code_called_ends_its_stretch() {
    // The invoke stub entered the bridge to the interpreter: no method of this stretch has made a call.
    let mut vm = vm_with(nterp(62));
    let next = SP + 0x1000;
    let special = put_frames(&mut vm, SP, &[frame_of(96, SPECIAL, 0)]);
    let outer = put_frames(&mut vm, next + 0x100, &[frame_of(96, SPECIAL, 0), THREE[2]]);
    vm.fragment(vm.base_fragment(), special[0], 0, next);
    vm.fragment(next, outer[0], 0, 0);
    let expected = vec![frame(outer[1], 0, 0x9220, OUTERMOST)];
    assert_eq!(walk_from(&vm, &in_native(SP)), Some((expected, Step::End)));
}

proptest! {
    /// In no memory does a step read more than its limit, or a stretch turn back.
    #[test]
    fn stretches_ascend_in_any_memory(
        words in words(),
        machine in 0usize..3,
        is_mixed: bool,
        rule in 0u32..3,
        at in words_into(),
        register in words_into(),
        ip in prop_oneof![Just(IN_CODE), Just(0x7000)],
        state in prop::option::of((any::<[bool; 4]>(), any::<bool>(), any::<i16>())),
    ) {
        let mut layout = nterp(MACHINES[machine]);
        layout.rules[0].special_methods = BASE + 0x100;
        layout.rules[0].code_end = u64::MAX;
        layout.rules[0].code_start = 0x7800; // IN_CODE is inside, 0x7000 is not
        if is_mixed {
            let list = if layout.word == 8 { Vm::wide() } else { Vm::narrow() }.layout.rules[0];
            layout.rules = Layout::with_rules(&[list, layout.rules[0]]).rules;
            (layout.rule_count, layout.quick_rule, layout.fragment_top) = (2, 1, 16);
        }
        let mut memory = Memory::default();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        memory.put(BASE, &bytes);
        memory.put(BASE + u64::from(layout.thread_tid), &TID.to_le_bytes());
        let reads = std::cell::Cell::new(0);
        let read = |address, to: &mut [u8]| {
            assert!(to.len() <= 128, "a read of {} bytes", to.len());
            reads.set(reads.get() + 1);
            memory.read(address, to)
        };
        let registers = (rule < 2).then_some(LeafRegisters { rule, frame: register, pc: 1 });
        let state = state.map(|([has_pc, saved_pc, saved_frame, saved_return], is_word, bias)| LeafState {
            leave: LeaveFrame {
                register: 0,
                word: is_word.then_some(-8),
                bias,
                has_pc,
                saved_pc,
                saved_frame,
                saved_return,
            },
            register,
            frame: register,
            pc: 0x9000,
        });
        let leaf = Leaf { ip, sp: at, registers, state, quick: (register, 0x9000), link: IN_CODE };
        if let Some(mut walk) = Walk::from_leaf(&layout, BASE, TID, &leaf, read) {
            // Reads: the tid and the fragment; for a state also the word that leads to the CFA, and the frame's saves.
            prop_assert!(reads.take() <= 4);
            let mut below = None;
            for _ in 0..crate::MAX_FRAMES {
                let step = walk.step();
                // Reads: a fragment; for a special method's frame: the frame, its methods and its saves; for another frame: its word and
                // its saves. After a special method's frame the same again.
                prop_assert!(reads.take() <= 7 * (crate::MAX_FRAMES + 1));
                let Step::Frame(frame) = step else { break };
                prop_assert!(below.is_none_or(|below| below < frame.addr));
                below = (!frame.is_outermost()).then_some(frame.addr);
            }
        }
    }
}
