//! Decodes an instruction.

mod compressed;
mod constants;
mod float;
mod standard;

use crate::{Instruction, Xlen};

/// Why there is no instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Illegal {
    /// The code ends before the instruction does.
    #[error("the code ends within an instruction")]
    CutOff,
    /// No known instruction of 2 bytes.
    #[error("no known instruction: {0:#06x}")]
    Two(u16),
    /// No known instruction of 4 bytes, or the beginning of a longer one.
    #[error("no known instruction: {0:#010x}")]
    Four(u32),
}

/// Decodes the instruction at the beginning of `code`.
///
/// # Errors
///
/// It is cut off, reserved, or of an extension that is not decoded.
pub fn decode(code: &[u8], xlen: Xlen) -> Result<Instruction, Illegal> {
    let half = code.first_chunk().ok_or(Illegal::CutOff)?;
    let half = u16::from_le_bytes(*half);
    if half & 3 != 3 {
        return compressed::decode(half.into(), xlen).ok_or(Illegal::Two(half));
    }
    let word = code.first_chunk().ok_or(Illegal::CutOff)?;
    let word = u32::from_le_bytes(*word);
    standard::decode(word, xlen).ok_or(Illegal::Four(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Alu, Operation, Register};

    #[test]
    fn what_is_no_instruction_is_an_error() {
        for (code, error) in [
            (&[][..], Illegal::CutOff),
            (&[0x13], Illegal::CutOff),
            (&[0x13, 0, 0], Illegal::CutOff),
            (&[0, 0], Illegal::Two(0)),
            (&[0xff; 4], Illegal::Four(u32::MAX)),
            // c.srli with a shift of 32 and slli by 32 are of RV64.
            (&[0x01, 0x90], Illegal::Two(0x9001)),
            (&[0x13, 0x15, 0x05, 0x02], Illegal::Four(0x0205_1513)),
        ] {
            assert_eq!(decode(code, Xlen::Rv32), Err(error), "{code:x?}");
        }
        assert!(decode(&[0x01, 0x90], Xlen::Rv64).is_ok());
        assert!(decode(&[0x13, 0x15, 0x05, 0x02], Xlen::Rv64).is_ok());
    }

    #[test]
    fn a_length_decides_what_the_same_code_is() {
        // c.jal in RV32 is c.addiw in RV64.
        let code = [0x05, 0x25];
        assert_eq!(decode(&code, Xlen::Rv32).unwrap().operation, Operation::Jal);
        let word = decode(&code, Xlen::Rv64).unwrap();
        assert_eq!(word.operation, Operation::AluImmediateWord(Alu::Add));
        assert_eq!((word.rd, word.immediate), (Register::A0, 1));
    }
}
