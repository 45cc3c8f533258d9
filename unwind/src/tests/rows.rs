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
