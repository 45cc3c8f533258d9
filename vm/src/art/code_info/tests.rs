//! The fixture is of ART's compiler: tests/fixtures/art11/make.sh. What its code and bytecode are is known by objdump and dexdump.

use super::bit_table::tests::bits;
use super::*;
use std::collections::BTreeSet;

/// Code of Code.smali, from `oatdata`.
const OAT: &[u8] = include_bytes!("../../../tests/fixtures/art11/code.oat");

const CATCHING: u32 = 0x372;
const CHAR_AT: u32 = 0x391;
const DIFFERENCE: u32 = 0x3a5;
const ELEMENT: u32 = 0x3ba;
const OUTER: u32 = 0x3c7;
/// Its stack maps are those of [`DIFFERENCE`].
const TWICE: u32 = 0x3f2;
const EMPTY_CONSTRUCTOR: u32 = 0x36c;

/// BinaryTrees.run of tests/workloads/vm, compiled while its loop ran: copied from the code cache of `artvm --jit`, with the option
/// -Xjitthreshold:100.
const JIT: &[u8] = b"\x91\xde\xcb\x28\xf0\x01\x00\xf0\xef\x2b\x5a\x12\x13\x41\x02\x01\x00\x36\x02\x00\
\x92\x94\x04\x0e\x7a\x05\x34\x55\x1d\x20\xcd\x03\x00\x9b\x87\xa0\xd0\x00\x00\xb3\x15\x83\x70\x3d\x88\xf6\x36\x62\
\x19\x92\xb3\xe3\xc0\x04\x04\xcc\xf1\xf0\x41\x70\xff\x58\x26\x6c\xf3\x82\xfb\x07\x34\x61\x9b\x33\xdc\x3f\x96\x09\
\xdb\x1c\xe1\xfe\x01\x4d\xd8\xe6";

fn info(offset: u32) -> CodeInfo<'static> {
    CodeInfo::parse_at(CodeFormat::Android11, Machine::X86_64, OAT, offset).unwrap()
}

fn dex_pc(map: Option<StackMap>) -> Option<u32> {
    map.and_then(|map| map.dex_pc).map(CodeUnits::get)
}

#[test]
fn a_frame_is_as_large_as_its_prologue_makes_it() {
    // The return address, what is pushed, what is subtracted.
    for (method, size, core, registers) in [
        (EMPTY_CONSTRUCTOR, 0, 0x10000, 1),
        (ELEMENT, 8 + 8, 0x10000, 3),
        (TWICE, 8 + 0x18, 0x10000, 4),
        (DIFFERENCE, 8 + 0x18, 0x10000, 5),
        (CATCHING, 8 + 16 + 0x18, 0x10028, 3),
    ] {
        let info = info(method);
        assert_eq!(
            (info.frame_size, info.core_spill_mask, info.fp_spill_mask),
            (size, core, 0),
            "{method:#x}"
        );
        assert_eq!(info.dex_registers, registers);
    }
}

#[test]
fn a_return_address_has_the_map_of_its_call_and_no_other() {
    let info = info(CATCHING);
    assert_eq!(dex_pc(info.stack_map_at(0x34)), Some(0));
    // Where the exception is caught, which is no call, and behind all others.
    let catch = info.stack_maps().last().unwrap();
    assert_eq!((catch.kind, catch.pc_offset), (StackMapKind::Catch, 0x39));
    assert_eq!(info.stack_map_at(0x39), None);
    assert_eq!(info.stack_map_at(0x33), None);
    assert_eq!(info.stack_map_at(u32::MAX), None);
}

#[test]
fn of_maps_with_the_same_pc_the_one_of_a_call_is_taken() {
    // A header that tells of stack maps only; three rows of a kind, a pc and an instruction.
    let mut numbers = vec![(0, 4), (1, 4), (0, 4), (0, 4), (0, 4), (1, 4)];
    numbers.extend([(3, 4), (2, 4), (4, 4), (3, 4)]);
    numbers.extend([(0, 4); 5]);
    for (kind, pc, dex_pc) in [(3, 6, 2), (0, 6, 3), (1, 10, 4)] {
        numbers.extend([(kind, 2), (pc, 4), (dex_pc, 3)]);
    }
    let bytes = bits(&numbers);
    let info = CodeInfo::parse(CodeFormat::Android11, Machine::X86_64, &bytes).unwrap();
    let kinds: Vec<_> = info.stack_maps().map(|map| map.kind).collect();
    let expected = [
        StackMapKind::Debug,
        StackMapKind::Default,
        StackMapKind::Catch,
    ];
    assert_eq!(kinds, expected);
    assert_eq!(dex_pc(info.stack_map_at(5)), Some(2));
    assert_eq!(info.stack_map_at(9), None);
    assert_eq!(dex_pc(info.stack_map_before(9)), Some(2));
}

#[test]
fn the_map_before_a_pc_is_the_nearest() {
    let info = info(OUTER);
    let before = |pc| info.stack_map_before(pc).map(|map| map.pc_offset);
    let pcs = [8, 0xa6, 0xb8, 0xca, 0xdc, 0xea, 0xf2];
    let found: BTreeSet<_> = (0..0xf7).filter_map(before).collect();
    assert_eq!(found, BTreeSet::from(pcs));
    for pc in pcs {
        assert_eq!(before(pc), Some(pc));
        assert_ne!(before(pc - 1), Some(pc));
    }
    assert_eq!(before(7), None);
    assert_eq!(before(u32::MAX), Some(0xf2));
}

#[test]
fn inlined_methods_come_from_the_outermost_to_the_innermost() {
    let info = info(OUTER);
    let map = info.stack_map_at(0xea).unwrap();
    assert_eq!(map.dex_pc, Some(CodeUnits::new(3)));
    let inlined = |index, dex_pc| InlinedMethod {
        method: InlinedId::Index(InlinedDexFile::Outer, index),
        dex_pc: Some(CodeUnits::new(dex_pc)),
    };
    // The second call in twice, and the access in element.
    assert_eq!(info.inlined(&map), Ok(vec![inlined(11, 4), inlined(6, 2)]));
    let loop_check = info.stack_map_at(0xf2).unwrap();
    assert_eq!(info.inlined(&loop_check), Ok(vec![]));
}

#[test]
fn code_that_was_compiled_in_the_process_names_inlined_methods_by_their_address() {
    let info = CodeInfo::parse(CodeFormat::Android11, Machine::X86_64, JIT).unwrap();
    assert_eq!((info.frame_size, info.dex_registers), (144, 11));
    assert_eq!(
        (info.core_spill_mask, info.fp_spill_mask),
        (0x1f028, 0xf000)
    );
    let map = info.stack_map_at(0x14c).unwrap();
    assert_eq!(map.dex_pc, Some(CodeUnits::new(20)));
    let inlined = InlinedMethod {
        method: InlinedId::Pointer(0x7f6f_66d8_4cb0),
        dex_pc: Some(CodeUnits::new(3)),
    };
    assert_eq!(info.inlined(&map), Ok(vec![inlined]));
    // The check of the loop where the interpreter enters it calls, too.
    let entry = info.stack_map_at(0x2f5).unwrap();
    assert_eq!(
        (entry.kind, entry.dex_pc),
        (StackMapKind::Osr, Some(CodeUnits::new(12)))
    );
}

#[test]
fn char_at_is_inlined_from_another_dex_file() {
    let info = info(CHAR_AT);
    let map = info.stack_map_at(0x3f).unwrap();
    assert_eq!(map.dex_pc, Some(CodeUnits::new(0)));
    let char_at = InlinedMethod {
        // Its index in boot.dex; in its own dex file it is 1.
        method: InlinedId::CharAt(532),
        dex_pc: None,
    };
    assert_eq!(info.inlined(&map), Ok(vec![char_at]));
}

#[test]
fn a_table_may_be_that_of_an_earlier_method() {
    let maps = |offset| info(offset).stack_maps().collect::<Vec<_>>();
    assert_eq!(maps(TWICE), maps(DIFFERENCE));
    assert_eq!(maps(TWICE).len(), 3);
    // Without what is before it there is no such table.
    let alone = CodeInfo::parse(
        CodeFormat::Android11,
        Machine::X86_64,
        &OAT[TWICE as usize..],
    );
    let broken = matches!(alone, Err(CodeInfoError::Broken { .. }));
    assert!(broken, "{alone:?}");
}

#[test]
fn one_that_is_cut_short_says_what_it_needs() {
    for offset in [CATCHING, CHAR_AT, OUTER, DIFFERENCE, EMPTY_CONSTRUCTOR] {
        let bytes = &OAT[offset as usize..];
        let mut copied = 0;
        let info = loop {
            match CodeInfo::parse(CodeFormat::Android11, Machine::X86_64, &bytes[..copied]) {
                Ok(info) => break info,
                Err(CodeInfoError::CutShort { needed }) => {
                    assert!(needed as usize > copied, "the same again");
                    copied = needed as usize;
                }
                Err(error) => panic!("{error}"),
            }
        };
        // It asked for no byte in vain.
        assert_eq!(info.size, copied as u64);
    }
}

#[test]
fn pcs_count_in_the_instruction_sets_own_units() {
    for (machine, unit) in [(Machine::X86, 1), (Machine::Arm, 2), (Machine::Aarch64, 4)] {
        let info = CodeInfo::parse_at(CodeFormat::Android11, machine, OAT, ELEMENT).unwrap();
        let pcs: Vec<_> = info.stack_maps().map(|map| map.pc_offset).collect();
        assert_eq!(pcs, [0xe * unit, 0x2b * unit]);
        assert_eq!(dex_pc(info.stack_map_at(0xe * unit)), Some(2));
    }
}

#[test]
fn inlined_methods_without_an_end_are_an_error() {
    let info = info(OUTER);
    let mut map = info.stack_map_at(0xea).unwrap();
    map.inline_info = Some(1000);
    assert!(info.inlined(&map).is_err());
}

/// A header of ART 14 with these flags and this size of the code, and a table of stack maps with one row.
fn info_14(flags: u32, code_size: u32) -> Vec<u8> {
    let mut numbers = vec![(flags, 4), (12, 4), (2, 4), (0, 4), (0, 4), (3, 4), (1, 4)];
    numbers.push((code_size, 8));
    numbers.extend([(1, 4), (0, 4), (4, 4), (3, 4)]);
    numbers.extend([(0, 4); 5]);
    numbers.extend([(10, 4), (4, 3)]);
    bits(&numbers)
}

#[test]
fn art_14_notes_down_the_size_of_the_code() {
    let parse = |bytes: &[u8]| {
        let info = CodeInfo::parse(CodeFormat::Android14, Machine::X86_64, bytes)?;
        let call = dex_pc(info.stack_map_at(9));
        Ok((info.code_size, info.frame_size, info.dex_registers, call))
    };
    let known = (Some(200), 32, 3, Some(3));
    assert_eq!(parse(&info_14(0, 200)), Ok(known));
    // Of a debuggable app.
    assert_eq!(parse(&info_14(0b100, 200)), Ok(known));
    for refused in [info_14(0b1000, 200), info_14(0, 0)] {
        let refused = parse(&refused);
        let broken = matches!(refused, Err(CodeInfoError::Broken { .. }));
        assert!(broken, "{refused:?}");
    }
}

#[test]
fn art_14_names_the_dex_file_of_an_inlined_method() {
    // A header of stack maps, inlined methods and their names; a map at pc 4 with inlined methods from row 0 on.
    let mut numbers = vec![(0, 4), (9, 4), (2, 4), (0, 4), (0, 4), (3, 4), (13, 4)];
    numbers.push((0b1_1001, 16));
    numbers.extend([
        (1, 4),
        (0, 4),
        (3, 4),
        (1, 4),
        (0, 4),
        (0, 4),
        (1, 4),
        (0, 4),
    ]);
    numbers.push((0, 4));
    numbers.extend([(5, 3), (1, 1), (1, 1)]);
    // Each has the column of whether it is the last, of its instruction and of its name.
    let count = 4;
    numbers.extend([(count, 4), (1, 4), (4, 4), (3, 4), (0, 4), (0, 4), (0, 4)]);
    for row in 0..count {
        let has_more = u32::from(row + 1 < count);
        numbers.extend([(has_more, 1), (row + 1, 4), (row + 1, 3)]);
    }
    // Index, kind and number of the dex file.
    numbers.extend([(4, 4), (4, 4), (2, 4), (3, 4)]);
    for (index, kind, number) in [(7, 0, 0), (8, 0, 3), (9, 1, 2), (10, 2, 1)] {
        numbers.extend([(index, 4), (kind, 2), (number, 3)]);
    }
    let bytes = bits(&numbers);
    let info = CodeInfo::parse(CodeFormat::Android14, Machine::X86_64, &bytes).unwrap();
    let mut map = info.stack_map_at(4).unwrap();
    // The last one is of a kind that ART does not know.
    assert!(info.inlined(&map).is_err());
    let inlined = |row| info.inlined_method(row).map(|inlined| inlined.method);
    let known = |dex_file, index| Some(InlinedId::Index(dex_file, index));
    assert_eq!(
        [0, 1, 2, 3].map(inlined),
        [
            known(InlinedDexFile::Outer, 6),
            known(InlinedDexFile::OatFile(2), 7),
            known(InlinedDexFile::BootClassPath(1), 8),
            None
        ]
    );
    map.inline_info = Some(count);
    assert!(info.inlined(&map).is_err());
}
