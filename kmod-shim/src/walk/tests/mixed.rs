//! A walk finds frames of an interpreter and of compiled code on the native stack, in any order.

use super::*;
use crate::abi::frame_flags::COMPILED;
use varid_tunnel::abi::{RULE_AT_SP, RULE_CODE_INFO, RULE_SIZED};

const SPECIALS_WORD: u64 = 0x22_0000;
const SPECIALS: u64 = 0x20_0000;
/// The special method whose frame saves all arguments of a call.
const REFS_AND_ARGS: u64 = 0x6020;
const REFS_AND_ARGS_SIZE: u64 = 208;
const ENTRY: u16 = 24;
/// nterp's code, and return addresses in it.
const NTERP: u64 = 0x8a_0000;
const NTERP_END: u64 = 0x8b_0000;
const NTERP_RETURN: u64 = NTERP + 0x500;
const NTERP_IP: u64 = NTERP + 0x400;
/// The size of nterp's frames, and the offset of their references.
const NTERP_SIZE: u64 = 0x100;
const REFERENCES: u64 = 0x30;
const METHOD: u64 = 0x30_0000;
const OTHER: u64 = 0x30_0100;
const CODE: u64 = 0x40_0000;
const OTHER_CODE: u64 = 0x41_0000;
const RETURN: u64 = CODE + 0x44;
const OTHER_RETURN: u64 = OTHER_CODE + 0x55;
const ELSEWHERE: u64 = 0x77_0000;
const OUTER: u64 = SP + 0x1000;
/// Register numbers in machine instructions.
const R12: u32 = 12;
const R13: u32 = 13;
const R15: u32 = 15;
const RETURN_ADDRESS: u32 = 16;

/// ART 11 (`RULE_SIZED`) or 14 on x86-64, with nterp and compiled code.
fn vm(kind: u8) -> Vm {
    let mut vm = Vm::wide();
    let saved = Rule {
        special_count: 6,
        special_sizes: [96, 96, REFS_AND_ARGS_SIZE as u16, 272, 272, 272],
        special_methods: SPECIALS_WORD,
        method_flags: 4,
        native_flag: 0x100,
        native_size: REFS_AND_ARGS_SIZE as u16,
        method_entry: ENTRY,
        ..Rule::default()
    };
    vm.layout.rules[1] = Rule {
        kind: RULE_AT_SP,
        cfa_word: -8,
        cfa_bias: 88,
        saved_pc: 40,
        saved_frame: 16,
        saved_return: 8,
        code_start: NTERP,
        code_end: NTERP_END,
        ..saved
    };
    vm.layout.rules[2] = Rule {
        kind,
        saved_pc: R12 as u16,
        saved_frame: R15 as u16,
        code_start: CODE,
        code_end: OTHER_CODE + 0x2000,
        ..saved
    };
    (vm.layout.rule_count, vm.layout.quick_rule) = (3, 1);
    vm.word(SPECIALS_WORD, SPECIALS);
    for special in 0..6 {
        let method = REFS_AND_ARGS - 32 + 16 * special;
        vm.word(SPECIALS + 8 * special, method);
        vm.memory.put(method, &[0; 64]);
    }
    vm.memory.put(SP - 0x100, &[0; 0x4000]);
    vm
}

/// Encodes numbers as a CodeInfo does: four bits each, then the bytes of those that need more.
fn numbers(numbers: &[u32]) -> Vec<u8> {
    let mut bits = Vec::new();
    let mut put = |value: u32, count: u32| bits.extend((0..count).map(|bit| value >> bit & 1));
    let size = |number: u32| 4 - number.leading_zeros() / 8;
    for number in numbers {
        let bytes = if *number > 11 { size(*number) } else { 0 };
        put(if bytes > 0 { 11 + bytes } else { *number }, 4);
    }
    for number in numbers.iter().filter(|number| **number > 11) {
        put(*number, 8 * size(*number));
    }
    let byte = |bits: &[u32]| bits.iter().rev().fold(0, |all, bit| all << 1 | *bit as u8);
    bits.chunks(8).map(byte).collect()
}

/// Makes a method whose code has `size` bytes and frames of `frame` bytes that save these registers.
fn method(vm: &mut Vm, at: u64, entry: u64, (size, frame): (u32, u64), registers: &[u32]) {
    let kept = registers.iter().chain(&[RETURN_ADDRESS]);
    let kept = kept.fold(0, |mask, register| mask | 1 << register);
    let frame = frame as u32 / 16;
    let is_sized = vm.layout.rules[2].kind == RULE_SIZED;
    let info = match is_sized {
        true => numbers(&[3, frame, kept, 0, 5, 0]),
        false => numbers(&[7, size, frame, kept, 0, 5, 0]),
    };
    vm.memory.put(at, &[0; 64]);
    vm.word(at + u64::from(ENTRY), entry);
    vm.memory.put(entry - 0x40, &[0; 0x40]);
    vm.memory.put(entry - 0x40, &info);
    match is_sized {
        true => {
            vm.memory.put(entry - 8, &0x40u32.to_le_bytes());
            vm.memory.put(entry - 4, &(size | 1 << 31).to_le_bytes());
        }
        false => vm.memory.put(entry - 4, &0xc000_0040u32.to_le_bytes()),
    }
}

/// A frame on a stack.
enum Put<'a> {
    /// A frame of nterp, at a bytecode pc.
    Nterp(u64),
    /// A frame of a method's code, with the size, the return address after a call, and the saved registers.
    Compiled(u64, u64, u64, &'a [u32]),
    /// A frame of a special method.
    Special,
}

/// Writes frames, innermost first, from `at` upwards. Native code has called the outermost one. Returns their addresses, and the
/// innermost frame's values of r12 and r15.
fn put(vm: &mut Vm, at: u64, frames: &[Put<'_>]) -> (Vec<u64>, [u64; 2]) {
    let size = |frame: &Put<'_>| match frame {
        Put::Nterp(_) => NTERP_SIZE,
        Put::Compiled(_, size, ..) => *size,
        Put::Special => REFS_AND_ARGS_SIZE,
    };
    let mut places = vec![at];
    for frame in frames {
        places.push(places.last().unwrap() + size(frame));
    }
    // The register values in the current frame, from the outermost one inwards.
    let mut registers = [0xbad0, 0xbad8];
    let mut returns = ELSEWHERE;
    vm.word(places[frames.len()], 0);
    for (index, frame) in frames.iter().enumerate().rev() {
        let (sp, cfa) = (places[index], places[index + 1]);
        vm.word(cfa - 8, returns);
        let keep = |vm: &mut Vm, below: [u64; 2]| {
            for (below, value) in below.iter().zip(registers) {
                vm.word(cfa - below, value);
            }
        };
        match frame {
            Put::Nterp(pc) => {
                keep(vm, [40, 16]);
                vm.word(sp, 0x5000);
                vm.word(sp + REFERENCES - 8, cfa - 88);
                registers = [*pc, sp + REFERENCES];
                returns = NTERP_RETURN;
            }
            Put::Special => {
                keep(vm, [40, 16]);
                vm.word(sp, REFS_AND_ARGS);
            }
            Put::Compiled(method, _, called, kept) => {
                // The highest register is next to the return address.
                let mut kept = kept.to_vec();
                kept.sort_unstable_by(|one, other| other.cmp(one));
                for (at, register) in (2..).zip(&kept) {
                    let place = cfa - 8 * at;
                    match *register {
                        R12 => vm.word(place, registers[0]),
                        R15 => vm.word(place, registers[1]),
                        _ => vm.word(place, 0xdead),
                    }
                }
                vm.word(sp, *method);
                // Changes the registers that the frame saves.
                for (which, register) in [R12, R15].into_iter().enumerate() {
                    if kept.contains(&register) {
                        registers[which] = 0xbeef;
                    }
                }
                returns = *called;
            }
        }
    }
    places.pop();
    (places, registers)
}

/// Walks a thread that was interrupted at an instruction. Returns its frames, the number of those dropped before, and how the walk ended.
fn walk(vm: &Vm, ip: u64, registers: [u64; 2], is_body: bool) -> (Vec<ManagedFrame>, usize, Step) {
    let [pc, frame] = registers;
    let leaf = Leaf {
        ip,
        sp: SP,
        registers: is_body.then_some(LeafRegisters { rule: 1, frame, pc }),
        state: None,
        quick: (frame, pc),
        link: 0,
    };
    let read = |address, to: &mut [u8]| vm.memory.read(address, to);
    let mut walk = Walk::from_leaf(&vm.layout, BASE, TID, &leaf, read).unwrap();
    let (mut frames, mut dropped) = (Vec::new(), 0);
    loop {
        match walk.step() {
            Step::Frame(frame) => frames.push(frame),
            Step::Dropped => {
                dropped += frames.len();
                frames.clear();
            }
            end => return (frames, dropped, end),
        }
    }
}

const KINDS: [u8; 2] = [RULE_SIZED, RULE_CODE_INFO];
/// Compiled code that saves both of nterp's registers, one of them, or none.
const KEPT: [&[u32]; 4] = [&[R12, R13, R15], &[R15], &[R12, R13], &[]];

#[test]
fn an_outer_stretch_of_both_kinds_is_walked_by_the_registers_that_compiled_code_keeps() {
    for (kind, kept) in KINDS
        .into_iter()
        .flat_map(|kind| KEPT.map(|kept| (kind, kept)))
    {
        let mut vm = vm(kind);
        method(&mut vm, METHOD, CODE, (0x80, 64), kept);
        method(&mut vm, OTHER, OTHER_CODE, (0x2000, 4096), &[]);
        vm.fragment(vm.base_fragment(), 0, SP + 0x40, OUTER);
        vm.frame(SP + 0x40, 0, 0x5010, 0x9010);
        let frames = [
            Put::Special,
            Put::Nterp(0x9110),
            Put::Compiled(METHOD, 64, RETURN, kept),
            Put::Compiled(OTHER, 4096, OTHER_RETURN, &[]),
            Put::Nterp(0x9220),
            Put::Nterp(0x9330),
            Put::Compiled(METHOD, 64, RETURN + 4, kept),
        ];
        let (at, _) = put(&mut vm, OUTER + 0x100, &frames);
        vm.fragment(OUTER, at[0], 0, 0);
        let expected = vec![
            frame(SP + 0x40, 0x5010, 0x9010, OUTERMOST),
            frame(at[1], 0, 0x9110, 0),
            frame(at[2], METHOD, RETURN, COMPILED),
            frame(at[3], OTHER, OTHER_RETURN, COMPILED),
            frame(at[4], 0, 0x9220, 0),
            frame(at[5], 0, 0x9330, 0),
            frame(at[6], METHOD, RETURN + 4, COMPILED | OUTERMOST),
        ];
        let found = walk(&vm, 0x7000, [0, 0], false);
        assert_eq!(found, (expected, 0, Step::End), "{kind} {kept:?}");
    }
}

#[test]
fn a_leaf_in_either_kind_leads_to_the_callers_of_both() {
    for (kind, kept) in KINDS
        .into_iter()
        .flat_map(|kind| KEPT.map(|kept| (kind, kept)))
    {
        let mut vm = vm(kind);
        method(&mut vm, METHOD, CODE, (0x80, 64), kept);
        // An outdated note.
        vm.fragment(vm.base_fragment(), SP + 0x20, 0, 0);
        let callers = |at: &[u64]| {
            vec![
                frame(at[1], 0, 0x9110, 0),
                frame(at[2], METHOD, RETURN, COMPILED),
                frame(at[3], 0, 0x9220, OUTERMOST),
            ]
        };
        let mut frames = [
            Put::Compiled(METHOD, 64, 0, kept),
            Put::Nterp(0x9110),
            Put::Compiled(METHOD, 64, RETURN, kept),
            Put::Nterp(0x9220),
        ];
        let (at, registers) = put(&mut vm, SP, &frames);
        let found = walk(&vm, CODE + 0x60, registers, false);
        assert_eq!(found, (callers(&at), 0, Step::End), "{kind} {kept:?}");

        frames[0] = Put::Nterp(0x9006);
        let (at, registers) = put(&mut vm, SP, &frames);
        let mut expected = callers(&at);
        expected.insert(0, frame(SP, 0, 0x9006, 0));
        let found = walk(&vm, NTERP_IP, registers, true);
        assert_eq!(found, (expected, 0, Step::End), "{kind} {kept:?}");
    }
}

#[test]
fn a_leaf_without_a_frame_has_its_callers_registers() {
    let mut vm = vm(RULE_CODE_INFO);
    vm.fragment(vm.base_fragment(), 0, 0, 0);
    let (at, registers) = put(&mut vm, SP + 8, &[Put::Nterp(0x9110), Put::Nterp(0x9220)]);
    vm.word(SP, NTERP_RETURN);
    let expected = vec![
        frame(at[0], 0, 0x9110, 0),
        frame(at[1], 0, 0x9220, OUTERMOST),
    ];
    let found = walk(&vm, CODE + 4, registers, false);
    assert_eq!(found, (expected, 0, Step::End));
}

#[test]
fn an_innermost_stretch_that_contradicts_itself_is_dropped() {
    for returns in [CODE, CODE + 0x81, ELSEWHERE] {
        let mut vm = vm(RULE_CODE_INFO);
        method(&mut vm, METHOD, CODE, (0x80, 64), &[R15]);
        vm.fragment(vm.base_fragment(), SP + 0x20, 0, OUTER);
        vm.word(SP + 0x20, 0x6660);
        vm.fragment(OUTER, 0, OUTER + 0x40, 0);
        vm.frame(OUTER + 0x40, 0, 0x5030, 0x9030);
        let frames = [
            Put::Nterp(0x9006),
            Put::Compiled(METHOD, 64, returns, &[R15]),
            Put::Nterp(0x9220),
        ];
        let (_, registers) = put(&mut vm, SP, &frames);
        let method = u64::from_le_bytes({
            let mut word = [0; 8];
            vm.memory.read(SP + 0x20, &mut word);
            word
        });
        let expected = vec![
            frame(SP + 0x20, method, 0, QUICK),
            frame(OUTER + 0x40, 0x5030, 0x9030, OUTERMOST),
        ];
        let found = walk(&vm, NTERP_IP, registers, true);
        assert_eq!(found, (expected, 1, Step::End), "{returns:#x}");
    }
}

#[test]
fn a_bridge_that_nterp_or_native_code_called_leads_to_nterp_or_to_nothing() {
    // Without compiled code, as in a process that only interprets.
    for called_by_nterp in [true, false] {
        let mut vm = vm(RULE_SIZED);
        vm.layout.rule_count = 2;
        vm.fragment(vm.base_fragment(), 0, SP + 0x40, OUTER);
        vm.frame(SP + 0x40, 0, 0x5010, 0x9010);
        let frames = [Put::Special, Put::Nterp(0x9110)];
        let frames = &frames[..if called_by_nterp { 2 } else { 1 }];
        let (at, _) = put(&mut vm, OUTER + 0x100, frames);
        vm.fragment(OUTER, at[0], 0, 0);
        let mut expected = vec![frame(SP + 0x40, 0x5010, 0x9010, OUTERMOST)];
        if called_by_nterp {
            expected.push(frame(at[1], 0, 0x9110, OUTERMOST));
        }
        let found = walk(&vm, 0x7000, [0, 0], false);
        assert_eq!(found, (expected, 0, Step::End), "{called_by_nterp}");
    }
}

#[test]
fn a_proxys_frame_keeps_the_arguments_also_where_nothing_is_compiled() {
    let mut vm = vm(RULE_CODE_INFO);
    vm.layout.rule_count = 2;
    vm.memory.put(METHOD, &[0; 64]);
    vm.word(METHOD + u64::from(ENTRY), CODE);
    // The bytes before the VM's stubs.
    vm.memory.put(CODE - 8, &[0xff; 8]);
    let (at, _) = put(&mut vm, SP + 0x40, &[Put::Special, Put::Nterp(0x9110)]);
    vm.word(at[0], METHOD);
    vm.fragment(vm.base_fragment(), at[0], 0, 0);
    let expected = vec![
        frame(at[0], METHOD, 0, QUICK),
        frame(at[1], 0, 0x9110, OUTERMOST),
    ];
    assert_eq!(walk(&vm, 0x7000, [0, 0], false), (expected, 0, Step::End));
}
