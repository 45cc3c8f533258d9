//! The constants that several formats of 4 bytes have in common.

use crate::bits::{field, gather, sign_extended};

/// The constant of loads and operations.
pub const fn short_immediate(word: u32) -> i32 {
    sign_extended(field(word, 20, 12), 12)
}

/// The constant of stores.
pub fn store_immediate(word: u32) -> i32 {
    sign_extended(gather(word, &[(25, 7, 5), (7, 5, 0)]), 12)
}
