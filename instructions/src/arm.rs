//! Decodes instructions of ARM, not of Thumb (ARM DDI 0406, A5).
//!
//! A conditional instruction is treated as an executed one: some path through the code executes it.

use crate::bits::{field, register, signed};
use crate::{Base, Effect, Flow, Instruction, OPERAND, Place, Register, Source};

const SIZE: u8 = 4;
const PC: Register = Register(15);
const SP: Register = Register(13);
/// The pc that an instruction reads is two instructions ahead.
const AHEAD: u64 = 8;

/// Opcodes of data processing.
const AND: u32 = 0;
const SUB: u32 = 2;
const ADD: u32 = 4;
const TST: u32 = 8;
const MOV: u32 = 13;

/// Decodes the instruction in a word.
pub(crate) fn decode(word: u32, address: u64) -> Instruction {
    let mut found = Instruction::nothing(SIZE);
    let is_always = word >> 28 == 14;
    if word >> 28 == 15 {
        // BLX to Thumb code, preloads, barriers, vectors.
        if field(word, 25, 3) == 0b101 {
            let half = i64::from(field(word, 24, 1)).wrapping_mul(2);
            let distance = signed(word, 0, 24).wrapping_mul(4).wrapping_add(half);
            found.flow = Flow::Call(address.wrapping_add(8).wrapping_add_signed(distance));
        }
        return found;
    }
    match field(word, 25, 3) {
        0b000 | 0b001 => data(word, address, &mut found),
        0b010 => transfer(word, address, &mut found),
        0b011 if field(word, 4, 1) == 0 => transfer(word, address, &mut found),
        0b011 => overwrite(register(word, 12, 4), &mut found),
        0b100 => block(word, &mut found),
        0b101 => {
            let distance = signed(word, 0, 24).wrapping_mul(4);
            let target = address.wrapping_add(8).wrapping_add_signed(distance);
            found.flow = match (field(word, 24, 1), is_always) {
                (1, _) => Flow::Call(target),
                (_, true) => Flow::Jump(target),
                (_, false) => Flow::Branch(target),
            };
        }
        // MRC of the thread pointer; other coprocessors' registers, vectors.
        _ => match word & 0x0fff_0fff {
            0x0e1d_0f70 => found.effects.push(Effect::ThreadPointer {
                to: register(word, 12, 4),
            }),
            // VMRS to the flags, and registers of vectors with this number.
            _ if register(word, 12, 4) == PC => {}
            _ => overwrite(register(word, 12, 4), &mut found),
        },
    }
    // After a conditional return or jump, execution may continue here.
    if !is_always && matches!(found.flow, Flow::Return | Flow::JumpIndirect) {
        found.flow = Flow::Next;
    }
    found
}

fn overwrite(to: Register, found: &mut Instruction) {
    match to {
        PC => found.flow = Flow::JumpIndirect,
        to => found.effects.push(Effect::Overwrite(to)),
    }
}

/// Returns an immediate: 8 bits, rotated.
fn constant(word: u32) -> u32 {
    let rotate = field(word, 8, 4).wrapping_mul(2);
    field(word, 0, 8).rotate_right(rotate)
}

/// Data processing, and instructions that share its encodings.
fn data(word: u32, address: u64, found: &mut Instruction) {
    let is_constant = field(word, 25, 1) == 1;
    if !is_constant && field(word, 4, 1) == 1 && field(word, 7, 1) == 1 {
        return extra(word, found);
    }
    let (opcode, sets_flags) = (field(word, 21, 4), field(word, 20, 1) == 1);
    if matches!(opcode, 8..=11) && !sets_flags {
        return other(word, found);
    }
    let (to, left, right) = (
        register(word, 12, 4),
        register(word, 16, 4),
        register(word, 0, 4),
    );
    let unshifted = field(word, 4, 8) == 0;
    let ahead = address.wrapping_add(AHEAD);
    let effect = match (opcode, is_constant) {
        (AND, true) => {
            found.effects.push(Effect::Test {
                register: left,
                mask: constant(word).into(),
            });
            None
        }
        (TST, true) => {
            return found.effects.push(Effect::Test {
                register: left,
                mask: constant(word).into(),
            });
        }
        // TST, TEQ, CMP, CMN.
        (8..=11, _) => return,
        (MOV, true) => Some(Effect::Set {
            to,
            value: constant(word).into(),
        }),
        (_, true) => sum_with_constant(word, ahead),
        (ADD, false) if unshifted => Some(sum_of_registers(word, ahead, found)),
        (ADD, false) if left != PC => Some(Effect::AddScaled { to, left }),
        (SUB, false) if unshifted && left != PC && right != PC => {
            Some(Effect::Subtract { to, left, right })
        }
        (MOV, false) if unshifted && right != PC => Some(Effect::Move {
            to,
            from: right,
            add: 0,
        }),
        _ => None,
    };
    match effect {
        None => overwrite(to, found),
        Some(_) if to == PC => found.flow = Flow::JumpIndirect,
        Some(effect) => found.effects.push(effect),
    }
}

/// Returns the effect of adding a constant to a register, or of subtracting it. None: it is another operation.
fn sum_with_constant(word: u32, ahead: u64) -> Option<Effect> {
    let (to, left) = (register(word, 12, 4), register(word, 16, 4));
    let value = i64::from(constant(word));
    let add = match field(word, 21, 4) {
        ADD => value,
        SUB => value.wrapping_neg(),
        _ => return None,
    };
    Some(match left {
        PC => Effect::Set {
            to,
            value: ahead.wrapping_add_signed(add),
        },
        from => Effect::Move { to, from, add },
    })
}

/// Returns the effect of adding two registers, after that of reading the pc.
fn sum_of_registers(word: u32, ahead: u64, found: &mut Instruction) -> Effect {
    let (left, right) = (register(word, 16, 4), register(word, 0, 4));
    for operand in [left, right] {
        if operand == PC {
            found.effects.push(Effect::Set {
                to: OPERAND,
                value: ahead,
            });
        }
    }
    let named = |operand| if operand == PC { OPERAND } else { operand };
    Effect::Add {
        to: register(word, 12, 4),
        left: named(left),
        right: named(right),
    }
}

/// BX, BLX, MOVW, MOVT and similar.
fn other(word: u32, found: &mut Instruction) {
    match word {
        _ if word & 0x0fff_fff0 == 0x012f_ff10 => found.flow = Flow::JumpIndirect,
        _ if word & 0x0fff_fff0 == 0x012f_ff30 => {
            found.flow = Flow::CallRegister(register(word, 0, 4));
        }
        // MOVW.
        _ if word & 0x0ff0_0000 == 0x0300_0000 => found.effects.push(Effect::Set {
            to: register(word, 12, 4),
            value: (field(word, 16, 4).wrapping_shl(12) | field(word, 0, 12)).into(),
        }),
        // MSR, hints.
        _ if word & 0x0fb0_f000 == 0x0320_f000 => {}
        _ => {
            overwrite(register(word, 12, 4), found);
            overwrite(register(word, 16, 4), found);
        }
    }
}

/// How a load or store computes its address.
struct Addressing {
    base: Register,
    offset: i64,
    index: Option<Register>,
}

/// Adds the effects of a load or store of `size` bytes.
fn access(
    word: u32,
    how: &Addressing,
    is_load: bool,
    size: u8,
    address: u64,
    found: &mut Instruction,
) {
    let data = register(word, 12, 4);
    let (is_before, writes_back) = (field(word, 24, 1) == 1, field(word, 21, 1) == 1);
    let place = Place {
        base: match how.base {
            PC => Base::Absolute(address.wrapping_add(8)),
            base => Base::Register(base),
        },
        offset: if is_before { how.offset } else { 0 },
        index: how.index.filter(|_| is_before),
    };
    match is_load {
        true => found.effects.push(Effect::Load {
            to: Some(data).filter(|data| *data != PC),
            from: place,
            size,
        }),
        false => found.effects.push(Effect::Store {
            to: place,
            from: Source::Register(data),
            size,
        }),
    }
    let is_moved = (!is_before || writes_back) && how.base != PC;
    match how.index {
        _ if !is_moved => {}
        Some(_) if field(word, 23, 1) == 1 => found.effects.push(Effect::AddScaled {
            to: how.base,
            left: how.base,
        }),
        Some(_) => found.effects.push(Effect::Overwrite(how.base)),
        None => found.effects.push(Effect::Move {
            to: how.base,
            from: how.base,
            add: how.offset,
        }),
    }
    if is_load && data == PC {
        found.flow = Flow::JumpIndirect;
    }
}

/// Returns the offset, negated if the access goes down.
fn directed(word: u32, offset: i64) -> i64 {
    match field(word, 23, 1) {
        1 => offset,
        _ => offset.wrapping_neg(),
    }
}

/// LDR, STR, LDRB, STRB.
fn transfer(word: u32, address: u64, found: &mut Instruction) {
    let by_register = field(word, 25, 1) == 1;
    let how = Addressing {
        base: register(word, 16, 4),
        offset: match by_register {
            true => 0,
            false => directed(word, field(word, 0, 12).into()),
        },
        index: by_register.then(|| register(word, 0, 4)),
    };
    let size = if field(word, 22, 1) == 1 { 1 } else { 4 };
    access(word, &how, field(word, 20, 1) == 1, size, address, found);
}

/// LDRH, STRH, LDRD, STRD and similar; multiplications; exclusive loads and stores.
fn extra(word: u32, found: &mut Instruction) {
    let operation = field(word, 5, 2);
    if operation == 0 {
        overwrite(register(word, 12, 4), found);
        return overwrite(register(word, 16, 4), found);
    }
    let by_register = field(word, 22, 1) == 0;
    let offset = field(word, 8, 4).wrapping_shl(4) | field(word, 0, 4);
    let how = Addressing {
        base: register(word, 16, 4),
        offset: match by_register {
            true => 0,
            false => directed(word, offset.into()),
        },
        index: by_register.then(|| register(word, 0, 4)),
    };
    match (field(word, 20, 1), operation) {
        (1, 1 | 3) => access(word, &how, true, 2, 0, found),
        (1, _) => access(word, &how, true, 1, 0, found),
        (_, 1) => access(word, &how, false, 2, 0, found),
        // LDRD, STRD: two registers.
        (_, operation) => {
            let is_load = operation == 2;
            let second = Register(register(word, 12, 4).0.saturating_add(1));
            access(word, &how, is_load, 4, 0, found);
            let at = Place {
                base: Base::Register(how.base),
                offset: how.offset.wrapping_add(4),
                index: how.index,
            };
            // With the base before it is written back.
            found.effects.insert(
                0,
                match is_load {
                    true => Effect::Load {
                        to: Some(second).filter(|second| *second < PC),
                        from: at,
                        size: 4,
                    },
                    false => Effect::Store {
                        to: at,
                        from: Source::Register(second),
                        size: 4,
                    },
                },
            );
        }
    }
}

/// LDM, STM, and so push and pop.
fn block(word: u32, found: &mut Instruction) {
    let base = register(word, 16, 4);
    let is_load = field(word, 20, 1) == 1;
    let count = i64::from(field(word, 0, 16).count_ones()).wrapping_mul(4);
    let goes_up = field(word, 23, 1) == 1;
    let mut at = match (goes_up, field(word, 24, 1)) {
        (true, 0) => 0,
        (true, _) => 4,
        (false, 0) => 4i64.wrapping_sub(count),
        (false, _) => count.wrapping_neg(),
    };
    for number in 0..16u8 {
        if word >> number & 1 == 0 {
            continue;
        }
        let (register, place) = (Register(number), Place::at(base, at));
        match (is_load, register) {
            (true, PC) => found.flow = Flow::Return,
            (true, register) if register == base => {}
            (true, register) => found.effects.push(Effect::Load {
                to: Some(register),
                from: place,
                size: 4,
            }),
            (false, register) => found.effects.push(Effect::Store {
                to: place,
                from: Source::Register(register),
                size: 4,
            }),
        }
        at = at.wrapping_add(4);
    }
    let loads_base = is_load && word >> base.0 & 1 == 1;
    if field(word, 21, 1) == 1 {
        found.effects.push(Effect::Move {
            to: base,
            from: base,
            add: if goes_up { count } else { count.wrapping_neg() },
        });
    } else if loads_base && base != SP {
        found.effects.push(Effect::Overwrite(base));
    }
}
