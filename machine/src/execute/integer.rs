//! Integer operations of RV32, as functions of their operands.

use varid_riscv::{Alu, Divide, Multiply};

/// An operation of the extension I. A shift takes the lowest five bits of the amount.
#[inline]
#[must_use]
pub fn alu(op: Alu, left: u32, right: u32) -> u32 {
    match op {
        Alu::Add => left.wrapping_add(right),
        Alu::Sub => left.wrapping_sub(right),
        Alu::Sll => left.wrapping_shl(right),
        Alu::Slt => u32::from(left.cast_signed() < right.cast_signed()),
        Alu::Sltu => u32::from(left < right),
        Alu::Xor => left ^ right,
        Alu::Srl => left.wrapping_shr(right),
        Alu::Sra => left.cast_signed().wrapping_shr(right).cast_unsigned(),
        Alu::Or => left | right,
        Alu::And => left & right,
    }
}

/// A half of a product.
#[inline]
#[must_use]
pub fn multiply(op: Multiply, left: u32, right: u32) -> u32 {
    let signed = |value: u32| i64::from(value.cast_signed());
    let unsigned = |value: u32| i64::from(value);
    // No product of these exceeds 64 bits, but that of two unsigned operands, of which only the bits matter.
    let high = |left: i64, right: i64| (left.wrapping_mul(right).cast_unsigned() >> 32) as u32;
    match op {
        Multiply::Low => left.wrapping_mul(right),
        Multiply::High => high(signed(left), signed(right)),
        Multiply::HighSignedUnsigned => high(signed(left), unsigned(right)),
        Multiply::HighUnsigned => high(unsigned(left), unsigned(right)),
    }
}

/// A quotient or a remainder. By zero they are all ones and the dividend.
#[inline]
#[must_use]
pub fn divide(op: Divide, left: u32, right: u32) -> u32 {
    let signed = (left.cast_signed(), right.cast_signed());
    match op {
        Divide::Quotient if right == 0 => u32::MAX,
        Divide::Remainder if right == 0 => left,
        // The smallest number by -1 overflows: it is itself, without a remainder.
        Divide::Quotient => {
            let quotient = signed.0.checked_div(signed.1);
            quotient.unwrap_or(signed.0).cast_unsigned()
        }
        Divide::Remainder => {
            let remainder = signed.0.checked_rem(signed.1);
            remainder.unwrap_or_default().cast_unsigned()
        }
        Divide::QuotientUnsigned => left.checked_div(right).unwrap_or(u32::MAX),
        Divide::RemainderUnsigned => left.checked_rem(right).unwrap_or(left),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_has_a_result_for_all_operands() {
        let min = i32::MIN.cast_unsigned();
        assert_eq!(divide(Divide::Quotient, 7, 0), u32::MAX);
        assert_eq!(divide(Divide::Remainder, 7, 0), 7);
        assert_eq!(divide(Divide::QuotientUnsigned, 7, 0), u32::MAX);
        assert_eq!(divide(Divide::RemainderUnsigned, 7, 0), 7);
        assert_eq!(divide(Divide::Quotient, min, u32::MAX), min);
        assert_eq!(divide(Divide::Remainder, min, u32::MAX), 0);
        assert_eq!(
            divide(Divide::Quotient, 7_u32.wrapping_neg(), 2),
            3_u32.wrapping_neg()
        );
        assert_eq!(divide(Divide::Remainder, 7_u32.wrapping_neg(), 2), u32::MAX);
    }

    #[test]
    fn upper_halves_of_products_follow_the_signs() {
        let minus_one = u32::MAX;
        assert_eq!(multiply(Multiply::High, minus_one, minus_one), 0);
        assert_eq!(
            multiply(Multiply::HighUnsigned, minus_one, minus_one),
            0xffff_fffe
        );
        assert_eq!(
            multiply(Multiply::HighSignedUnsigned, minus_one, minus_one),
            minus_one
        );
        assert_eq!(multiply(Multiply::Low, minus_one, 3), 3_u32.wrapping_neg());
    }

    #[test]
    fn shifts_take_five_bits_of_the_amount() {
        assert_eq!(alu(Alu::Sll, 1, 33), 2);
        assert_eq!(alu(Alu::Sra, 0x8000_0000, 63), u32::MAX);
        assert_eq!(alu(Alu::Srl, 0x8000_0000, 31), 1);
    }
}
