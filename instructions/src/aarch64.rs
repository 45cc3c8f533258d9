//! Decodes instructions of AArch64 (Arm Architecture Reference Manual, C4.1).

use crate::bits::{field, register, signed};
use crate::{Base, Effect, Flow, Instruction, OPERAND, Place, Register, Source};

const SIZE: u8 = 4;
/// The stack pointer, in instructions that can name it. In others, this number is the zero register.
const SP: Register = Register(31);

/// Decodes the instruction in a word. None if code does not contain such a word.
pub(crate) fn decode(word: u32, address: u64) -> Option<Instruction> {
    if word == 0 {
        return None;
    }
    let mut found = Instruction::nothing(SIZE);
    // Bits 28 to 25 (C4.1).
    match field(word, 25, 4) {
        0b1000 | 0b1001 => immediate(word, address, &mut found),
        0b1010 | 0b1011 => branch(word, address, &mut found),
        group if group & 0b0101 == 0b0100 => memory(word, address, &mut found),
        group if group & 0b0111 == 0b0101 => registers(word, &mut found),
        // Vectors and floating point. Some of them write a general register.
        _ => overwrite(word, 0, &mut found),
    }
    Some(found)
}

/// Overwrites a register. Register 31 is the zero register here.
fn overwrite(word: u32, low: u32, found: &mut Instruction) {
    let to = register(word, low, 5);
    if to != SP {
        found.effects.push(Effect::Overwrite(to));
    }
}

fn source(register: Register) -> Source {
    match register {
        SP => Source::Constant(0),
        register => Source::Register(register),
    }
}

/// Data processing with a constant.
fn immediate(word: u32, address: u64, found: &mut Instruction) {
    let (to, from) = (register(word, 0, 5), register(word, 5, 5));
    let effect = match field(word, 23, 3) {
        // ADR, ADRP.
        0b000 | 0b001 => {
            let low = i64::from(field(word, 29, 2));
            let distance = signed(word, 5, 19).wrapping_mul(4).wrapping_add(low);
            let value = match word >> 31 {
                0 => address.wrapping_add_signed(distance),
                _ => (address & !0xfff).wrapping_add_signed(distance.wrapping_mul(0x1000)),
            };
            Effect::Set { to, value }
        }
        // ADD, SUB. Those that set flags cannot have the stack pointer as their result.
        0b010 => {
            let shift = 12u32.wrapping_mul(field(word, 22, 1));
            let add = i64::from(field(word, 10, 12)).wrapping_shl(shift);
            let add = match field(word, 30, 1) {
                0 => add,
                _ => add.wrapping_neg(),
            };
            if field(word, 29, 1) == 1 && to == SP {
                return;
            }
            Effect::Move { to, from, add }
        }
        // MOVZ, MOVK. Register 31 is the zero register.
        0b101 if field(word, 30, 1) == 1 && to != SP => {
            let shift = 16u32.wrapping_mul(field(word, 21, 2));
            let value = u64::from(field(word, 5, 16)).wrapping_shl(shift);
            let mask = 0xffff_u64.wrapping_shl(shift);
            match field(word, 29, 1) {
                0 => Effect::Set { to, value },
                _ => Effect::Insert { to, value, mask },
            }
        }
        // Of these, only ANDS cannot have the stack pointer as its result.
        0b100 if field(word, 29, 2) != 0b11 => Effect::Overwrite(to),
        _ => return overwrite(word, 0, found),
    };
    found.effects.push(effect);
}

/// Branches and system instructions.
fn branch(word: u32, address: u64, found: &mut Instruction) {
    let target = |low, bits| {
        let distance = signed(word, low, bits).wrapping_mul(4);
        address.wrapping_add_signed(distance)
    };
    found.flow = match word {
        _ if word & 0xfc00_0000 == 0x1400_0000 => Flow::Jump(target(0, 26)), // B
        _ if word & 0xfc00_0000 == 0x9400_0000 => Flow::Call(target(0, 26)), // BL
        _ if word & 0xff00_0010 == 0x5400_0000 => Flow::Branch(target(5, 19)), // B.cond
        _ if word & 0x7e00_0000 == 0x3400_0000 => Flow::Branch(target(5, 19)), // CBZ, CBNZ
        _ if word & 0x7e00_0000 == 0x3600_0000 => {
            // TBZ, TBNZ.
            let bit = field(word, 19, 5) | field(word, 31, 1).wrapping_shl(5);
            found.effects.push(Effect::Test {
                register: register(word, 0, 5),
                mask: 1u64.wrapping_shl(bit),
            });
            Flow::Branch(target(5, 14))
        }
        _ if word & 0xffff_fc1f == 0xd63f_0000 => Flow::CallRegister(register(word, 5, 5)), // BLR
        _ if word & 0xffff_fc1f == 0xd61f_0000 => Flow::JumpIndirect,                       // BR
        // RET, with or without authentication; BR and BLR with authentication; ERET.
        _ if word & 0xff9f_0000 == 0xd61f_0000 => Flow::Return,
        // SVC and similar. The kernel returns its result in x0.
        _ if word & 0xffe0_0000 == 0xd400_0000 => {
            found.effects.push(Effect::Overwrite(Register(0)));
            Flow::Next
        }
        // BRK and similar.
        _ if word & 0xff00_0000 == 0xd400_0000 => Flow::Trap,
        _ if word & 0xffff_ffe0 == 0xd53b_d040 => {
            // MRS from TPIDR_EL0.
            let to = register(word, 0, 5);
            found.effects.push(Effect::ThreadPointer { to });
            Flow::Next
        }
        _ if word & 0xfff0_0000 == 0xd530_0000 => {
            // MRS from another register.
            overwrite(word, 0, found);
            Flow::Next
        }
        _ => Flow::Next,
    };
}

/// Data processing with registers.
fn registers(word: u32, found: &mut Instruction) {
    let (to, left, right) = (
        register(word, 0, 5),
        register(word, 5, 5),
        register(word, 16, 5),
    );
    let effect = match word {
        // ORR with zero and no shift: MOV.
        _ if word & 0x7fe0_ffe0 == 0x2a00_03e0 && to != SP => match right {
            SP => Effect::Set { to, value: 0 },
            from => Effect::Move { to, from, add: 0 },
        },
        // ADD, SUB of shifted registers. Register 31 is the zero register.
        _ if word & 0x1f20_0000 == 0x0b00_0000 => {
            let to = if to == SP { OPERAND } else { to };
            let is_unchanged = field(word, 10, 6) == 0;
            match left {
                SP => Effect::Overwrite(to),
                left => sum(word, to, left, Some(right).filter(|_| is_unchanged)),
            }
        }
        // Of extended registers. Register 31 is the stack pointer, except as a result if flags are set. UXTX and no shift: unchanged.
        _ if word & 0x1f20_0000 == 0x0b20_0000 => {
            let sets_flags = field(word, 29, 1) == 1;
            let to = if to == SP && sets_flags { OPERAND } else { to };
            let is_unchanged = field(word, 10, 6) == 0b01_1000;
            sum(word, to, left, Some(right).filter(|_| is_unchanged))
        }
        _ => return overwrite(word, 0, found),
    };
    found.effects.push(effect);
}

/// Returns the effect of adding `right` to `left`, or of subtracting it. `right`: None if it is shifted or extended.
fn sum(word: u32, to: Register, left: Register, right: Option<Register>) -> Effect {
    let is_added = field(word, 30, 1) == 0;
    match right {
        // The zero register.
        Some(SP) => Effect::Move {
            to,
            from: left,
            add: 0,
        },
        Some(right) if is_added => Effect::Add { to, left, right },
        Some(right) => Effect::Subtract { to, left, right },
        None if is_added => Effect::AddScaled { to, left },
        None => Effect::Overwrite(to),
    }
}

/// Loads and stores.
fn memory(word: u32, address: u64, found: &mut Instruction) {
    let is_vector = field(word, 26, 1) == 1;
    if word & 0x3a00_0000 == 0x2800_0000 {
        pair(word, is_vector, found);
    } else if word & 0x3b00_0000 == 0x1800_0000 {
        // A literal.
        let distance = signed(word, 5, 19).wrapping_mul(4);
        let place = Place {
            base: Base::Absolute(address.wrapping_add_signed(distance)),
            offset: 0,
            index: None,
        };
        let size = if field(word, 30, 2) == 0 { 4 } else { 8 };
        load(register(word, 0, 5), place, size, is_vector, found);
    } else if word & 0x3a00_0000 == 0x3800_0000 {
        single(word, is_vector, found);
    } else {
        // Exclusive and atomic accesses, structures of vectors: each register that they name may be written.
        for low in [0, 10, 16] {
            overwrite(word, low, found);
        }
        // Structures of vectors, with writeback: the base may be the stack pointer.
        if word & 0xbe80_0000 == 0x0c80_0000 {
            found.effects.push(Effect::Overwrite(register(word, 5, 5)));
        }
    }
}

fn load(to: Register, from: Place, size: u8, is_vector: bool, found: &mut Instruction) {
    let to = Some(to).filter(|to| !is_vector && *to != SP);
    found.effects.push(Effect::Load { to, from, size });
}

fn store(from: Register, to: Place, size: u8, is_vector: bool, found: &mut Instruction) {
    let from = match is_vector {
        true => Source::Other,
        false => source(from),
    };
    found.effects.push(Effect::Store { to, from, size });
}

/// LDP, STP and similar.
fn pair(word: u32, is_vector: bool, found: &mut Instruction) {
    let base = register(word, 5, 5);
    let size: u8 = match (is_vector, field(word, 30, 2)) {
        (false, 0b10) => 8,
        (false, _) => 4,
        (true, opc) => 4u8.wrapping_shl(opc),
    };
    let offset = signed(word, 15, 7).wrapping_mul(i64::from(size));
    let mode = field(word, 23, 2);
    let first = if mode == 0b01 { 0 } else { offset };
    let second = first.wrapping_add(i64::from(size));
    for (low, at) in [(0, first), (10, second)] {
        let (place, register) = (Place::at(base, at), register(word, low, 5));
        match field(word, 22, 1) {
            0 => store(register, place, size, is_vector, found),
            _ => load(register, place, size, is_vector, found),
        }
    }
    if matches!(mode, 0b01 | 0b11) {
        move_base(base, offset, found);
    }
}

fn move_base(base: Register, add: i64, found: &mut Instruction) {
    found.effects.push(Effect::Move {
        to: base,
        from: base,
        add,
    });
}

/// LDR, STR and similar.
fn single(word: u32, is_vector: bool, found: &mut Instruction) {
    let (data, base) = (register(word, 0, 5), register(word, 5, 5));
    let opc = field(word, 22, 2);
    let scale = match is_vector && opc & 0b10 != 0 {
        true => 4,
        false => field(word, 30, 2),
    };
    let size = 1u8.wrapping_shl(scale);
    // Bit 24: a scaled offset of 12 bits. Otherwise an offset of 9 bits, or a register, and what happens to the base.
    let (offset, index, move_by) =
        match (field(word, 24, 1), field(word, 21, 1), field(word, 10, 2)) {
            (1, _, _) => {
                let offset = i64::from(field(word, 10, 12)).wrapping_shl(scale);
                (offset, None, None)
            }
            (_, 0, 0b01) => (0, None, Some(signed(word, 12, 9))),
            (_, 0, 0b11) => {
                let offset = signed(word, 12, 9);
                (offset, None, Some(offset))
            }
            (_, 0, _) => (signed(word, 12, 9), None, None),
            (_, _, 0b10) => (0, Some(register(word, 16, 5)), None),
            // Atomic operations.
            _ => {
                overwrite(word, 0, found);
                return overwrite(word, 16, found);
            }
        };
    let place = Place {
        base: Base::Register(base),
        offset,
        index,
    };
    match (opc, is_vector) {
        (0b00, _) | (0b10, true) => store(data, place, size, is_vector, found),
        // PRFM.
        (0b10, false) if size == 8 => {}
        _ => load(data, place, size, is_vector, found),
    }
    if let Some(move_by) = move_by {
        move_base(base, move_by, found);
    }
}
