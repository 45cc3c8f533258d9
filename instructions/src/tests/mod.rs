//! What do instructions do that an assembler has encoded? The lists have their bytes, which `assemble.sh` writes, their text and their effects.
//!
//! An effect is written as an assignment, such as `r9 = [r19+200]:8` for a load of eight bytes. `t` is the operand that no register keeps, `_`
//! a register that is not followed, `?` another value, `~` a scaled register, `-` no effect.

use crate::{Base, Decoder, Effect, Flow, Instruction, OPERAND, Place, Register, Source};
use varid_model::Machine;

/// Where the instructions are.
const ADDRESS: u64 = 0x1000;

/// Decodes each instruction of a list, and compares it with what the list says.
fn check(machine: Machine, list: &str) {
    let decoder = Decoder::of(machine).unwrap();
    for line in list.lines() {
        let mut columns = line.split('|').map(str::trim);
        let mut column = || columns.next().unwrap();
        let (bytes, text, expected) = (column(), column(), column());
        let digits = bytes.as_bytes().chunks(2);
        let bytes = digits.map(|byte| u8::from_str_radix(str::from_utf8(byte).unwrap(), 16));
        let bytes: Vec<u8> = bytes.map(Result::unwrap).collect();
        let instruction = decoder.decode(&bytes, ADDRESS).unwrap();
        assert_eq!(shown(&instruction), expected, "{text}");
        assert_eq!(usize::from(instruction.size), bytes.len(), "{text}");
    }
}

fn shown(instruction: &Instruction) -> String {
    let mut parts: Vec<String> = instruction.effects.iter().map(effect).collect();
    parts.extend(flow(instruction.flow));
    match parts.is_empty() {
        true => "-".to_owned(),
        false => parts.join("; "),
    }
}

fn register(register: Register) -> String {
    match register {
        OPERAND => "t".to_owned(),
        Register(number) => format!("r{number}"),
    }
}

fn place(place: Place) -> String {
    let base = match place.base {
        Base::Register(base) => register(base),
        Base::Absolute(address) => format!("{address:#x}"),
        Base::ThreadPointer => "tp".to_owned(),
        Base::Gs => "gs".to_owned(),
    };
    let index = place.index.map(|index| format!("+{}", register(index)));
    format!("[{base}{:+}{}]", place.offset, index.unwrap_or_default())
}

fn effect(effect: &Effect) -> String {
    match *effect {
        Effect::Load { to, from, size } => {
            let to = to.map_or("_".to_owned(), register);
            format!("{to} = {}:{size}", place(from))
        }
        Effect::Store { to, from, size } => {
            let from = match from {
                Source::Register(from) => register(from),
                Source::Constant(value) => format!("{value:#x}"),
                Source::Other => "?".to_owned(),
            };
            format!("{}:{size} = {from}", place(to))
        }
        Effect::Move { to, from, add } => format!("{} = {}{add:+}", register(to), register(from)),
        Effect::Set { to, value } => format!("{} = {value:#x}", register(to)),
        Effect::Insert { to, value, mask } => {
            format!("{} = {value:#x} in {mask:#x}", register(to))
        }
        Effect::Add { to, left, right } => {
            let [to, left, right] = [to, left, right].map(register);
            format!("{to} = {left}+{right}")
        }
        Effect::AddScaled { to, left } => format!("{} = {}+~", register(to), register(left)),
        Effect::Subtract { to, left, right } => {
            let [to, left, right] = [to, left, right].map(register);
            format!("{to} = {left}-{right}")
        }
        Effect::Test { register: of, mask } => format!("test {} & {mask:#x}", register(of)),
        Effect::ThreadPointer { to } => format!("{} = tp", register(to)),
        Effect::Overwrite(to) => format!("{} = ?", register(to)),
    }
}

fn flow(flow: Flow) -> Option<String> {
    Some(match flow {
        Flow::Next => return None,
        Flow::Jump(target) => format!("jump {target:#x}"),
        Flow::Branch(target) => format!("branch {target:#x}"),
        Flow::Call(target) => format!("call {target:#x}"),
        Flow::CallRegister(target) => format!("call {}", register(target)),
        Flow::JumpIndirect => "jump".to_owned(),
        Flow::Return => "return".to_owned(),
        Flow::Trap => "trap".to_owned(),
    })
}

#[test]
fn instructions_of_aarch64_do_what_the_list_says() {
    check(Machine::Aarch64, include_str!("aarch64.lst"));
}

#[test]
fn instructions_of_arm_do_what_the_list_says() {
    check(Machine::Arm, include_str!("arm.lst"));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn instructions_of_x86_64_do_what_the_list_says() {
    check(Machine::X86_64, include_str!("x86_64.lst"));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn pushes_and_pops_of_x86_64_are_known() {
    let decoder = Decoder::of(Machine::X86_64).unwrap();
    let sp = decoder.stack_pointer();
    let of = |code: &[u8]| decoder.decode(code, ADDRESS).unwrap();
    let [push, pop] = [&[0x41, 0x54][..], &[0x41, 0x5c]].map(of); // push %r12, pop %r12
    assert_eq!(
        (push.pushed(sp), push.popped(sp)),
        (Some(Register(12)), None)
    );
    assert_eq!((pop.pushed(sp), pop.popped(sp)), (None, Some(Register(12))));
    let of_memory = of(&[0xff, 0x77, 0x08]); // push 8(%rdi)
    assert_eq!((of_memory.pushed(sp), of_memory.popped(sp)), (None, None));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn instructions_of_32_bit_x86_use_its_registers_and_width() {
    let decoder = Decoder::of(Machine::X86).unwrap();
    let of = |code: &[u8]| shown(&decoder.decode(code, 0xffff_fff0).unwrap());
    assert_eq!(of(&[0x8d, 0x76, 0x02]), "r6 = r6+2"); // lea 2(%esi), %esi
    assert_eq!(of(&[0x8b, 0x46, 0xfc]), "r0 = [r6-4]:4"); // mov -4(%esi), %eax
    assert_eq!(of(&[0x55]), "r4 = r4-4; [r4+0]:4 = r5"); // push %ebp
    assert_eq!(of(&[0xeb, 0x20]), "jump 0x12"); // jmp, over the end of the address space
    assert_eq!(decoder.stack_pointer(), Register(4));
}

#[test]
fn only_a_load_or_store_of_a_word_that_moves_the_stack_pointer_is_a_pop_or_push() {
    let decoder = Decoder::of(Machine::Aarch64).unwrap();
    let sp = decoder.stack_pointer();
    let of = |word: u32| decoder.decode(&word.to_le_bytes(), ADDRESS).unwrap();
    let popped = |word| of(word).popped(sp);
    assert_eq!(popped(0xf840_87fe), Some(Register(30))); // ldr x30, [sp], #8
    assert_eq!(popped(0xf841_07fe), None); // ldr x30, [sp], #16
    assert_eq!(popped(0xa8c1_7bfd), None); // ldp x29, x30, [sp], #16
    assert_eq!(popped(0xf940_03fe), None); // ldr x30, [sp]
    // A push stores behind the stack pointer that it has moved.
    assert_eq!(of(0xf81f_8ffe).pushed(sp), None); // str x30, [sp, #-8]!
}

#[test]
fn a_sweep_goes_over_bytes_that_are_no_instruction() {
    let decoder = Decoder::of(Machine::Aarch64).unwrap();
    let words: [u32; 3] = [0xd503_201f, 0, 0xd65f_03c0]; // nop; a constant; ret
    let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    // The last word is cut.
    let offsets = |code: &[u8]| -> Vec<usize> {
        decoder
            .sweep(code, ADDRESS)
            .map(|(offset, _)| offset)
            .collect()
    };
    assert_eq!(offsets(&code), [0, 8]);
    assert_eq!(offsets(&code[..11]), [0]);
    assert!(decoder.decode(&[], ADDRESS).is_none());
}
