//! Tests with code as HotSpot generates it.

use super::*;
use crate::hotspot::unwinding::FrameState::{Called, Complete, Pushed, Unsaved};
use crate::hotspot::unwinding::{
    Calls, CodeAt, CodeFrames, FrameState, PartialFrame, PartialState, Prologue, rule,
};
use proptest::prelude::*;
use varid_model::{Address, FrameAddress, Machine, Regs};
use varid_unwind::{CodeRule, NativeFrame, NativeStack, Reached, StackSlice, UnwindInfo};

const NOP: u32 = 0xd503_201f;
const RET: u32 = 0xd65f_03c0;
const BR_X8: u32 = 0xd61f_0100;
const BLR_X8: u32 = 0xd63f_0100;
const ENTER: [u32; 2] = [
    0xa9bf_7bfd, // stp x29, x30, [sp, #-16]!
    0x9100_03fd, // mov x29, sp
];
const LEAVE: [u32; 2] = [
    0x9100_03bf, // mov sp, x29
    0xa8c1_7bfd, // ldp x29, x30, [sp], #16
];
/// Where code starts.
const CODE: Address = Address::new(0x4000_0000);

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn at(instruction: usize) -> Address {
    CODE.wrapping_add(instruction as u64 * 4)
}

fn code(bytes: &[u8]) -> CodeAt<'_> {
    CodeAt {
        machine: Machine::Aarch64,
        start: CODE,
        bytes,
    }
}

/// Each instruction of a method, and the state before it.
fn check(entry: usize, complete: usize, instructions: &[(u32, FrameState)]) {
    let words: Vec<u32> = instructions.iter().map(|(word, _)| *word).collect();
    let code = bytes(&words);
    let prologue = Prologue {
        code: &code,
        entry: entry * 4,
        complete: complete * 4,
    };
    for (number, (word, expected)) in instructions.iter().enumerate() {
        let state = prologue.state(Machine::Aarch64, number * 4);
        assert_eq!(state, *expected, "{number}: {word:x}");
    }
}

#[test]
fn frames_are_made_and_left_step_by_step() {
    check(
        2,
        6,
        &[
            (0xeb09_011f, Called),  // cmp x8, x9
            (0x5400_0041, Called),  // b.ne
            (NOP, Called),          // what is patched when the method is no more entered
            (0xd140_53e9, Called),  // sub x9, sp, #20, lsl #12
            (0xd100_83ff, Called),  // sub sp, sp, #32
            (0xa901_7bfd, Unsaved), // stp x29, x30, [sp, #16]
            (NOP, Complete),
            (BLR_X8, Complete),
            (0xa941_7bfd, Complete), // ldp x29, x30, [sp, #16]
            (0x9100_83ff, Unsaved),  // add sp, sp, #32
            (0xf942_3788, Called),   // ldr x8, [x28, #1128]
            (0xeb28_63ff, Called),   // cmp sp, x8
            (0x5400_0208, Called),   // b.hi
            (RET, Called),
            (NOP, Complete),
        ],
    );
}

#[test]
fn a_large_frame_is_made_behind_the_saved_registers() {
    check(
        0,
        4,
        &[
            (0xa9bf_7bfd, Called), // stp x29, x30, [sp, #-16]!
            (0xd282_4608, Pushed), // mov x8, #4656
            (0xcb28_63ff, Pushed), // sub sp, sp, x8
            (NOP, Complete),
            (NOP, Complete),
            (0xd282_4608, Complete), // mov x8, #4656
            (0x8b28_63ff, Complete), // add sp, sp, x8
            (0xa8c1_7bfd, Pushed),   // ldp x29, x30, [sp], #16
            (RET, Called),
        ],
    );
}

#[test]
fn a_wrapper_of_a_native_method_keeps_a_frame_pointer() {
    check(
        0,
        3,
        &[
            (ENTER[0], Called),
            (ENTER[1], Pushed),
            (0xd100_c3ff, Pushed), // sub sp, sp, #48
            (NOP, Complete),
            (LEAVE[0], Complete),
            (LEAVE[1], Pushed),
            (RET, Called),
        ],
    );
}

#[test]
fn the_vm_does_not_say_of_all_code_where_its_frame_is_complete() {
    let blob = [(ENTER[0], Called), (NOP, Pushed), (NOP, Pushed)];
    check(0, 0, &blob);
}

#[test]
fn what_is_pushed_for_a_call_is_below_the_frame() {
    let of = |words: [u32; 3]| pushed_by_call(&bytes(&words), 8);
    let (push, pop) = (0xa9bf_33e8, 0xa8c1_33e8); // stp x8, x12, [sp, #-16]!; ldp x8, x12, [sp], #16
    assert_eq!(of([push, BLR_X8, pop]), 2);
    assert_eq!(of([0xa9bf_27ff, BLR_X8, 0x9100_43ff]), 2); // add sp, sp, #16
    // The frame is left, or nothing is.
    for behind in [LEAVE[1], 0xa941_7bfd, 0x9110_83ff, NOP] {
        assert_eq!(of([NOP, BLR_X8, behind]), 0);
    }
    assert_eq!(of([push, NOP, pop]), 0);
}

/// The entry of interpreted methods in JDK 17, or with `sender` in x19 of JDK 21.
fn entry(sender: u32) -> Vec<u8> {
    bytes(&[
        0xd100_c3ff,                // 0: sub sp, sp, #48
        0xa9ba_5bf4,                // 1: stp x20, x22, [sp, #-96]!
        0xa903_33e8,                // 2: stp x8, x12, [sp, #48]
        0xa905_7bfd,                // 3: stp x29, x30, [sp, #80]
        0x9101_43fd,                // 4: add x29, sp, #80
        NOP,                        // 5
        0xa904_03ff | sender << 10, // 6: stp xzr, x13, [sp, #64]
        0x927c_ee9f,                // 7: and sp, x20, #-16
        NOP,                        // 8
    ])
}

#[test]
fn the_interpreter_makes_its_frame_step_by_step() {
    use PartialState::{Called, Linked};
    for sender in [13, 19] {
        let code = entry(sender);
        let of = |number: usize| partial_frame(&code, number * 4, true);
        let sender_sp = sender as u16;
        let states = [0, 3, 4, 5, 6].map(of);
        let expected = [Called, Called, Called, Linked, Linked];
        assert_eq!(
            states,
            expected.map(|state| Some(PartialFrame { state, sender_sp }))
        );
        assert_eq!([7, 8].map(of), [None, None]);
        assert_eq!(partial_frame(&code, 0, false), None);
    }
    // An intrinsic method makes no frame, or one for a while.
    let fast = bytes(&[NOP, ENTER[0], ENTER[1], NOP, LEAVE[0], LEAVE[1], NOP, RET]);
    let of = |number: usize| partial_frame(&fast, number * 4, true);
    let found = [0, 2, 3, 5].map(|number| of(number).map(|it| (it.state, it.sender_sp)));
    let sp = Machine::Aarch64.sp();
    assert_eq!(
        found,
        [Called, Called, Linked, Linked].map(|state| Some((state, sp)))
    );
    assert_eq!(of(6).map(|it| it.state), Some(PartialState::Left));
}

#[test]
fn the_interpreter_has_left_a_frame_when_it_has_loaded_the_callers_registers() {
    let code = bytes(&[
        0xf85f_83a9, // ldr x9, [x29, #-8]
        0xaa09_03f4, // mov x20, x9
        LEAVE[0],
        LEAVE[1],
        0x927c_ee9f, // and sp, x20, #-16
        RET,
        NOP,
    ]);
    let of = |number: usize| partial_frame(&code, number * 4, false);
    let left = PartialFrame {
        state: PartialState::Left,
        sender_sp: 20,
    };
    let states = [0, 1, 2, 3, 4, 5, 6].map(of);
    assert_eq!(
        states,
        [None, None, None, None, Some(left), Some(left), None]
    );
}

#[test]
fn a_call_says_what_it_calls() {
    let near = bytes(&[NOP, 0x9400_0040]); // bl
    assert_eq!(called(code(&near), at(2)), Some(at(1 + 0x40)));
    let mut trampoline = vec![0x9400_0002, NOP, 0x5800_0048, BR_X8]; // bl; ldr x8, #8; br x8
    trampoline.extend([0x1234_5678, 0xffff]);
    let trampoline = bytes(&trampoline);
    assert_eq!(
        called(code(&trampoline), at(1)),
        Some(Address::new(0xffff_1234_5678))
    );
    // adrp x8, 3 pages on; add x8, x8, #0x240.
    let page = bytes(&[NOP, 0xf000_0008, 0x9109_0108, BLR_X8]);
    assert_eq!(called(code(&page), at(4)), Some(Address::new(0x4000_3240)));
    let back = bytes(&[NOP, 0xb0ff_ffe8, BLR_X8]); // adrp x8, 3 pages before
    assert_eq!(called(code(&back), at(3)), Some(Address::new(0x3fff_d000)));
    let constant = bytes(&[0xd282_4608, 0xf2aa_cf08, 0xf2cf_e008, BLR_X8]);
    assert_eq!(
        called(code(&constant), at(4)),
        Some(Address::new(0x7f00_5678_1230))
    );
    // Another register, one that is not known, no call, and no code.
    let other = bytes(&[0xd282_4608, 0xd63f_0120, BLR_X8, NOP, BLR_X8]);
    for returns in [
        at(0),
        at(1),
        at(2),
        at(3),
        at(4),
        at(5),
        at(9),
        Address::new(8),
    ] {
        assert_eq!(called(code(&other), returns), None, "{returns:?}");
    }
}

#[test]
fn a_routine_that_calls_nothing_returns_by_the_link_register() {
    let elsewhere = Address::new(0x100);
    let words = bytes(&[
        NOP,
        0x6dbe_27e8, // 1: stp d8, d9, [sp, #-32]!
        0x6cc2_27e8, // 2: ldp d8, d9, [sp], #32
        RET,
        NOP, // 4: reached by a jump from where all is pushed
    ]);
    let of = |number: usize| leaf_frame(code(&words), CODE, at(number), elsewhere);
    let sizes = [0, 1, 2, 3, 4].map(|number| of(number).map(|frame| (frame.size, frame.saved_fp)));
    assert_eq!(sizes, [0, 0, 32, 0, 32].map(|size| Some((size, None))));
    let linked = bytes(&[
        ENTER[0],
        ENTER[1],
        0xa9bf_33e8,
        0xd101_c3bf,
        LEAVE[0],
        LEAVE[1],
        RET,
    ]);
    let of = |number: usize| leaf_frame(code(&linked), CODE, at(number), elsewhere);
    let found =
        [1, 2, 3, 4, 5, 6].map(|number| of(number).map(|frame| (frame.size, frame.saved_fp)));
    // sub sp, x29, #112 is counted from the frame pointer.
    let expected = [(16, 0), (16, 0), (32, 16), (128, 112), (16, 0)];
    assert_eq!(
        found[..5],
        expected.map(|(size, fp)| Some((size, Some(fp))))
    );
    assert_eq!(found[5], Some((0, None)));
}

#[test]
fn a_link_register_with_another_return_address_is_not_believed() {
    // A routine that is called by the next one.
    let words = bytes(&[NOP, RET, ENTER[0], ENTER[1], NOP, 0x97ff_fffb, NOP, NOP]);
    let returns = at(6);
    assert_eq!(called(code(&words), returns), Some(CODE));
    let of = |number: usize| leaf_frame(code(&words), CODE, at(number), returns);
    assert!(of(0).is_some() && of(1).is_some());
    for number in [4, 6, 7] {
        assert_eq!(of(number), None, "{number}");
    }
    // What has called, what sets the stack pointer, and what is outside.
    for unknown in [BLR_X8, 0x9400_0001, 0x927c_ee9f, 0x9100_029f, 0x0cdf_2fe0] {
        let words = bytes(&[unknown, NOP]);
        assert_eq!(leaf_frame(code(&words), CODE, at(1), Address::new(8)), None);
    }
    assert_eq!(
        leaf_frame(code(&words), CODE, at(20), Address::new(8)),
        None
    );
    assert_eq!(leaf_frame(code(&words), at(1), CODE, Address::new(8)), None);
}

#[test]
fn a_stub_has_its_frame_between_its_first_instructions_and_its_last() {
    let words = bytes(&[ENTER[0], ENTER[1], NOP, LEAVE[0], LEAVE[1], RET]);
    let stub = code(&words);
    assert!(stub.is_linked() && !code(&bytes(&[ENTER[0], NOP])).is_linked());
    let before = [0, 1, 2, 3, 4, 5].map(|number| stub.is_before_frame(at(number)));
    assert_eq!(before, [true, false, false, false, false, true]);
    assert_eq!(
        [0, 1, 2].map(|number| stub.is_in_entry(at(number))),
        [false, true, false]
    );
}

#[test]
fn an_adapter_makes_room_for_arguments() {
    let words = bytes(&[
        RET,
        0x9100_03ed, // 1: mov x13, sp
        0xd100_c3ff, // 2: sub sp, sp, #48
        NOP,         // 3
        BR_X8,       // 4
        NOP,         // 5
        0x927c_ee9f, // 6: and sp, x20, #-16
        NOP,         // 7
        BLR_X8,      // 8
        NOP,         // 9
    ]);
    let found = [0, 1, 2, 3, 4, 5, 7, 9].map(|number| pushed_in_adapter(&words, number * 4));
    let expected = [
        Some(0),
        Some(0),
        Some(0),
        Some(48),
        Some(48),
        Some(0),
        Some(0),
        None,
    ];
    assert_eq!(found, expected);
}

/// Code whose leaf is left by the rule of these frames. Nothing is known of other code.
struct Leaf<'c> {
    frames: CodeFrames<'c>,
    stack: StackSlice<'c>,
}

/// Calls that return to Java, of which one calls a routine.
struct JavaCalls;

impl Calls for JavaCalls {
    fn called(&mut self, returns: Address) -> Option<Address> {
        (returns == LINK).then_some(CODE)
    }

    fn returns_to_java(&mut self, _: Address) -> bool {
        true
    }
}

impl UnwindInfo for Leaf<'_> {
    fn rule(&mut self, _: Address) -> CodeRule {
        CodeRule::Unknown
    }

    fn frame_rule(&mut self, frame: &NativeFrame) -> CodeRule {
        match frame.address {
            FrameAddress::Instruction(_) => {
                let rule = rule(self.frames, frame, self.stack, &mut JavaCalls);
                rule.unwrap_or(CodeRule::NoCode)
            }
            FrameAddress::Return(_) => CodeRule::Unknown,
        }
    }
}

/// The frame that a leaf returns to.
#[derive(Debug, PartialEq, Eq)]
struct Caller {
    address: Address,
    sp: u64,
    fp: u64,
}

const STACK: u64 = 0x7000;
/// The frame pointer, which leads to the word with this number of the stack.
const FP: u64 = STACK + 32;
/// The link register.
const LINK: Address = Address::new(0x900);
/// The words of the stack: a pair of the caller's frame pointer and a return address at the stack pointer and at the frame pointer.
const WORDS: [u64; 10] = [0xa0a, 0x901, 0, 0, 0xb0b, 0x905, 0, 0, 0, 0];

/// Leaves a leaf at an instruction. `sender`: what x13 has, and the frame's word below the frame pointer.
fn left(frames: CodeFrames<'_>, instruction: usize, sender: u64) -> Option<Caller> {
    let mut words = WORDS;
    words[3] = sender;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let stack = StackSlice::new(Address::new(STACK), &bytes);
    let mut regs = Regs::unknown(Machine::Aarch64);
    regs.set_frame(at(instruction).get(), STACK, FP);
    regs.set(30, Some(LINK.get()));
    regs.set(13, Some(sender));
    let mut native = NativeStack::default();
    native.unwind(&regs, stack, None, &mut Leaf { frames, stack });
    let caller = native.frames.get(1)?;
    Some(Caller {
        address: caller.address.recorded(),
        sp: caller.sp.get(),
        fp: caller.regs.fp()?,
    })
}

/// A leaf whose return address is in the link register, and whose frame pointer is the caller's.
fn unlinked(size: u64) -> Option<Caller> {
    Some(Caller {
        address: LINK,
        sp: STACK + size,
        fp: FP,
    })
}

/// A leaf whose frame pointer leads on.
fn linked(sp: u64) -> Option<Caller> {
    Some(Caller {
        address: Address::new(0x905),
        sp,
        fp: 0xb0b,
    })
}

/// A leaf with the pair at the stack pointer.
fn pushed() -> Option<Caller> {
    Some(Caller {
        address: Address::new(0x901),
        sp: STACK + 16,
        fp: 0xa0a,
    })
}

#[test]
fn each_state_of_a_compiled_frame_leads_to_the_caller() {
    let of = |state| left(CodeFrames::Fixed { words: 6, state }, 0, 0);
    assert_eq!(of(Complete), linked(STACK + 48));
    assert_eq!(of(Unsaved), unlinked(48));
    assert_eq!(of(Pushed), pushed());
    assert_eq!(of(Called), unlinked(0));
}

#[test]
fn a_compiled_frame_is_not_left_without_its_stack_pointer() {
    let stack = StackSlice::new(Address::new(STACK), &[0x11; 80]);
    let mut frame = NativeFrame {
        address: FrameAddress::Return(at(1)),
        sp: Address::new(STACK),
        regs: Regs::unknown(Machine::Aarch64),
        reached: Reached::Unwound,
    };
    frame.regs.set_frame(at(1).get(), STACK, FP);
    let frames = CodeFrames::Fixed {
        words: 4,
        state: Complete,
    };
    assert!(rule(frames, &frame, stack, &mut JavaCalls).is_some());
    frame.regs.set(Machine::Aarch64.sp(), None);
    assert!(rule(frames, &frame, stack, &mut JavaCalls).is_none());
}

#[test]
fn the_sender_of_an_interpreted_frame_has_its_stack_pointer_where_the_frame_says() {
    let above = STACK + 64;
    let partial = |state, sender| {
        let sender_sp = 13;
        left(
            CodeFrames::Partial(PartialFrame { state, sender_sp }),
            0,
            sender,
        )
    };
    assert_eq!(left(CodeFrames::Interpreter, 0, above), linked(above));
    assert_eq!(partial(PartialState::Called, above), unlinked(64));
    assert_eq!(partial(PartialState::Left, above), unlinked(64));
    assert_eq!(partial(PartialState::Linked, above), linked(above));
    // A frame lies over the expression stack of an interpreted sender.
    for below in [STACK - 64, 0] {
        assert_eq!(left(CodeFrames::Interpreter, 0, below), linked(STACK + 48));
        assert_eq!(partial(PartialState::Called, below), unlinked(0));
        assert_eq!(partial(PartialState::Linked, below), linked(STACK + 48));
    }
}

#[test]
fn stubs_routines_and_adapters_lead_to_the_caller() {
    let stub = bytes(&[ENTER[0], ENTER[1], NOP, LEAVE[0], LEAVE[1], RET]);
    let of = |number| left(CodeFrames::Stub(code(&stub)), number, 0);
    assert_eq!([of(0), of(1), of(5)], [unlinked(0), pushed(), unlinked(0)]);
    assert_eq!([of(2), of(4)], [linked(STACK + 48), linked(STACK + 48)]);
    let adapter = bytes(&[0xd100_c3ff, NOP]); // sub sp, sp, #48
    let of = |number| left(CodeFrames::Passed(code(&adapter)), number, 0);
    assert_eq!([of(0), of(1)], [unlinked(0), unlinked(48)]);
    let routine = bytes(&[0x6dbe_27e8, NOP, BLR_X8, NOP]); // stp d8, d9, [sp, #-32]!
    let of = |number| left(CodeFrames::Routines(code(&routine)), number, 0);
    assert_eq!([of(0), of(1)], [unlinked(0), unlinked(32)]);
    // It may have called something.
    assert_eq!(of(3), None);
}

proptest! {
    #[test]
    fn any_code_has_an_answer(words in proptest::collection::vec(any::<u32>(), 0..24), at in 0_usize..100, known in any::<prop::sample::Index>()) {
        let made = [ENTER[0], LEAVE[1], RET, BLR_X8, 0x5800_0048, BR_X8, 0xf000_0008, 0xa904_37ff];
        let mut words = words;
        words.push(made[known.index(made.len())]);
        let bytes = bytes(&words);
        let prologue = Prologue { code: &bytes, entry: 0, complete: 40 };
        prologue.state(Machine::Aarch64, at);
        pushed_by_call(&bytes, at);
        pushed_in_adapter(&bytes, at);
        partial_frame(&bytes, at, true);
        called(code(&bytes), CODE.wrapping_add(at as u64));
        if let Some(frame) = leaf_frame(code(&bytes), CODE, CODE.wrapping_add(at as u64), Address::new(8)) {
            prop_assert!(frame.saved_fp.is_none_or(|saved| saved <= frame.size));
        }
    }
}
