//! Takes fields of an instruction that is a word.

use crate::Register;

/// Returns the first word of some code.
pub(crate) fn word(code: &[u8]) -> Option<u32> {
    code.first_chunk().map(|word| u32::from_le_bytes(*word))
}

/// Returns `bits` bits from bit `low` on.
pub(crate) fn field(word: u32, low: u32, bits: u32) -> u32 {
    let mask = u32::MAX
        .checked_shr(32u32.saturating_sub(bits))
        .unwrap_or(0);
    word.checked_shr(low).unwrap_or(0) & mask
}

/// Returns `bits` bits from bit `low` on, as a signed number.
pub(crate) fn signed(word: u32, low: u32, bits: u32) -> i64 {
    let up = 32u32.saturating_sub(low).saturating_sub(bits);
    let value = word.wrapping_shl(up).cast_signed();
    value.wrapping_shr(32u32.saturating_sub(bits)).into()
}

/// Returns the register whose number is in `bits` bits (5 or 4) from bit `low` on.
pub(crate) fn register(word: u32, low: u32, bits: u32) -> Register {
    Register(field(word, low, bits) as u8)
}
