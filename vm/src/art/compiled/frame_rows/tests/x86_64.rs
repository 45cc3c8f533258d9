//! Are frames of x86-64 followed from their prologues to their ends?

use super::super::FrameRows;
use varid_model::Machine;
use varid_unwind::CodeRule;

/// The CFA's distance from the stack pointer.
fn size(rows: &FrameRows, offset: u32) -> String {
    match rows.rule(offset) {
        CodeRule::Rule(rule) => format!("{:?}", rule),
        _ => panic!("a rule"),
    }
}

#[test]
fn frames_grow_in_the_prologue_and_shrink_in_each_epilogue() {
    let code = [
        &[0x48, 0x85, 0x84, 0x24, 0x00, 0xe0, 0xff, 0xff][..], // 0: test %rax, -8192(%rsp)
        &[0x55],                                               // 8: push %rbp
        &[0x53],                                               // 9: push %rbx
        &[0x48, 0x83, 0xec, 0x18],                             // 10: sub $24, %rsp
        &[0x48, 0x89, 0x3c, 0x24],                             // 14: mov %rdi, (%rsp)
        &[0x85, 0xf6],                                         // 18: test %esi, %esi
        &[0x74, 0x07],                                         // 20: je 29
        &[0x48, 0x83, 0xc4, 0x18],                             // 22: add $24, %rsp
        &[0x5b],                                               // 26: pop %rbx
        &[0x5d],                                               // 27: pop %rbp
        &[0xc3],                                               // 28: ret
        &[0xff, 0x57, 0x18],                                   // 29: call *24(%rdi)
        &[0x48, 0x83, 0xc4, 0x18],                             // 32: add $24, %rsp
        &[0x5b, 0x5d, 0xc3],                                   // 36: pop, pop, ret
    ]
    .concat();
    let rows = FrameRows::of(Machine::X86_64, &code, 48);
    let starts: Vec<(u32, bool)> = rows
        .rows
        .iter()
        .map(|row| (row.start, row.excess == Some(0)))
        .collect();
    assert_eq!(
        starts,
        [
            (0, false),
            (9, false),
            (10, false),
            (14, true),
            (26, false),
            (27, false),
            (28, false),
            (29, true),
            (36, false),
            (37, false),
            (38, false),
            (39, true),
        ]
    );
    assert_eq!(size(&rows, 29), size(&rows, 14));
    assert_eq!(size(&rows, 36), size(&rows, 10));
    assert_eq!(size(&rows, 38), size(&rows, 0));
    assert_ne!(size(&rows, 14), size(&rows, 10));
    let at: Vec<_> = [14, 18, 22, 26, 29].map(|at| rows.method_at(at)).into();
    assert_eq!(at, [None, Some(0), Some(0), None, Some(0)]);
}

#[test]
fn below_a_stubs_frame_there_is_room_for_arguments() {
    let code = [
        &[0x53][..],               // 0: push %rbx
        &[0x48, 0x89, 0x3c, 0x24], // 1: mov %rdi, (%rsp)
        &[0x48, 0x83, 0xc4, 0xf0], // 5: add $-16, %rsp
        &[0xff, 0x50, 0x18],       // 9: call *24(%rax)
        &[0x48, 0x83, 0xc4, 0x10], // 12: add $16, %rsp
        &[0x5b, 0xc3],             // 16: pop, ret
    ]
    .concat();
    let rows = FrameRows::of(Machine::X86_64, &code, 16);
    let at: Vec<_> = [1, 5, 9, 11, 16, 17].map(|at| rows.method_at(at)).into();
    assert_eq!(at, [None, Some(0), Some(16), Some(16), Some(0), None]);
}

#[test]
fn a_method_without_a_frame_has_its_return_address_alone() {
    let rows = FrameRows::of(Machine::X86_64, &[0x89, 0xf0, 0xc3], 0);
    assert_eq!(rows.rows.len(), 1);
    assert_eq!(rows.rows[0].excess, Some(0));
    assert_eq!(rows.method_at(2), None);
}

#[test]
fn code_that_never_has_its_whole_frame_has_no_rows() {
    // push %rbx; lea -24(%rsp), %rsp; call *24(%rdi).
    let code = [0x53, 0x48, 0x8d, 0x64, 0x24, 0xe8, 0xff, 0x57, 0x18];
    let rows = FrameRows::of(Machine::X86_64, &code, 48);
    assert!(matches!(rows.rule(8), CodeRule::Unknown));
}

#[test]
fn code_that_pushes_without_end_has_no_rows() {
    // push %rax; push %rbx, pop %rbx.
    for code in [vec![0x50; 1 << 20], [0x53, 0x5b].repeat(1 << 19)] {
        let rows = FrameRows::of(Machine::X86_64, &code, 48);
        assert!(rows.rows.is_empty());
        assert!(matches!(rows.rule(100), CodeRule::Unknown));
        assert_eq!(rows.method_at(100), None);
    }
}

#[test]
fn code_that_is_none_has_rows_in_order() {
    for code in [&[0xff; 64][..], &[0x5d; 64], &[0x55; 64], &[0xc3; 9], &[]] {
        let rows = FrameRows::of(Machine::X86_64, code, 16);
        assert!(rows.rows.is_sorted_by_key(|row| row.start));
    }
}
