//! Does unwinding end where a process begins, in code that no unwind information covers?

use super::*;
use object::{Object, ObjectSymbol};

const LINKER: &str = r#"
    .text
    .globl _start
    .type _start, @function
_start:
    mov %rsp, %rdi
    call described
    jmp *%r12
    .size _start, . - _start

    .globl described
    .type described, @function
described:
    .cfi_startproc
    nop
    ret
    .cfi_endproc
    .size described, . - described

    .skip 256
    .globl elsewhere
    .type elsewhere, @function
elsewhere:
    ret
    .size elsewhere, . - elsewhere

    .skip 256
calls_main:
    call elsewhere
    hlt
    .globl __libc_start_main
    .type __libc_start_main, @function
__libc_start_main:
    jmp calls_main
    .size __libc_start_main, . - __libc_start_main
"#;

#[test]
fn nobody_has_called_what_is_at_the_entry_point() {
    let compiled = Compiled::new("entry.s", LINKER);
    let bytes = std::fs::read(compiled.path()).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let mut module = Module::new(&file);
    let mut rule_at = |name: &str, distance| {
        let mut symbols = file.dynamic_symbols();
        let symbol = symbols.find(|symbol| symbol.name() == Ok(name)).unwrap();
        module.rule(Address::new(symbol.address().wrapping_add_signed(distance)))
    };
    // musl's code that calls main is not exported, and lies before what is.
    let main = "__libc_start_main";
    for (name, distance) in [("_start", 0), ("_start", 7), (main, 0), (main, -2)] {
        let rule = rule_at(name, distance);
        assert!(matches!(rule, CodeRule::Rule(rule) if rule.is_outermost()));
    }
    let described = rule_at("described", 0);
    assert!(matches!(described, CodeRule::Rule(rule) if !rule.is_outermost()));
    assert!(matches!(rule_at("elsewhere", 0), CodeRule::Unknown));
}

/// A file of Go has no unwind information.
const GO: &str = r#"
    .section .gopclntab, "a"
    .byte 0
    .text
    .globl goexit
    .type goexit, @function
goexit:
    nop
    call goexit
    .size goexit, . - goexit
"#;

#[test]
fn a_goroutine_begins_where_its_frame_pointer_is_zero() {
    for (name, content, ends) in [("go.s", GO, true), ("entry.s", LINKER, false)] {
        let compiled = Compiled::new(name, content);
        let bytes = std::fs::read(compiled.path()).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let mut module = Module::new(&file);
        let symbol = if ends { "goexit" } else { "elsewhere" };
        let mut symbols = file.dynamic_symbols();
        let symbol = symbols.find(|found| found.name() == Ok(symbol)).unwrap();
        let own = Address::new(symbol.address());
        let mut is_outermost = |address: fn(Address) -> FrameAddress, fp| {
            let mut regs = Regs::unknown(Machine::X86_64);
            regs.set_frame(own.get(), 0x7000, fp);
            let frame = NativeFrame {
                address: address(own),
                sp: Address::new(0x7000),
                regs,
            };
            let rule = module.rule_of_frame(own, &frame);
            matches!(rule, CodeRule::Rule(rule) if rule.is_outermost())
        };
        assert_eq!(is_outermost(FrameAddress::Return, 0), ends);
        assert!(!is_outermost(FrameAddress::Return, 0x7010));
        // What it has called, and what it has kept of its caller's, is not known yet.
        assert!(!is_outermost(FrameAddress::Instruction, 0));
    }
}
