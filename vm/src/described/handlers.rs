//! Finds where each opcode handler advances the bytecode-pc register.
//!
//! A handler advances the register just before it fetches the next handler and jumps to it. The code after that still belongs to the
//! previous instruction. The states are found by following each handler's code from its first instruction.

use varid_instructions::{Decoder, Effect, Flow, Register};
use varid_model::Machine;

/// One handler for each value of a byte.
const OPCODES: usize = 256;

/// Which bytecode instruction the pc register holds, at an address of a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PcRegister {
    /// Either: the address is reached both before and after the register advances, or is not known to be reached.
    #[default]
    Unknown,
    /// The handler's own instruction.
    Current,
    /// The instruction that follows it.
    Next,
}

/// Returns the state of the pc register at each byte of 256 handlers of equal size. Only bytes at which an instruction begins have a
/// meaning. `register` is the pc register's DWARF number. Empty for machines without a decoder.
pub fn pc_register_states(code: &[u8], machine: Machine, register: u8) -> Vec<PcRegister> {
    let handler = code.len() / OPCODES;
    let Some(decoder) = Decoder::of(machine).filter(|_| handler != 0) else {
        return Vec::new();
    };
    code.chunks_exact(handler)
        .flat_map(|code| follow(code, decoder, Register(register)))
        .collect()
}

/// Follows one handler's code.
fn follow(code: &[u8], decoder: Decoder, register: Register) -> Vec<PcRegister> {
    // For each byte: an instruction there is reached before the register advances, and after that.
    let mut reached = vec![(false, false); code.len()];
    let mut todo = vec![(0, false)];
    while let Some((at, after)) = todo.pop() {
        let (Some(rest), Some(seen)) = (code.get(at..), reached.get_mut(at)) else {
            continue;
        };
        let seen = if after { &mut seen.1 } else { &mut seen.0 };
        if std::mem::replace(seen, true) {
            continue;
        }
        let Some(instruction) = decoder.decode(rest, at as u64) else {
            continue;
        };
        let after = after
            || instruction
                .effects
                .iter()
                .any(|effect| advances(effect, register));
        let (goes_on, target) = match instruction.flow {
            Flow::Next | Flow::Call(_) | Flow::CallRegister(_) => (true, None),
            Flow::Jump(target) => (false, Some(target)),
            Flow::Branch(target) => (true, Some(target)),
            Flow::JumpIndirect | Flow::Return | Flow::Trap => (false, None),
        };
        if goes_on {
            todo.push((at.saturating_add(instruction.size.into()), after));
        }
        let target = target.and_then(|target| usize::try_from(target).ok());
        todo.extend(target.map(|target| (target, after)));
    }
    let states = reached.into_iter().map(|reached| match reached {
        (true, false) => PcRegister::Current,
        (false, true) => PcRegister::Next,
        _ => PcRegister::Unknown,
    });
    states.collect()
}

/// Returns true if an effect advances the pc register: by a constant, or by a number of code units.
fn advances(effect: &Effect, register: Register) -> bool {
    match *effect {
        Effect::Move { to, add, .. } => to == register && add != 0,
        Effect::Add { to, .. } | Effect::AddScaled { to, .. } => to == register,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::PcRegister::{Current, Next, Unknown};
    use super::*;

    /// 256 handlers of 32 bytes, the first with this code: for each of its bytes.
    fn first_bytes(machine: Machine, register: u8, code: &[u8]) -> Vec<PcRegister> {
        let mut handlers = vec![0; 32 * OPCODES];
        handlers[..code.len()].copy_from_slice(code);
        let mut found = pc_register_states(&handlers, machine, register);
        assert_eq!(found.len(), handlers.len());
        found.truncate(code.len());
        found
    }

    /// Likewise, for each of its instructions of four bytes.
    fn first(machine: Machine, register: u8, code: &[u32]) -> Vec<PcRegister> {
        let bytes: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
        let found = first_bytes(machine, register, &bytes);
        found.into_iter().step_by(4).collect()
    }

    #[test]
    fn the_instructions_behind_a_move_are_the_next_ones() {
        let code = [
            0x7840_2e97, // ldrh w23, [x20, #2]!
            0x9240_1ef0, // and x16, x23, #0xff
            0x8b10_1f10, // add x16, x24, x16, lsl #7
            0xd61f_0200, // br x16
            0xd503_201f, // nop
        ];
        let expected = [Current, Next, Next, Next, Unknown];
        assert_eq!(first(Machine::Aarch64, 20, &code), expected);
        // Of another register it says nothing.
        assert_eq!(first(Machine::Aarch64, 19, &code)[3], Current);
        let code = [
            0xe1f4_70b2, // ldrh r7, [r4, #2]!
            0xe207_c0ff, // and ip, r7, #255
            0xe088_f38c, // add pc, r8, ip, lsl #7
            0xe320_f000, // nop
        ];
        assert_eq!(
            first(Machine::Arm, 4, &code),
            [Current, Next, Next, Unknown]
        );
    }

    #[test]
    fn a_branch_moves_the_register_by_another_one() {
        let code = [
            0x5400_006a, // b.ge +12
            0x7840_4ed7, // ldrh w23, [x22, #4]!
            0xd61f_0200, // br x16
            0x78c0_22d7, // ldrsh w23, [x22, #2]
            0x8b37_c6d6, // add x22, x22, w23, sxtw #1
            0x7940_02d7, // ldrh w23, [x22]
            0x8b17_06c0, // add x0, x22, x23, lsl #1
            0xd61f_0200, // br x16
        ];
        let expected = [Current, Current, Next, Current, Current, Next, Next, Next];
        assert_eq!(first(Machine::Aarch64, 22, &code), expected);
        // add x22, x22, x23, lsl #1
        let code = [0x8b17_06d6, 0xd61f_0200];
        assert_eq!(first(Machine::Aarch64, 22, &code), [Current, Next]);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn instructions_of_any_size_are_followed() {
        let code = [
            &[0x85, 0xdb][..],                     // test %ebx, %ebx
            &[0x75, 0x0d],                         // jne +13, to vmovsd
            &[0x4d, 0x8d, 0x64, 0x24, 0x02],       // lea 2(%r12), %r12
            &[0x41, 0x0f, 0xb7, 0x1c, 0x24],       // movzwl (%r12), %ebx
            &[0xff, 0xe0],                         // jmp *%rax
            &[0x90],                               // nop: nothing leads here
            &[0xc4, 0xc1, 0x7b, 0x11, 0x04, 0x9f], // vmovsd %xmm0, (%r15,%rbx,4)
            &[0xeb, 0xeb],                         // jmp -21, to lea
        ];
        let found = first_bytes(Machine::X86_64, 12, &code.concat());
        let starts = code.iter().scan(0, |at, instruction| {
            let start = *at;
            *at += instruction.len();
            Some(start)
        });
        let starts: Vec<usize> = starts.collect();
        let at_starts: Vec<PcRegister> = starts.iter().map(|at| found[*at]).collect();
        assert_eq!(
            at_starts,
            [
                Current, Current, Current, Next, Next, Unknown, Current, Current
            ]
        );
        // Between them no instruction begins.
        let others = (0..found.len()).filter(|at| !starts.contains(at));
        assert!(others.map(|at| found[at]).all(|state| state == Unknown));
        // Of another register it says nothing.
        assert_eq!(first_bytes(Machine::X86_64, 13, &code.concat())[9], Current);

        // lea 2(%esi), %esi; movzbl (%esi), %ebx; jmp *%eax
        let code = [0x8d, 0x76, 0x02, 0x0f, 0xb6, 0x1e, 0xff, 0xe0];
        let found = first_bytes(Machine::X86, 6, &code);
        assert_eq!((found[0], found[3], found[6]), (Current, Next, Next));
        // A comparison is no move, and the wrong register none either.
        let code = [0x83, 0xfe, 0x02, 0x8d, 0x76, 0x02, 0xff, 0xe0];
        assert_eq!(first_bytes(Machine::X86, 6, &code)[3], Current);
        assert_eq!(first_bytes(Machine::X86, 2, &code)[6], Current);
    }

    #[test]
    fn code_that_a_handler_comes_back_from_is_followed() {
        let code = [
            0x3500_00a1, // cbnz w1, +20
            0x7840_4e97, // ldrh w23, [x20, #4]!
            0xd61f_0200, // br x16
            0xd503_201f, // nop
            0xd503_201f, // nop
            0x9400_0100, // bl
            0x17ff_fffb, // b -20
        ];
        let expected = [Current, Current, Next, Unknown, Unknown, Current, Current];
        assert_eq!(first(Machine::Aarch64, 20, &code), expected);
        let code = [
            0x1a00_0003, // bne +20
            0xe284_4004, // add r4, r4, #4
            0x0a00_0001, // beq +12
            0xe088_f38c, // add pc, r8, ip, lsl #7
            0xe320_f000, // nop
            0xeb00_0100, // bl
            0xe12f_ff1e, // bx lr
        ];
        let expected = [Current, Current, Next, Next, Unknown, Unknown, Unknown];
        assert_eq!(first(Machine::Arm, 4, &code), expected);
    }

    #[test]
    fn code_that_is_none_says_nothing_wrong() {
        assert!(pc_register_states(&[], Machine::Aarch64, 20).is_empty());
        assert!(pc_register_states(&[0xff; 255], Machine::Aarch64, 20).is_empty());
        // Endless branches in place.
        let code: Vec<u8> = [0x1400_0000u32; 512]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        assert_eq!(
            pc_register_states(&code, Machine::Aarch64, 20)[..2],
            [Current, Unknown]
        );
        assert_eq!(
            pc_register_states(&[0xff; 1024], Machine::X86_64, 12)[0],
            Current
        );
    }
}
