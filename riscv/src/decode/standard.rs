//! Decodes instructions of 4 bytes: RV32I and RV64I with M, A, Zicsr and Zifencei.

use super::constants::{short_immediate, store_immediate};
use crate::{
    Alu, Atomic, Condition, CsrAccess, Divide, Extension, Instruction, Length, Multiply, Operation,
    Register, Width, Xlen,
    bits::{field, gather, sign_extended},
};

/// Decodes an instruction, whose lowest two bits are set.
pub fn decode(word: u32, xlen: Xlen) -> Option<Instruction> {
    match field(word, 2, 5) {
        0b01101 => Some(upper(word, Operation::Lui)),
        0b00101 => Some(upper(word, Operation::Auipc)),
        0b11011 => Some(jump(word)),
        0b11001 => jump_register(word),
        0b11000 => branch(word),
        0b00000 => load(word, xlen),
        0b01000 => store(word, xlen),
        0b00100 => alu_immediate(word, xlen),
        0b00110 => alu_immediate_word(word, xlen),
        0b01100 => alu(word),
        0b01110 => alu_word(word, xlen),
        0b00011 => fence(word),
        0b11100 => system(word),
        0b01011 => atomic(word, xlen),
        _ => super::float::decode(word, xlen),
    }
}

/// An instruction with no register or constant.
const fn plain(operation: Operation) -> Instruction {
    Instruction {
        operation,
        rd: Register::ZERO,
        rs1: Register::ZERO,
        rs2: Register::ZERO,
        rs3: Register::ZERO,
        immediate: 0,
        length: Length::Four,
    }
}

const fn rd(word: u32) -> Register {
    Register::integer(field(word, 7, 5))
}

const fn rs1(word: u32) -> Register {
    Register::integer(field(word, 15, 5))
}

const fn rs2(word: u32) -> Register {
    Register::integer(field(word, 20, 5))
}

const fn function(word: u32) -> u32 {
    field(word, 12, 3)
}

fn of_registers(word: u32, operation: Operation) -> Instruction {
    Instruction {
        rd: rd(word),
        rs1: rs1(word),
        rs2: rs2(word),
        ..plain(operation)
    }
}

fn of_immediate(word: u32, operation: Operation, immediate: i32) -> Instruction {
    Instruction {
        rd: rd(word),
        rs1: rs1(word),
        immediate,
        ..plain(operation)
    }
}

fn upper(word: u32, operation: Operation) -> Instruction {
    Instruction {
        rd: rd(word),
        immediate: (word & 0xffff_f000).cast_signed(),
        ..plain(operation)
    }
}

fn jump(word: u32) -> Instruction {
    let fields = [(31, 1, 20), (12, 8, 12), (20, 1, 11), (21, 10, 1)];
    Instruction {
        rd: rd(word),
        immediate: sign_extended(gather(word, &fields), 21),
        ..plain(Operation::Jal)
    }
}

fn jump_register(word: u32) -> Option<Instruction> {
    let jump = of_immediate(word, Operation::Jalr, short_immediate(word));
    (function(word) == 0).then_some(jump)
}

fn branch(word: u32) -> Option<Instruction> {
    let condition = match function(word) {
        0 => Condition::Equal,
        1 => Condition::NotEqual,
        4 => Condition::Less,
        5 => Condition::GreaterOrEqual,
        6 => Condition::LessUnsigned,
        7 => Condition::GreaterOrEqualUnsigned,
        _ => return None,
    };
    let fields = [(31, 1, 12), (7, 1, 11), (25, 6, 5), (8, 4, 1)];
    Some(Instruction {
        rs1: rs1(word),
        rs2: rs2(word),
        immediate: sign_extended(gather(word, &fields), 13),
        ..plain(Operation::Branch(condition))
    })
}

fn load(word: u32, xlen: Xlen) -> Option<Instruction> {
    let (width, extension) = match (function(word), xlen) {
        (0, _) => (Width::Byte, Extension::Sign),
        (1, _) => (Width::Half, Extension::Sign),
        (2, _) => (Width::Word, Extension::Sign),
        (4, _) => (Width::Byte, Extension::Zero),
        (5, _) => (Width::Half, Extension::Zero),
        (3, Xlen::Rv64) => (Width::Double, Extension::Sign),
        (6, Xlen::Rv64) => (Width::Word, Extension::Zero),
        _ => return None,
    };
    let operation = Operation::Load(width, extension);
    Some(of_immediate(word, operation, short_immediate(word)))
}

fn store(word: u32, xlen: Xlen) -> Option<Instruction> {
    let width = match (function(word), xlen) {
        (0, _) => Width::Byte,
        (1, _) => Width::Half,
        (2, _) => Width::Word,
        (3, Xlen::Rv64) => Width::Double,
        _ => return None,
    };
    Some(Instruction {
        rs1: rs1(word),
        rs2: rs2(word),
        immediate: store_immediate(word),
        ..plain(Operation::Store(width))
    })
}

fn alu_immediate(word: u32, xlen: Xlen) -> Option<Instruction> {
    let amount_bits = match xlen {
        Xlen::Rv32 => 5,
        Xlen::Rv64 => 6,
    };
    immediate_operation(word, amount_bits, Operation::AluImmediate)
}

fn alu_immediate_word(word: u32, xlen: Xlen) -> Option<Instruction> {
    match (xlen, function(word)) {
        (Xlen::Rv64, 0 | 1 | 5) => immediate_operation(word, 5, Operation::AluImmediateWord),
        _ => None,
    }
}

/// An operation with a constant. Amounts of shifts have `amount_bits` bits; the bits above them say which shift it is.
fn immediate_operation(
    word: u32,
    amount_bits: u32,
    operation: fn(Alu) -> Operation,
) -> Option<Instruction> {
    let immediate = short_immediate(word);
    let kind = field(word, 20, 12).wrapping_shr(amount_bits);
    let right_arithmetic = 0x400_u32.wrapping_shr(amount_bits);
    let amount = field(word, 20, amount_bits).cast_signed();
    let (alu, immediate) = match function(word) {
        0 => (Alu::Add, immediate),
        2 => (Alu::Slt, immediate),
        3 => (Alu::Sltu, immediate),
        4 => (Alu::Xor, immediate),
        6 => (Alu::Or, immediate),
        7 => (Alu::And, immediate),
        1 if kind == 0 => (Alu::Sll, amount),
        5 if kind == 0 => (Alu::Srl, amount),
        5 if kind == right_arithmetic => (Alu::Sra, amount),
        _ => return None,
    };
    Some(of_immediate(word, operation(alu), immediate))
}

fn alu(word: u32) -> Option<Instruction> {
    let operation = match (field(word, 25, 7), function(word)) {
        (1, 0) => Operation::Multiply(Multiply::Low),
        (1, 1) => Operation::Multiply(Multiply::High),
        (1, 2) => Operation::Multiply(Multiply::HighSignedUnsigned),
        (1, 3) => Operation::Multiply(Multiply::HighUnsigned),
        (1, function) => Operation::Divide(divide(function)?),
        (kind, function) => Operation::Alu(register_operation(kind, function)?),
    };
    Some(of_registers(word, operation))
}

fn alu_word(word: u32, xlen: Xlen) -> Option<Instruction> {
    let operation = match (xlen, field(word, 25, 7), function(word)) {
        (Xlen::Rv32, ..) => return None,
        (_, 1, 0) => Operation::MultiplyWord,
        (_, 1, function) => Operation::DivideWord(divide(function)?),
        (_, kind, function @ (0 | 1 | 5)) => {
            Operation::AluWord(register_operation(kind, function)?)
        }
        _ => return None,
    };
    Some(of_registers(word, operation))
}

const fn divide(function: u32) -> Option<Divide> {
    Some(match function {
        4 => Divide::Quotient,
        5 => Divide::QuotientUnsigned,
        6 => Divide::Remainder,
        7 => Divide::RemainderUnsigned,
        _ => return None,
    })
}

const fn register_operation(kind: u32, function: u32) -> Option<Alu> {
    Some(match (kind, function) {
        (0, 0) => Alu::Add,
        (0x20, 0) => Alu::Sub,
        (0, 1) => Alu::Sll,
        (0, 2) => Alu::Slt,
        (0, 3) => Alu::Sltu,
        (0, 4) => Alu::Xor,
        (0, 5) => Alu::Srl,
        (0x20, 5) => Alu::Sra,
        (0, 6) => Alu::Or,
        (0, 7) => Alu::And,
        _ => return None,
    })
}

/// Reserved fields of fences are ignored, as the specification demands.
const fn fence(word: u32) -> Option<Instruction> {
    match function(word) {
        0 => Some(plain(Operation::Fence)),
        1 => Some(plain(Operation::FenceI)),
        _ => None,
    }
}

fn system(word: u32) -> Option<Instruction> {
    let access = match field(word, 12, 2) {
        1 => CsrAccess::Write,
        2 => CsrAccess::Set,
        3 => CsrAccess::Clear,
        _ => {
            let operation = match word {
                0x0000_0073 => Operation::Ecall,
                0x0010_0073 => Operation::Ebreak,
                // sret and mret.
                0x1020_0073 | 0x3020_0073 => Operation::TrapReturn,
                0x1050_0073 => Operation::WaitForInterrupt,
                _ => return None,
            };
            return Some(plain(operation));
        }
    };
    let operation = match field(word, 14, 1) {
        0 => Operation::Csr(access),
        _ => Operation::CsrImmediate(access),
    };
    let number = field(word, 20, 12).cast_signed();
    Some(of_immediate(word, operation, number))
}

fn atomic(word: u32, xlen: Xlen) -> Option<Instruction> {
    let width = match (function(word), xlen) {
        (2, _) => Width::Word,
        (3, Xlen::Rv64) => Width::Double,
        _ => return None,
    };
    let operation = match field(word, 27, 5) {
        0b00010 if rs2(word) == Register::ZERO => Operation::LoadReserved(width),
        0b00011 => Operation::StoreConditional(width),
        0b00001 => Operation::Atomic(Atomic::Swap, width),
        0b00000 => Operation::Atomic(Atomic::Add, width),
        0b00100 => Operation::Atomic(Atomic::Xor, width),
        0b01100 => Operation::Atomic(Atomic::And, width),
        0b01000 => Operation::Atomic(Atomic::Or, width),
        0b10000 => Operation::Atomic(Atomic::Minimum, width),
        0b10100 => Operation::Atomic(Atomic::Maximum, width),
        0b11000 => Operation::Atomic(Atomic::MinimumUnsigned, width),
        0b11100 => Operation::Atomic(Atomic::MaximumUnsigned, width),
        _ => return None,
    };
    Some(of_registers(word, operation))
}
