//! Decodes instructions of the extensions F and D.

use super::constants::{short_immediate, store_immediate};
use crate::{
    Float, Instruction, Integer, Length, Operation, Precision, Register, Xlen, bits::field,
};

/// Decodes an instruction of 4 bytes.
pub fn decode(word: u32, xlen: Xlen) -> Option<Instruction> {
    match field(word, 2, 5) {
        0b00001 => load(word),
        0b01001 => store(word),
        0b10000 => fused(word, Float::MultiplyAdd),
        0b10001 => fused(word, Float::MultiplySubtract),
        0b10010 => fused(word, Float::NegatedMultiplySubtract),
        0b10011 => fused(word, Float::NegatedMultiplyAdd),
        0b10100 => operation(word, xlen),
        _ => None,
    }
}

const fn rd(word: u32) -> Register {
    Register::float(field(word, 7, 5))
}

const fn rs1(word: u32) -> Register {
    Register::float(field(word, 15, 5))
}

const fn rs2(word: u32) -> Register {
    Register::float(field(word, 20, 5))
}

const fn format(code: u32) -> Option<Precision> {
    match code {
        0 => Some(Precision::Single),
        1 => Some(Precision::Double),
        _ => None,
    }
}

const fn memory_format(word: u32) -> Option<Precision> {
    match field(word, 12, 3) {
        2 => Some(Precision::Single),
        3 => Some(Precision::Double),
        _ => None,
    }
}

fn load(word: u32) -> Option<Instruction> {
    Some(Instruction {
        operation: Operation::LoadFloat(memory_format(word)?),
        rd: rd(word),
        rs1: Register::integer(field(word, 15, 5)),
        rs2: Register::ZERO,
        rs3: Register::ZERO,
        immediate: short_immediate(word),
        length: Length::Four,
    })
}

fn store(word: u32) -> Option<Instruction> {
    Some(Instruction {
        operation: Operation::StoreFloat(memory_format(word)?),
        rd: Register::ZERO,
        rs1: Register::integer(field(word, 15, 5)),
        rs2: rs2(word),
        rs3: Register::ZERO,
        immediate: store_immediate(word),
        length: Length::Four,
    })
}

/// The number of a rounding mode. None: it is reserved.
const fn rounding(word: u32) -> Option<i32> {
    match field(word, 12, 3) {
        5 | 6 => None,
        mode => Some(mode.cast_signed()),
    }
}

fn fused(word: u32, float: Float) -> Option<Instruction> {
    Some(Instruction {
        operation: Operation::Float(float, format(field(word, 25, 2))?),
        rd: rd(word),
        rs1: rs1(word),
        rs2: rs2(word),
        rs3: Register::float(field(word, 27, 5)),
        immediate: rounding(word)?,
        length: Length::Four,
    })
}

/// The second operand of an operation.
#[derive(PartialEq, Eq)]
enum Second {
    /// A register.
    Register,
    /// A code that says more of the operation.
    Code,
}

fn operation(word: u32, xlen: Xlen) -> Option<Instruction> {
    let precision = format(field(word, 25, 2))?;
    let code = field(word, 20, 5);
    let function = field(word, 12, 3);
    let rounded = |float, second| Some((float, second, rounding(word)?));
    let exact = |float, second| Some((float, second, 0));
    let (float, second, immediate) = match (field(word, 27, 5), function) {
        (0b00000, _) => rounded(Float::Add, Second::Register),
        (0b00001, _) => rounded(Float::Subtract, Second::Register),
        (0b00010, _) => rounded(Float::Multiply, Second::Register),
        (0b00011, _) => rounded(Float::Divide, Second::Register),
        (0b01011, _) if code == 0 => rounded(Float::SquareRoot, Second::Code),
        (0b00100, 0) => exact(Float::Sign, Second::Register),
        (0b00100, 1) => exact(Float::SignNegated, Second::Register),
        (0b00100, 2) => exact(Float::SignXor, Second::Register),
        (0b00101, 0) => exact(Float::Minimum, Second::Register),
        (0b00101, 1) => exact(Float::Maximum, Second::Register),
        (0b10100, 2) => exact(Float::Equal, Second::Register),
        (0b10100, 1) => exact(Float::Less, Second::Register),
        (0b10100, 0) => exact(Float::LessOrEqual, Second::Register),
        (0b11000, _) => rounded(Float::ToInteger(integer(code, xlen)?), Second::Code),
        (0b11010, _) => rounded(Float::FromInteger(integer(code, xlen)?), Second::Code),
        (0b01000, _) => {
            let from = format(code).filter(|from| *from != precision)?;
            rounded(Float::Convert(from), Second::Code)
        }
        (0b11100, 1) if code == 0 => exact(Float::Classify, Second::Code),
        (0b11100, 0) if code == 0 => exact(Float::BitsToInteger, Second::Code),
        (0b11110, 0) if code == 0 => exact(Float::BitsFromInteger, Second::Code),
        _ => None,
    }?;
    let moves_bits = matches!(float, Float::BitsToInteger | Float::BitsFromInteger);
    if moves_bits && precision == Precision::Double && xlen == Xlen::Rv32 {
        return None;
    }
    Some(Instruction {
        operation: Operation::Float(float, precision),
        rd: match float.writes_integer() {
            true => Register::integer(field(word, 7, 5)),
            false => rd(word),
        },
        rs1: match float.reads_integer() {
            true => Register::integer(field(word, 15, 5)),
            false => rs1(word),
        },
        rs2: match second {
            Second::Register => rs2(word),
            Second::Code => Register::ZERO,
        },
        rs3: Register::ZERO,
        immediate,
        length: Length::Four,
    })
}

const fn integer(code: u32, xlen: Xlen) -> Option<Integer> {
    match (code, xlen) {
        (0, _) => Some(Integer::Word),
        (1, _) => Some(Integer::WordUnsigned),
        (2, Xlen::Rv64) => Some(Integer::Double),
        (3, Xlen::Rv64) => Some(Integer::DoubleUnsigned),
        _ => None,
    }
}
