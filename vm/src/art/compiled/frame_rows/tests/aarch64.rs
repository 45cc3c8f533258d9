//! Are frames of arm64 followed from their prologues to their ends? Instructions are as an assembler writes them.

use super::super::FrameRows;
use varid_model::Machine;
use varid_unwind::{CodeRule, FixedFrame, SavedRegister, UnwindInfo};

/// What the rows say at each instruction of some code with frames of `whole` bytes.
fn at_each(words: &[u32], whole: u32) -> Vec<(String, Option<u32>)> {
    let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let rows = FrameRows::of(Machine::Aarch64, &code, whole);
    (0..words.len() as u32)
        .map(|instruction| {
            let offset = 4 * instruction;
            (shown(&rows.rule(offset)), rows.method_at(offset))
        })
        .collect()
}

/// All that a rule says.
fn shown(rule: &CodeRule) -> String {
    match rule {
        CodeRule::Rule(rule) => format!("{rule:?}"),
        _ => panic!("a rule"),
    }
}

/// The rule of a frame whose link register is saved as its last word.
fn linked(size: u32, saved: &[(u16, u32)]) -> String {
    let saved: Vec<_> = saved.iter().map(register).collect();
    shown(&FixedFrame::new(Machine::Aarch64, size, &saved).rule(Default::default()))
}

/// The same, where it is not.
fn unlinked(size: u32, saved: &[(u16, u32)]) -> String {
    let saved: Vec<_> = saved.iter().map(register).collect();
    shown(&FixedFrame::unlinked(Machine::Aarch64, size, &saved).rule(Default::default()))
}

fn register(&(dwarf, offset): &(u16, u32)) -> SavedRegister {
    SavedRegister { dwarf, offset }
}

#[test]
fn frames_are_made_in_the_prologue_and_gone_in_each_epilogue() {
    let saved = [(22, 40), (23, 48)];
    let body = (linked(64, &saved), Some(0));
    let none = |method| (unlinked(0, &[]), method);
    let expected = [
        (0xd140_0bf0, none(None)),                      // sub x16, sp, #8192
        (0xb940_021f, none(None)),                      // ldr wzr, [x16]
        (0xf81c_0fe0, none(None)),                      // str x0, [sp, #-64]!
        (0xa902_dff6, (unlinked(64, &[]), Some(0))),    // stp x22, x23, [sp, #40]
        (0xf900_1ffe, (unlinked(64, &saved), Some(0))), // str x30, [sp, #56]
        (0x6d01_a7e8, body.clone()),                    // stp d8, d9, [sp, #24]
        (0x3400_00c1, body.clone()),                    // cbz w1, 48
        (0x6d41_a7e8, body.clone()),                    // ldp d8, d9, [sp, #24]
        (0xa942_dff6, body.clone()),                    // ldp x22, x23, [sp, #40]
        (0xf940_1ffe, body.clone()),                    // ldr x30, [sp, #56]
        (0x9101_03ff, body.clone()),                    // add sp, sp, #64
        (0xd65f_03c0, none(None)),                      // ret
        (0xf940_0c1e, body.clone()),                    // ldr x30, [x0, #24]
        (0xd63f_03c0, body.clone()),                    // blr x30
        (0xf900_0bf4, body.clone()),                    // str x20, [sp, #16]
        (0x17ff_fffd, body),                            // b 48
    ];
    let words = expected.clone().map(|(word, _)| word);
    for (found, (word, rule)) in at_each(&words, 64).into_iter().zip(expected) {
        assert_eq!(found, rule, "at {word:#x}");
    }
}

#[test]
fn a_pair_with_the_method_makes_a_frame_and_another_one_leaves_it() {
    let words = [
        0xa9be_5be0, // stp x0, x22, [sp, #-32]!
        0xa901_7bf7, // stp x23, x30, [sp, #16]
        0x97ff_fffa, // bl
        0xa941_7bf7, // ldp x23, x30, [sp, #16]
        0xa8c2_5bff, // ldp xzr, x22, [sp], #32
        0xd65f_03c0, // ret
        0xf940_0c1e, // ldr x30, [x0, #24]
    ];
    let body = (linked(32, &[(22, 8), (23, 16)]), Some(0));
    let expected = [
        (unlinked(0, &[]), None),
        (unlinked(32, &[(22, 8)]), Some(0)),
        body.clone(),
        body.clone(),
        body.clone(),
        (unlinked(0, &[]), None),
        body,
    ];
    assert_eq!(at_each(&words, 32), expected);
}

#[test]
fn a_large_frame_is_reached_by_another_base_and_a_stub_makes_room_below_it() {
    let words = [
        0xd10b_03ff, // sub sp, sp, #704
        0x910a_83f0, // add x16, sp, #672
        0xa900_5213, // stp x19, x20, [x16]
        0xf901_5ffe, // str x30, [sp, #696]
        0xf900_03e0, // str x0, [sp]
        0xd100_43ff, // sub sp, sp, #16
        0xd63f_0120, // blr x9
        0x9100_43ff, // add sp, sp, #16
        0xd503_201f, // nop
    ];
    let saved = [(19, 672), (20, 680)];
    let below = [(19, 688), (20, 696)];
    let expected = [
        (unlinked(0, &[]), None),
        (unlinked(704, &[]), None),
        (unlinked(704, &[]), None),
        (unlinked(704, &saved), None),
        (linked(704, &saved), None),
        (linked(704, &saved), Some(0)),
        (linked(720, &below), Some(16)),
        (linked(720, &below), Some(16)),
        (linked(704, &saved), Some(0)),
    ];
    assert_eq!(at_each(&words, 704), expected);
}

#[test]
fn a_frame_of_more_than_4095_bytes_is_made_by_a_register() {
    let words = [
        0xd282_4610, // mov x16, #4656
        0xcb30_63ff, // sub sp, sp, x16
        0xf909_17fe, // str x30, [sp, #4648]
        0x8b30_63ff, // add sp, sp, x16
        0xd65f_03c0, // ret
        0xd503_201f, // nop
    ];
    let expected = [
        unlinked(0, &[]),
        unlinked(0, &[]),
        unlinked(4656, &[]),
        linked(4656, &[]),
        unlinked(0, &[]),
        linked(4656, &[]),
    ];
    let found: Vec<_> = at_each(&words, 4656)
        .into_iter()
        .map(|(rule, _)| rule)
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn a_method_without_a_frame_returns_by_its_link_register() {
    let found = at_each(&[0x0b02_0020, 0xd65f_03c0, 0xd65f_03c0], 0);
    assert_eq!(found, vec![(unlinked(0, &[]), None); 3]);
}

#[test]
fn code_that_changes_its_frame_without_end_has_no_rows() {
    let code = 0xd100_43ff_u32.to_le_bytes().repeat(1 << 16);
    let FrameRows { rows, stored } = FrameRows::of(Machine::Aarch64, &code, 48);
    assert!(rows.is_empty() && stored.is_none());
}

#[test]
fn code_that_is_none_has_rows_in_order() {
    for code in [&[0xff; 64][..], &[0xa9; 64], &[0xf8; 64], &[0x91; 9], &[]] {
        let FrameRows { rows, .. } = FrameRows::of(Machine::Aarch64, code, 16);
        assert!(rows.is_sorted_by_key(|row| row.start));
    }
}

#[test]
fn code_that_never_has_its_whole_frame_has_no_rows() {
    let words: [u32; 4] = [
        0xb27c_37f0, // mov x16, #0x3fff0
        0xcb30_63ff, // sub sp, sp, x16
        0xf900_03e0, // str x0, [sp]
        0x97ff_fffa, // bl
    ];
    let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let rows = FrameRows::of(Machine::Aarch64, &code, 0x3fff0);
    // Not the link register, which the call has overwritten.
    assert!(matches!(rows.rule(12), CodeRule::Unknown));
}
