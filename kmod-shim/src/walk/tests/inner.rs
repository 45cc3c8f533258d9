//! A walk finds the callers of a leaf in compiled code, and nothing if that is not certain.

use super::sized::{
    CALLER, CALLER_CODE, CODE, ELSEWHERE, METHOD, NOTED, OUTER, method, put, vm as sized,
};
use super::*;
use crate::abi::frame_flags::COMPILED;

const X86_64: u16 = 62;
const AARCH64: u16 = 183;
/// An offset in the code of the methods, after their prologues.
const BEHIND: u64 = 0x60;
/// An offset behind the code of the first method.
const TRAMPOLINE: u64 = 0x90;
const RETURN: u64 = CALLER_CODE + 0x11;
const SIZE: u64 = 48;
const CALLER_SIZE: u64 = 64;
const RET: u32 = 0xd65f_03c0;

/// A thread whose innermost fragment has only an outdated note.
fn vm(machine: u16) -> Vm {
    let mut vm = sized(0);
    vm.layout.machine = machine;
    (vm.layout.rules[1].code_start, vm.layout.rules[1].code_end) = (CODE, CALLER_CODE + 0x2000);
    vm.fragment(vm.base_fragment(), NOTED, 0, OUTER);
    vm.fragment(OUTER, 0, OUTER + 0x400, 0);
    vm.frame(OUTER + 0x400, 0, 0x5030, 0x9030);
    vm.memory.put(CODE, &[0; 0x80]);
    method(&mut vm, METHOD, CODE, 0x80, SIZE as u32);
    method(&mut vm, CALLER, CALLER_CODE, 0x2000, CALLER_SIZE as u32);
    vm
}

/// Writes the frame of the caller, which native code has called.
fn put_caller(vm: &mut Vm, at: u64) {
    let end = put(vm, at, CALLER_SIZE, CALLER, ELSEWHERE);
    vm.word(end, 0);
}

fn caller(at: u64, returns: u64) -> ManagedFrame {
    frame(at, CALLER, returns, COMPILED | OUTERMOST)
}

fn outer() -> ManagedFrame {
    frame(OUTER + 0x400, 0x5030, 0x9030, OUTERMOST)
}

/// The result if the innermost frames are not known: the noted one.
fn not_walked(vm: &Vm) -> Vec<ManagedFrame> {
    let mut word = [0; 8];
    vm.memory.read(NOTED, &mut word);
    vec![frame(NOTED, u64::from_le_bytes(word), 0, QUICK), outer()]
}

/// The frames of a thread that was interrupted at an instruction of `METHOD`.
fn walk(vm: &Vm, at: u64, link: u64) -> Vec<ManagedFrame> {
    let leaf = Leaf {
        ip: CODE + at,
        sp: SP,
        registers: None,
        state: None,
        quick: (0, 0),
        link,
    };
    let read = |address, to: &mut [u8]| vm.memory.read(address, to);
    let mut walk = Walk::from_leaf(&vm.layout, BASE, TID, &leaf, read).unwrap();
    let mut frames = Vec::new();
    loop {
        match walk.step() {
            Step::Frame(frame) => frames.push(frame),
            Step::Dropped => frames.clear(),
            end => {
                assert_eq!(end, Step::End);
                return frames;
            }
        }
    }
}

#[test]
fn a_complete_frame_leads_to_its_callers() {
    for machine in [X86_64, AARCH64] {
        let mut vm = vm(machine);
        let at = put(&mut vm, SP, SIZE, METHOD, RETURN);
        put_caller(&mut vm, at);
        // The last call has returned there, or nothing has been called yet.
        for link in [CODE + BEHIND - 4, RETURN] {
            let found = walk(&vm, BEHIND, link);
            assert_eq!(found, [caller(at, RETURN), outer()], "{machine}");
        }
    }
}

#[test]
fn a_leaf_that_native_code_has_called_has_no_callers() {
    for machine in [X86_64, AARCH64] {
        let mut vm = vm(machine);
        let end = put(&mut vm, SP, SIZE, METHOD, ELSEWHERE);
        vm.word(end, 0);
        assert_eq!(walk(&vm, BEHIND, ELSEWHERE), [outer()], "{machine}");
    }
}

#[test]
fn without_a_frame_the_return_address_is_on_the_stack_or_in_its_register() {
    // A trampoline of an oat file is the code of no method.
    for at in [4, TRAMPOLINE] {
        let mut vm = vm(X86_64);
        vm.word(SP, RETURN);
        put_caller(&mut vm, SP + 8);
        assert_eq!(walk(&vm, at, 0), [caller(SP + 8, RETURN), outer()]);
        let mut vm = self::vm(AARCH64);
        put_caller(&mut vm, SP);
        assert_eq!(walk(&vm, at, RETURN), [caller(SP, RETURN), outer()]);
    }
    let mut vm = self::vm(AARCH64);
    put_caller(&mut vm, SP);
    // The link register does not point into the code of the method at the stack pointer.
    assert_eq!(walk(&vm, 4, ELSEWHERE), not_walked(&vm));
}

#[test]
fn before_the_return_address_is_saved_nothing_is_known() {
    let mut vm = vm(AARCH64);
    let at = put(&mut vm, SP, SIZE, METHOD, RETURN);
    put_caller(&mut vm, at);
    assert_eq!(walk(&vm, 12, RETURN), [caller(at, RETURN), outer()]);
    put(&mut vm, SP, SIZE, METHOD, RETURN + 4);
    assert_eq!(walk(&vm, 12, RETURN), not_walked(&vm));
}

#[test]
fn a_method_that_calls_itself_is_left_at_its_return_and_not_known_before_its_frame() {
    let mut vm = vm(AARCH64);
    let at = put(&mut vm, SP, SIZE, METHOD, RETURN);
    put_caller(&mut vm, at);
    let link = CODE + 0x40;
    assert_eq!(walk(&vm, 12, link), not_walked(&vm));
    vm.memory.put(CODE + BEHIND, &RET.to_le_bytes());
    let own = frame(SP, METHOD, link, COMPILED);
    let expected = [own, caller(at, RETURN), outer()];
    assert_eq!(walk(&vm, BEHIND, link), expected);
}

#[test]
fn a_native_methods_stub_moves_its_stack_pointer() {
    for machine in [X86_64, AARCH64] {
        let mut vm = vm(machine);
        vm.memory.put(METHOD + 4, &0x101u32.to_le_bytes());
        let at = put(&mut vm, SP, SIZE, METHOD, RETURN);
        put_caller(&mut vm, at);
        let found = walk(&vm, BEHIND, CODE + 0x40);
        assert_eq!(found, not_walked(&vm), "{machine}");
    }
}

#[test]
fn frames_that_lead_nowhere_are_dropped() {
    for returns in [ELSEWHERE, CALLER_CODE, CALLER_CODE + 0x2001] {
        let mut vm = vm(X86_64);
        let at = put(&mut vm, SP, SIZE, METHOD, CODE + 0x40);
        let next = put(&mut vm, at, SIZE, METHOD, returns);
        put_caller(&mut vm, next);
        assert_eq!(walk(&vm, BEHIND, 0), not_walked(&vm), "{returns:#x}");
    }
    // An interpreter's frame is left to the unwinder.
    let mut vm = vm(X86_64);
    vm.memory.put(CALLER_CODE - 8, &0u32.to_le_bytes());
    let at = put(&mut vm, SP, SIZE, METHOD, CODE + 0x40);
    let next = put(&mut vm, at, SIZE, METHOD, RETURN);
    put_caller(&mut vm, next);
    assert_eq!(walk(&vm, BEHIND, 0), not_walked(&vm));
}
