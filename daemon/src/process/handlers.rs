//! Where in an interpreter's handlers has the register of the bytecode pc been moved on to the next instruction?
//!
//! A handler moves it just before it fetches and jumps to the next handler; what is executed behind that still belongs to
//! the instruction before. Found by following each handler's code from its first instruction, on
//! machines whose instructions all have four bytes.

use varid_shim::Machine;

/// Bytes of an instruction.
const SIZE: usize = 4;
/// One handler for each value of a byte.
const OPCODES: usize = 256;

/// What the code at an address says of the register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Moved {
    /// It is executed both before and after, or it is not known how it is reached.
    #[default]
    Unknown,
    /// The register is at the handler's own instruction.
    No,
    /// The register is at an instruction that comes next.
    Yes,
}

/// What an instruction does, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Effect {
    /// It moves the register on.
    moves: bool,
    /// It may jump so far: instructions from itself.
    branch: Option<i64>,
    /// It may be followed by the one behind it.
    goes_on: bool,
}

/// For each instruction of 256 handlers of equal size; `register` is the pc's DWARF number. Empty for other machines' code.
pub fn moved(code: &[u8], machine: Machine, register: u8) -> Vec<Moved> {
    let effect: fn(u32, u32) -> Effect = match machine {
        Machine::Aarch64 => aarch64,
        Machine::Arm => arm,
        Machine::X86_64 | Machine::X86 => return Vec::new(),
    };
    let handler = code.len() / SIZE / OPCODES;
    if handler == 0 {
        return Vec::new();
    }
    let words = code.chunks_exact(SIZE).map(|word| match word {
        [a, b, c, d] => u32::from_le_bytes([*a, *b, *c, *d]),
        _ => 0,
    });
    let effects: Vec<Effect> = words.map(|word| effect(word, register.into())).collect();
    effects.chunks_exact(handler).flat_map(follow).collect()
}

/// Follows one handler's code.
fn follow(effects: &[Effect]) -> Vec<Moved> {
    // For each instruction: reached before the move, reached after it.
    let mut reached = vec![(false, false); effects.len()];
    let mut todo = vec![(0, false)];
    while let Some((at, after)) = todo.pop() {
        let (Some(effect), Some(seen)) = (effects.get(at), reached.get_mut(at)) else {
            continue;
        };
        let seen = if after { &mut seen.1 } else { &mut seen.0 };
        if std::mem::replace(seen, true) {
            continue;
        }
        let after = after || effect.moves;
        if effect.goes_on {
            todo.push((at.saturating_add(1), after));
        }
        let target = effect
            .branch
            .and_then(|distance| i64::try_from(at).ok()?.checked_add(distance))
            .and_then(|target| usize::try_from(target).ok());
        todo.extend(target.map(|target| (target, after)));
    }
    let moved = reached.into_iter().map(|reached| match reached {
        (true, false) => Moved::No,
        (false, true) => Moved::Yes,
        _ => Moved::Unknown,
    });
    moved.collect()
}

/// `bits` bits from bit `low` on, sign-extended: a number of instructions.
fn distance(word: u32, low: u32, bits: u32) -> i64 {
    let up = 32u32.saturating_sub(low).saturating_sub(bits);
    let value = word.wrapping_shl(up).cast_signed();
    value.wrapping_shr(32u32.saturating_sub(bits)).into()
}

/// AArch64 (Arm Architecture Reference Manual, C4.1).
fn aarch64(word: u32, register: u32) -> Effect {
    // LDRH (immediate), pre-index, from the register; ADD (immediate) to it.
    let moves = word & 0xffe0_0c00 == 0x7840_0c00 && word >> 5 & 31 == register
        || word & 0xff00_0000 == 0x9100_0000 && word & 31 == register;
    let (branch, goes_on) = match word {
        _ if word & 0xfc00_0000 == 0x1400_0000 => (Some(distance(word, 0, 26)), false), // B
        _ if word & 0xff00_0010 == 0x5400_0000 => (Some(distance(word, 5, 19)), true),  // B.cond
        _ if word & 0x7e00_0000 == 0x3400_0000 => (Some(distance(word, 5, 19)), true),  // CBZ, CBNZ
        _ if word & 0x7e00_0000 == 0x3600_0000 => (Some(distance(word, 5, 14)), true),  // TBZ, TBNZ
        _ if word & 0xff9f_fc1f == 0xd61f_0000 => (None, word & 0x0060_0000 == 0x0020_0000), // BR, RET; BLR goes on
        _ => (None, true),
    };
    Effect {
        moves,
        branch,
        goes_on,
    }
}

/// ARM, not Thumb (ARM DDI 0406, A5).
fn arm(word: u32, register: u32) -> Effect {
    const PC: u32 = 15;
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
    Effect {
        moves,
        branch,
        goes_on: !(leaves && always),
    }
}

#[cfg(test)]
mod tests {
    use super::Moved::{No, Unknown, Yes};
    use super::*;

    /// 256 handlers of eight instructions, the first with this code.
    fn first(machine: Machine, register: u8, code: &[u32]) -> Vec<Moved> {
        let mut words = vec![0; 8 * OPCODES];
        words[..code.len()].copy_from_slice(code);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut found = moved(&bytes, machine, register);
        assert_eq!(found.len(), words.len());
        found.truncate(code.len());
        found
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
        let expected = [No, Yes, Yes, Yes, Unknown];
        assert_eq!(first(Machine::Aarch64, 20, &code), expected);
        // Of another register it says nothing.
        assert_eq!(first(Machine::Aarch64, 19, &code)[3], No);
        let code = [
            0xe1f4_70b2, // ldrh r7, [r4, #2]!
            0xe207_c0ff, // and ip, r7, #255
            0xe088_f38c, // add pc, r8, ip, lsl #7
            0xe320_f000, // nop
        ];
        assert_eq!(first(Machine::Arm, 4, &code), [No, Yes, Yes, Unknown]);
        assert!(moved(&[0; 4096], Machine::X86_64, 12).is_empty());
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
        let expected = [No, No, Yes, Unknown, Unknown, No, No];
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
        let expected = [No, No, Yes, Yes, Unknown, Unknown, Unknown];
        assert_eq!(first(Machine::Arm, 4, &code), expected);
    }

    #[test]
    fn code_that_is_none_says_nothing_wrong() {
        assert!(moved(&[], Machine::Aarch64, 20).is_empty());
        assert!(moved(&[0xff; 1023], Machine::Aarch64, 20).is_empty());
        // Endless branches in place.
        let code: Vec<u8> = [0x1400_0000u32; 512]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        assert_eq!(moved(&code, Machine::Aarch64, 20)[..2], [No, Unknown]);
    }
}
