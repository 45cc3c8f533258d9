//! Finds where each opcode handler advances the bytecode-pc register.
//!
//! A handler advances the register just before it fetches the next handler and jumps to it. The code after that still belongs to the
//! previous instruction. The states are found by following each handler's code from its first instruction.

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

/// The relevant properties of a machine's instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Instruction {
    /// Its size in bytes.
    size: usize,
    /// It advances the pc register.
    moves: bool,
    /// The distance of a possible jump, in bytes from its own first byte.
    branch: Option<i64>,
    /// Execution may continue with the next instruction.
    goes_on: bool,
}

/// Returns the state of the pc register at each byte of 256 handlers of equal size. Only bytes at which an instruction begins have a
/// meaning. `register` is the pc register's DWARF number. Empty for machines without a decoder here.
pub fn pc_register_states(code: &[u8], machine: Machine, register: u8) -> Vec<PcRegister> {
    let handler = code.len() / OPCODES;
    if handler == 0 {
        return Vec::new();
    }
    let handlers = code.chunks_exact(handler);
    match machine {
        Machine::Aarch64 => handlers
            .flat_map(|code| follow(code, |code| aarch64(code, register.into())))
            .collect(),
        Machine::Arm => handlers
            .flat_map(|code| follow(code, |code| arm(code, register.into())))
            .collect(),
        #[cfg(target_arch = "x86_64")]
        Machine::X86_64 | Machine::X86 => {
            let Some(pc) = x86::PcDecoder::new(machine, register) else {
                return Vec::new();
            };
            handlers
                .flat_map(|code| follow(code, |code| pc.instruction(code)))
                .collect()
        }
        #[cfg(not(target_arch = "x86_64"))]
        Machine::X86_64 | Machine::X86 => Vec::new(),
    }
}

/// Follows one handler's code. `decode` decodes the first instruction of some bytes.
fn follow(code: &[u8], decode: impl Fn(&[u8]) -> Option<Instruction>) -> Vec<PcRegister> {
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
        let Some(instruction) = decode(rest) else {
            continue;
        };
        let after = after || instruction.moves;
        if instruction.goes_on {
            todo.push((at.saturating_add(instruction.size), after));
        }
        let target = instruction
            .branch
            .and_then(|distance| i64::try_from(at).ok()?.checked_add(distance))
            .and_then(|target| usize::try_from(target).ok());
        todo.extend(target.map(|target| (target, after)));
    }
    let states = reached.into_iter().map(|reached| match reached {
        (true, false) => PcRegister::Current,
        (false, true) => PcRegister::Next,
        _ => PcRegister::Unknown,
    });
    states.collect()
}

/// Returns the first word of code, on a machine whose instructions all have four bytes.
fn word(code: &[u8]) -> Option<u32> {
    code.first_chunk().map(|word| u32::from_le_bytes(*word))
}

/// Returns `bits` bits from bit `low` on, sign-extended: a number of words.
fn distance(word: u32, low: u32, bits: u32) -> i64 {
    let up = 32u32.saturating_sub(low).saturating_sub(bits);
    let value = word.wrapping_shl(up).cast_signed();
    value.wrapping_shr(32u32.saturating_sub(bits)).into()
}

/// AArch64 (Arm Architecture Reference Manual, C4.1).
fn aarch64(code: &[u8], register: u32) -> Option<Instruction> {
    let word = word(code)?;
    // LDRH (immediate), pre-index, from the register; ADD to it: immediate, or shifted or extended register.
    let moves = word & 0xffe0_0c00 == 0x7840_0c00 && word >> 5 & 31 == register
        || matches!(word & 0xff00_0000, 0x9100_0000 | 0x8b00_0000) && word & 31 == register;
    let (branch, goes_on) = match word {
        _ if word & 0xfc00_0000 == 0x1400_0000 => (Some(distance(word, 0, 26)), false), // B
        _ if word & 0xff00_0010 == 0x5400_0000 => (Some(distance(word, 5, 19)), true),  // B.cond
        _ if word & 0x7e00_0000 == 0x3400_0000 => (Some(distance(word, 5, 19)), true),  // CBZ, CBNZ
        _ if word & 0x7e00_0000 == 0x3600_0000 => (Some(distance(word, 5, 14)), true),  // TBZ, TBNZ
        _ if word & 0xff9f_fc1f == 0xd61f_0000 => (None, word & 0x0060_0000 == 0x0020_0000), // BR, RET; BLR goes on
        _ => (None, true),
    };
    Some(Instruction {
        size: 4,
        moves,
        branch: branch.map(|words| words.saturating_mul(4)),
        goes_on,
    })
}

/// ARM, not Thumb (ARM DDI 0406, A5).
fn arm(code: &[u8], register: u32) -> Option<Instruction> {
    const PC: u32 = 15;
    let word = word(code)?;
    let always = word >> 28 == 14;
    let to = word >> 12 & 15;
    // LDRH (immediate), pre-index, from the register; ADD (immediate) to it.
    let moves = word & 0x0f70_00f0 == 0x0170_00b0 && word >> 16 & 15 == register
        || word & 0x0fe0_0000 == 0x0280_0000 && to == register;
    let (branch, leaves) = match word {
        // B: the pc is two instructions ahead.
        _ if word & 0x0f00_0000 == 0x0a00_0000 => {
            (Some(distance(word, 0, 24).saturating_add(2)), true)
        }
        _ if word & 0x0fff_fff0 == 0x012f_ff10 => (None, true), // BX
        _ if word & 0x0c00_0000 == 0 && to == PC => (None, word & 0x0190_0000 != 0x0110_0000), // pc := …; no comparison
        _ if word & 0x0c10_0000 == 0x0410_0000 && to == PC => (None, true), // LDR pc
        _ if word & 0x0e10_8000 == 0x0810_8000 => (None, true),             // LDM with pc
        _ => (None, false),
    };
    Some(Instruction {
        size: 4,
        moves,
        branch: branch.map(|words| words.saturating_mul(4)),
        goes_on: !(leaves && always),
    })
}

/// x86, 32-bit and 64-bit. Only an x86-64 build of varid has this decoder.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Instruction, Machine};
    use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic, OpKind, Register};

    /// The register of the bytecode pc.
    pub struct PcDecoder {
        bits: u32,
        register: Register,
    }

    impl PcDecoder {
        /// Selects the register by its DWARF number (System V ABI, figures 3.36 and 2.14).
        pub fn new(machine: Machine, number: u8) -> Option<Self> {
            use Register::*;
            const BITS_64: [Register; 16] = [
                RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8, R9, R10, R11, R12, R13, R14, R15,
            ];
            const BITS_32: [Register; 8] = [EAX, ECX, EDX, EBX, ESP, EBP, ESI, EDI];
            let (bits, registers) = match machine {
                Machine::X86 => (32, &BITS_32[..]),
                _ => (64, &BITS_64[..]),
            };
            let register = *registers.get(usize::from(number))?;
            Some(Self { bits, register })
        }

        /// Decodes the first instruction of some code.
        pub fn instruction(&self, code: &[u8]) -> Option<Instruction> {
            let mut decoder = Decoder::new(self.bits, code, DecoderOptions::NONE);
            let found = decoder.decode();
            if found.is_invalid() {
                return None;
            }
            let moves = matches!(found.mnemonic(), Mnemonic::Lea | Mnemonic::Add)
                && found.op0_kind() == OpKind::Register
                && found.op0_register() == self.register;
            let (branches, goes_on) = match found.flow_control() {
                FlowControl::UnconditionalBranch => (true, false),
                FlowControl::ConditionalBranch => (true, true),
                FlowControl::IndirectBranch | FlowControl::Return | FlowControl::Exception => {
                    (false, false)
                }
                _ => (false, true),
            };
            // The code is decoded at address 0. The target is cut to the machine's address width.
            let target = found.near_branch_target();
            let distance = match self.bits {
                32 => i64::from(target as u32 as i32),
                _ => target as i64,
            };
            Some(Instruction {
                size: found.len(),
                moves,
                branch: branches.then_some(distance),
                goes_on,
            })
        }
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
        assert!(pc_register_states(&[0; 4096], Machine::X86_64, 16).is_empty());

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
