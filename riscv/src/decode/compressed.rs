//! Decodes instructions of 2 bytes: extension C.
//!
//! The lists of fields stand as the specification prints the constants, for example `offset[5:3|8:6]` of `c.fldsp`.

use crate::{
    Alu, Condition, Extension, Instruction, Length, Operation, Precision, Register, Width, Xlen,
    bits::{field, gather, sign_extended},
};

/// Decodes an instruction, whose lowest two bits are not both set.
pub fn decode(half: u32, xlen: Xlen) -> Option<Instruction> {
    match field(half, 0, 2) {
        0 => quadrant_0(half, xlen),
        1 => quadrant_1(half, xlen),
        _ => quadrant_2(half, xlen),
    }
}

const WORD: Operation = Operation::Load(Width::Word, Extension::Sign);
const DOUBLE: Operation = Operation::Load(Width::Double, Extension::Sign);
const STORE_WORD: Operation = Operation::Store(Width::Word);
const STORE_DOUBLE: Operation = Operation::Store(Width::Double);
const ADD_IMMEDIATE: Operation = Operation::AluImmediate(Alu::Add);

/// A register of all.
const fn register(half: u32, low: u32) -> Register {
    Register::integer(field(half, low, 5))
}

/// A register of `s0` to `a5`.
const fn near(half: u32, low: u32) -> Register {
    Register::integer(field(half, low, 3) | 8)
}

/// `register` as a floating-point register.
const fn as_float(register: Register) -> Register {
    Register::float(register.number() as u32)
}

const fn of_immediate(
    operation: Operation,
    rd: Register,
    rs1: Register,
    immediate: i32,
) -> Instruction {
    Instruction {
        operation,
        rd,
        rs1,
        rs2: Register::ZERO,
        rs3: Register::ZERO,
        immediate,
        length: Length::Two,
    }
}

const fn of_registers(
    operation: Operation,
    rd: Register,
    rs1: Register,
    rs2: Register,
) -> Instruction {
    Instruction {
        rs2,
        ..of_immediate(operation, rd, rs1, 0)
    }
}

const fn store(operation: Operation, rs1: Register, rs2: Register, immediate: i32) -> Instruction {
    Instruction {
        rs2,
        ..of_immediate(operation, Register::ZERO, rs1, immediate)
    }
}

/// A constant of six bits, 12 and 6 to 2.
fn short(half: u32) -> i32 {
    sign_extended(gather(half, &[(12, 1, 5), (2, 5, 0)]), 6)
}

fn unsigned(half: u32, fields: &[(u32, u32, u32)]) -> i32 {
    gather(half, fields).cast_signed()
}

fn quadrant_0(half: u32, xlen: Xlen) -> Option<Instruction> {
    let (base, register) = (near(half, 7), near(half, 2));
    let word = || unsigned(half, &[(10, 3, 3), (6, 1, 2), (5, 1, 6)]);
    let double = || unsigned(half, &[(10, 3, 3), (5, 2, 6)]);
    let single = Precision::Single;
    Some(match (field(half, 13, 3), xlen) {
        (0, _) => {
            let fields = [(11, 2, 4), (7, 4, 6), (6, 1, 2), (5, 1, 3)];
            let immediate = Some(unsigned(half, &fields)).filter(|immediate| *immediate != 0)?;
            of_immediate(ADD_IMMEDIATE, register, Register::SP, immediate)
        }
        (1, _) => {
            let load = Operation::LoadFloat(Precision::Double);
            of_immediate(load, as_float(register), base, double())
        }
        (2, _) => of_immediate(WORD, register, base, word()),
        (3, Xlen::Rv32) => of_immediate(
            Operation::LoadFloat(single),
            as_float(register),
            base,
            word(),
        ),
        (3, Xlen::Rv64) => of_immediate(DOUBLE, register, base, double()),
        (5, _) => {
            let operation = Operation::StoreFloat(Precision::Double);
            store(operation, base, as_float(register), double())
        }
        (6, _) => store(STORE_WORD, base, register, word()),
        (7, Xlen::Rv32) => store(
            Operation::StoreFloat(single),
            base,
            as_float(register),
            word(),
        ),
        (7, Xlen::Rv64) => store(STORE_DOUBLE, base, register, double()),
        _ => return None,
    })
}

fn quadrant_1(half: u32, xlen: Xlen) -> Option<Instruction> {
    let rd = register(half, 7);
    let jump = |rd| of_immediate(Operation::Jal, rd, Register::ZERO, jump_offset(half));
    Some(match (field(half, 13, 3), xlen) {
        (0, _) => of_immediate(ADD_IMMEDIATE, rd, rd, short(half)),
        (1, Xlen::Rv32) => jump(Register::RA),
        (1, Xlen::Rv64) if rd == Register::ZERO => return None,
        (1, Xlen::Rv64) => of_immediate(Operation::AluImmediateWord(Alu::Add), rd, rd, short(half)),
        (2, _) => of_immediate(ADD_IMMEDIATE, rd, Register::ZERO, short(half)),
        (3, _) => return upper(half, rd),
        (4, _) => return near_operation(half, xlen),
        (5, _) => jump(Register::ZERO),
        (function, _) => {
            let condition = match function {
                6 => Condition::Equal,
                _ => Condition::NotEqual,
            };
            let fields = [(12, 1, 8), (10, 2, 3), (5, 2, 6), (3, 2, 1), (2, 1, 5)];
            let offset = sign_extended(gather(half, &fields), 9);
            store(
                Operation::Branch(condition),
                near(half, 7),
                Register::ZERO,
                offset,
            )
        }
    })
}

/// The distance of `c.j` and `c.jal`.
fn jump_offset(half: u32) -> i32 {
    let fields = [
        (12, 1, 11),
        (11, 1, 4),
        (9, 2, 8),
        (8, 1, 10),
        (7, 1, 6),
        (6, 1, 7),
        (3, 3, 1),
        (2, 1, 5),
    ];
    sign_extended(gather(half, &fields), 12)
}

/// `c.addi16sp` and `c.lui`.
fn upper(half: u32, rd: Register) -> Option<Instruction> {
    if rd == Register::SP {
        let fields = [(12, 1, 9), (6, 1, 4), (5, 1, 6), (3, 2, 7), (2, 1, 5)];
        let immediate = sign_extended(gather(half, &fields), 10);
        let add = of_immediate(ADD_IMMEDIATE, rd, rd, immediate);
        return (immediate != 0).then_some(add);
    }
    let immediate = short(half).wrapping_shl(12);
    let load = of_immediate(Operation::Lui, rd, Register::ZERO, immediate);
    (immediate != 0).then_some(load)
}

/// Operations of `s0` to `a5`.
fn near_operation(half: u32, xlen: Xlen) -> Option<Instruction> {
    let (rd, rs2) = (near(half, 7), near(half, 2));
    let shift = |alu| {
        let amount = unsigned(half, &[(12, 1, 5), (2, 5, 0)]);
        let is_valid = xlen == Xlen::Rv64 || amount < 32;
        is_valid.then_some(of_immediate(Operation::AluImmediate(alu), rd, rd, amount))
    };
    let operation = match (field(half, 10, 2), field(half, 12, 1), field(half, 5, 2)) {
        (0, ..) => return shift(Alu::Srl),
        (1, ..) => return shift(Alu::Sra),
        (2, ..) => {
            let and = Operation::AluImmediate(Alu::And);
            return Some(of_immediate(and, rd, rd, short(half)));
        }
        (_, 0, 0) => Operation::Alu(Alu::Sub),
        (_, 0, 1) => Operation::Alu(Alu::Xor),
        (_, 0, 2) => Operation::Alu(Alu::Or),
        (_, 0, _) => Operation::Alu(Alu::And),
        (_, _, 0) if xlen == Xlen::Rv64 => Operation::AluWord(Alu::Sub),
        (_, _, 1) if xlen == Xlen::Rv64 => Operation::AluWord(Alu::Add),
        _ => return None,
    };
    Some(of_registers(operation, rd, rd, rs2))
}

fn quadrant_2(half: u32, xlen: Xlen) -> Option<Instruction> {
    let (rd, rs2) = (register(half, 7), register(half, 2));
    let word = || unsigned(half, &[(12, 1, 5), (4, 3, 2), (2, 2, 6)]);
    let double = || unsigned(half, &[(12, 1, 5), (5, 2, 3), (2, 3, 6)]);
    let stored_word = || unsigned(half, &[(9, 4, 2), (7, 2, 6)]);
    let stored_double = || unsigned(half, &[(10, 3, 3), (7, 3, 6)]);
    let is_valid = rd != Register::ZERO;
    let (single, sp) = (Precision::Single, Register::SP);
    Some(match (field(half, 13, 3), xlen) {
        (0, _) => {
            let amount = unsigned(half, &[(12, 1, 5), (2, 5, 0)]);
            if xlen == Xlen::Rv32 && amount >= 32 {
                return None;
            }
            of_immediate(Operation::AluImmediate(Alu::Sll), rd, rd, amount)
        }
        (1, _) => {
            let load = Operation::LoadFloat(Precision::Double);
            of_immediate(load, as_float(rd), sp, double())
        }
        (2, _) if is_valid => of_immediate(WORD, rd, sp, word()),
        (3, Xlen::Rv32) => of_immediate(Operation::LoadFloat(single), as_float(rd), sp, word()),
        (3, Xlen::Rv64) if is_valid => of_immediate(DOUBLE, rd, sp, double()),
        (4, _) => return move_or_jump(half, rd, rs2),
        (5, _) => {
            let operation = Operation::StoreFloat(Precision::Double);
            store(operation, sp, as_float(rs2), stored_double())
        }
        (6, _) => store(STORE_WORD, sp, rs2, stored_word()),
        (7, Xlen::Rv32) => store(
            Operation::StoreFloat(single),
            sp,
            as_float(rs2),
            stored_word(),
        ),
        (7, Xlen::Rv64) => store(STORE_DOUBLE, sp, rs2, stored_double()),
        _ => return None,
    })
}

/// `c.jr`, `c.mv`, `c.ebreak`, `c.jalr` and `c.add`.
fn move_or_jump(half: u32, rd: Register, rs2: Register) -> Option<Instruction> {
    let zero = Register::ZERO;
    let add = Operation::Alu(Alu::Add);
    Some(match (field(half, 12, 1), rd == zero, rs2 == zero) {
        (0, true, true) => return None,
        (0, false, true) => of_immediate(Operation::Jalr, zero, rd, 0),
        (0, _, false) => of_registers(add, rd, zero, rs2),
        (_, true, true) => of_immediate(Operation::Ebreak, zero, zero, 0),
        (_, false, true) => of_immediate(Operation::Jalr, Register::RA, rd, 0),
        (_, _, false) => of_registers(add, rd, rd, rs2),
    })
}
