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
