//! Takes fields of an instruction's code.

/// Returns `count` bits from bit `low` on.
pub const fn field(code: u32, low: u32, count: u32) -> u32 {
    let up = 32_u32.saturating_sub(low).saturating_sub(count);
    code.wrapping_shl(up)
        .wrapping_shr(32_u32.saturating_sub(count))
}

/// Extends a value of `count` bits by copies of its highest bit.
pub const fn sign_extended(value: u32, count: u32) -> i32 {
    let up = 32_u32.saturating_sub(count);
    value.wrapping_shl(up).cast_signed().wrapping_shr(up)
}

/// Puts together a value from fields of the code: each is (lowest bit in the code, number of bits, lowest bit in the value).
pub fn gather(code: u32, fields: &[(u32, u32, u32)]) -> u32 {
    let fields = fields.iter();
    let placed = fields.map(|(low, count, to)| field(code, *low, *count).wrapping_shl(*to));
    placed.fold(0, |value, part| value | part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_placed_and_extended() {
        assert_eq!(field(0xffff_ffff, 31, 1), 1);
        assert_eq!(field(0x0000_0ff0, 4, 8), 0xff);
        assert_eq!(sign_extended(0x800, 12), -2048);
        assert_eq!(sign_extended(0x7ff, 12), 2047);
        assert_eq!(gather(0b1010_0000, &[(7, 1, 0), (5, 1, 4)]), 0b1_0001);
    }
}
