//! Do the rows of a function say what its assembly does?

use super::*;
use object::{Object, ObjectSymbol};

/// A prologue, a body whose CFA is a word's and which has a bytecode pc in r12, a return.
const INTERPRETER: &str = r#"
    .text
    .globl interpreter
    .type interpreter, @function
interpreter:
    .cfi_startproc
    push %r15
    .cfi_def_cfa_offset 16
    .cfi_offset 15, -16
    push %r12
    .cfi_def_cfa_offset 24
    .cfi_offset 12, -24
    nop
    .cfi_escape 0x0f, 6, 0x92, 9, 0x78, 0x06, 0x23, 0x58
    nop
    .cfi_escape 0x16, 5, 9, 0x0c, 0x44, 0x45, 0x58, 0x31, 0x13, 0x92, 12, 0
    nop
    .cfi_escape 0x0f, 6, 0x92, 15, 0x78, 0x06, 0x23, 0x58
    pop %r12
    .cfi_def_cfa 7, 16
    .cfi_restore 12
    pop %r15
    .cfi_def_cfa 7, 8
    .cfi_restore 15
    ret
    .cfi_endproc
    .size interpreter, . - interpreter
"#;

#[test]
fn each_row_says_where_the_cfa_is_what_is_saved_and_whether_there_is_a_pc() {
    let compiled = Compiled::new("rows.s", INTERPRETER);
    let bytes = std::fs::read(compiled.path()).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let symbol = file
        .dynamic_symbols()
        .find(|symbol| symbol.name() == Ok("interpreter"))
        .unwrap();
    let (start, size) = (Address::new(symbol.address()), symbol.size());
    let rows = Module::new(&file).rows(start..start.wrapping_add(size));
    let found: Vec<_> = rows
        .iter()
        .map(|row| {
            let saved = [15, 12].map(|register| row.caller_register(register));
            let at = row.start.offset_from(start).unwrap();
            (at, row.cfa().unwrap(), saved, row.bytecode_register())
        })
        .collect();
    let (is, at) = (CallerRegister::Unchanged, CallerRegister::At);
    let by = |register, bias| CfaAt {
        register,
        word: None,
        bias,
    };
    let by_word = |register| CfaAt {
        register,
        word: Some(-8),
        bias: 88,
    };
    let saved = [at(-16), at(-24)];
    assert_eq!(
        found,
        [
            (0, by(7, 8), [is, is], None),
            (2, by(7, 16), [at(-16), is], None),
            (4, by(7, 24), saved, None),
            (5, by_word(9), saved, None),
            (6, by_word(9), saved, Some(12)),
            (7, by_word(15), saved, Some(12)),
            // Its r12 is the caller's again: what the mark says holds no more.
            (9, by(7, 16), [at(-16), is], None),
            (11, by(7, 8), [is, is], None),
        ]
    );
    assert!(
        rows.iter()
            .all(|row| row.return_address() == CallerRegister::At(-8))
    );
    // Behind it there is no function.
    let behind = start.wrapping_add(size);
    assert!(Module::new(&file).rows(behind..behind).is_empty());
}

/// ART's `art_quick_read_barrier_mark_reg00` in short: the second return is reached by a jump, with a word pushed, and its rows do not say so.
const RETURNS_TWICE: &str = r#"
    .globl mark
    .type mark, @function
mark:
    .cfi_startproc
    push %rax
    .cfi_def_cfa_offset 16
    .cfi_offset 0, -16
    test %eax, %eax
    je 1f
    add $8, %rsp
    .cfi_def_cfa_offset 8
    ret
1:
    shl $3, %eax
    add $8, %rsp
    .cfi_def_cfa_offset 0
    ret
    .cfi_endproc
    .size mark, . - mark
"#;

#[test]
fn a_second_return_of_arts_assembly_has_the_caller_that_the_first_one_has() {
    const BASE: u64 = 0x40_0000;
    const SP: u64 = 0x7fff_0000_0000;
    const CALLER: u64 = 0x7000_0000;
    /// Offsets of its instructions, and whether the word is pushed there.
    const INSTRUCTIONS: [(u64, bool); 8] = [
        (0, false),
        (1, true),
        (3, true),
        (5, true),
        (9, false),
        (10, true),
        (13, true),
        (17, false),
    ];
    let callers = |source: &str| -> Vec<bool> {
        let compiled = Compiled::new("returns.s", source);
        let bytes = std::fs::read(compiled.path()).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let mark = file
            .dynamic_symbols()
            .find(|symbol| symbol.name() == Ok("mark"));
        let mark = mark.unwrap().address();
        let module = RefCell::new(Module::new(&file));
        let is_caller = |(at, is_pushed): &(u64, bool)| {
            let mut regs = Regs::unknown(Machine::X86_64);
            regs.set_frame(BASE + mark + at, SP, 0);
            // The word that is pushed is zero, as a return address that ends a stack is.
            let mut stack = vec![0; 64];
            let returns = if *is_pushed { 8 } else { 0 };
            stack[returns..returns + 8].copy_from_slice(&CALLER.to_le_bytes());
            let stack = unwind(&record(regs, SP, stack), None, |address| {
                match address.checked_sub(BASE).filter(|own| *own < 1 << 20) {
                    Some(own) => CodeAt::Module(module.borrow_mut(), own),
                    None => CodeAt::Unknown,
                }
            });
            stack.frames.get(1).map(ip) == Some(CALLER)
        };
        INSTRUCTIONS.iter().map(is_caller).collect()
    };
    assert_eq!(callers(&[INTERPRETER, RETURNS_TWICE].concat()), [true; 8]);
    // Other libraries' rows are believed.
    let believed = [true, true, true, true, true, false, false, false];
    assert_eq!(callers(&[".text", RETURNS_TWICE].concat()), believed);
}
