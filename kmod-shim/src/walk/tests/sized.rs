//! A walk finds frames of compiled code between linked ones. Their size is in the code's header.

use super::*;
use crate::abi::frame_flags::COMPILED;
use varid_tunnel::abi::RULE_SIZED;

/// The word that leads to the special methods, and where these are.
const SPECIALS_WORD: u64 = 0x22_0000;
const SPECIALS: u64 = 0x20_0000;
/// The special method whose frame saves all arguments of a call.
const REFS_AND_ARGS: u64 = 0x6020;
/// Offset of a method's entry point in the method.
const ENTRY: u16 = 32;
/// Frame size of a native method without compiled code of its own.
const GENERIC_JNI: u64 = 208;
/// The outer fragment, and its innermost frame.
pub(super) const OUTER: u64 = SP + 0x400;
pub(super) const NOTED: u64 = SP + 0x500;

/// ART 11 on x86-64 with compiled code. The innermost frame is an interpreter's.
pub(super) fn vm(noted: u64) -> Vm {
    let mut vm = Vm::wide();
    let sized = Rule {
        kind: RULE_SIZED,
        special_count: 6,
        special_sizes: [96, 96, 208, 272, 272, 272],
        special_methods: SPECIALS_WORD,
        method_flags: 4,
        native_flag: 0x100,
        native_size: GENERIC_JNI as u16,
        method_entry: ENTRY,
        ..Rule::default()
    };
    vm.layout.rules[1] = sized;
    (vm.layout.rule_count, vm.layout.quick_rule) = (2, 1);
    vm.word(SPECIALS_WORD, SPECIALS);
    for special in 0..6 {
        vm.word(SPECIALS + 8 * special, REFS_AND_ARGS - 32 + 16 * special);
        let method = REFS_AND_ARGS - 32 + 16 * special;
        vm.memory.put(method, &[0; 64]);
    }
    vm.memory.put(SP, &[0; 0x2000]);
    vm.fragment(vm.base_fragment(), 0, SP + 0x100, OUTER);
    vm.frame(SP + 0x100, 0, 0x5010, 0x9010);
    vm.fragment(OUTER, noted, 0, 0);
    vm
}

/// Makes a method at an address. Its code is at `entry` and has `size` bytes, with frames of `frame` bytes.
pub(super) fn method(vm: &mut Vm, at: u64, entry: u64, size: u32, frame: u32) {
    vm.memory.put(at, &[0; 64]);
    vm.word(at + u64::from(ENTRY), entry);
    let info = entry - 0x40;
    vm.memory.put(info, &[0; 0x40]);
    let words = frame / 16;
    // Six numbers of four bits. The second is the size.
    match words {
        0..=11 => vm.memory.put(info, &[(words as u8) << 4 | 3, 0, 0]),
        12..=255 => vm.memory.put(info, &[12 << 4 | 3, 0, 0, words as u8]),
        _ => {
            let [low, high, ..] = words.to_le_bytes();
            vm.memory.put(info, &[13 << 4 | 3, 0, 0, low, high]);
        }
    }
    vm.memory.put(entry - 8, &0x40u32.to_le_bytes());
    vm.memory.put(entry - 4, &(size | 1 << 31).to_le_bytes());
}

/// Writes a frame of `size` bytes with its method at sp and this return address. Returns the address of its caller's frame.
pub(super) fn put(vm: &mut Vm, sp: u64, size: u64, method: u64, returns: u64) -> u64 {
    vm.word(sp, method);
    vm.word(sp + size - 8, returns);
    sp + size
}

pub(super) const METHOD: u64 = 0x30_0000;
pub(super) const CALLER: u64 = 0x30_0100;
pub(super) const CODE: u64 = 0x40_0000;
pub(super) const CALLER_CODE: u64 = 0x41_0000;
/// A return address in native code.
pub(super) const ELSEWHERE: u64 = 0x77_0000;

/// The interpreter's frame, with which all walks start.
fn innermost() -> ManagedFrame {
    frame(SP + 0x100, 0x5010, 0x9010, OUTERMOST)
}

#[test]
fn callers_of_a_frame_of_the_vms_own_are_found_by_the_size_of_their_frames() {
    for (size, caller_size) in [(48, 64), (176, 192), (16, 4096), (4080, 5000 / 16 * 16)] {
        let mut vm = vm(NOTED);
        method(&mut vm, METHOD, CODE, 0x80, size);
        method(&mut vm, CALLER, CALLER_CODE, 0x2000, caller_size);
        let sp = put(&mut vm, NOTED, 208, REFS_AND_ARGS, CODE + 0x80);
        vm.memory.put(sp, &[0; 0x3000]);
        let caller = put(&mut vm, sp, size.into(), METHOD, CALLER_CODE + 0x11);
        let end = put(&mut vm, caller, caller_size.into(), CALLER, ELSEWHERE);
        vm.word(end, 0);
        let expected = vec![
            innermost(),
            frame(sp, METHOD, CODE + 0x80, COMPILED),
            frame(caller, CALLER, CALLER_CODE + 0x11, COMPILED | OUTERMOST),
        ];
        assert_eq!(vm.walk(None), Some((expected, Step::End)), "{size}");
    }
}

/// A noted frame of `METHOD`, of `size` bytes, leads to the compiled code that called it.
fn is_called_by_compiled_code(vm: &mut Vm, size: u64) {
    method(vm, CALLER, CALLER_CODE, 0x2000, 32);
    let sp = put(vm, NOTED, size, METHOD, CALLER_CODE + 0x11);
    let end = put(vm, sp, 32, CALLER, ELSEWHERE);
    vm.word(end, 0);
    let expected = vec![
        innermost(),
        frame(NOTED, METHOD, 0, QUICK),
        frame(sp, CALLER, CALLER_CODE + 0x11, COMPILED | OUTERMOST),
    ];
    assert_eq!(vm.walk(None), Some((expected, Step::End)), "{size}");
}

#[test]
fn a_native_methods_frame_is_its_codes_or_the_generic_one() {
    for (noted, size) in [(NOTED | 1, GENERIC_JNI), (NOTED, 112)] {
        let mut vm = vm(noted);
        method(&mut vm, METHOD, CODE, 0x80, 112);
        vm.memory.put(METHOD + 4, &0x101u32.to_le_bytes());
        is_called_by_compiled_code(&mut vm, size);
    }
}

#[test]
fn code_that_is_not_the_methods_ends_the_walk() {
    // Before the code, at its start, after its end: the code was replaced since the call.
    for returns in [CODE - 1, CODE, CODE + 0x81] {
        let mut vm = vm(NOTED);
        method(&mut vm, METHOD, CODE, 0x80, 48);
        let sp = put(&mut vm, NOTED, 208, REFS_AND_ARGS, returns);
        let end = put(&mut vm, sp, 48, METHOD, ELSEWHERE);
        vm.word(end, 0);
        assert_eq!(vm.walk(None), Some((vec![innermost()], Step::Torn)));
    }
    // A size that no method has.
    let mut vm = vm(NOTED);
    method(&mut vm, METHOD, CODE, 0x80, 48);
    vm.memory.put(CODE - 0x40, &[0xf3, 0, 0]);
    put(&mut vm, NOTED, 208, REFS_AND_ARGS, CODE + 4);
    vm.word(NOTED + 208, METHOD);
    assert_eq!(vm.walk(None), Some((vec![innermost()], Step::Torn)));
}

#[test]
fn a_note_of_the_innermost_fragment_is_one_frame() {
    let mut vm = vm(0);
    vm.fragment(vm.base_fragment(), NOTED, 0, 0);
    method(&mut vm, METHOD, CODE, 0x80, 48);
    put(&mut vm, NOTED, 208, REFS_AND_ARGS, CODE + 4);
    vm.word(NOTED + 208, METHOD);
    let expected = vec![frame(NOTED, REFS_AND_ARGS, 0, QUICK)];
    assert_eq!(vm.walk(None), Some((expected, Step::End)));
}

#[test]
fn a_proxys_frame_keeps_the_arguments() {
    let mut vm = vm(NOTED);
    vm.memory.put(METHOD, &[0; 64]);
    vm.word(METHOD + u64::from(ENTRY), CODE);
    // The bytes before the VM's stubs.
    vm.memory.put(CODE - 8, &[0xff; 8]);
    is_called_by_compiled_code(&mut vm, 208);
}

#[test]
fn an_interpreters_frame_ends_its_stretch_and_not_the_walk() {
    let mut vm = vm(NOTED);
    method(&mut vm, METHOD, CODE, 0x80, 48);
    // nterp has a header without a CodeInfo.
    method(&mut vm, CALLER, CALLER_CODE, 0x2000, 32);
    vm.memory.put(CALLER_CODE - 8, &0u32.to_le_bytes());
    let outermost = SP + 0x1800;
    vm.fragment(OUTER, NOTED, 0, SP + 0x1700);
    vm.fragment(SP + 0x1700, 0, outermost, 0);
    vm.frame(outermost, 0, 0x5030, 0x9030);
    let sp = put(&mut vm, NOTED, 208, REFS_AND_ARGS, CODE + 0x80);
    let caller = put(&mut vm, sp, 48, METHOD, CALLER_CODE + 0x11);
    vm.word(caller, CALLER);
    let expected = vec![
        innermost(),
        frame(sp, METHOD, CODE + 0x80, COMPILED),
        frame(caller, CALLER, 0, COMPILED),
        frame(outermost, 0x5030, 0x9030, OUTERMOST),
    ];
    assert_eq!(vm.walk(None), Some((expected, Step::End)));
}
