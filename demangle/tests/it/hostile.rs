//! Tests that no name makes the demangler panic, run for too long or overflow the stack.

use varid_demangle::demangle;

/// The maximum length of the names that are generated here.
const MAX_LENGTH: usize = 8192;

/// A small pseudorandom generator, which gives the same numbers in every run.
struct Numbers(u64);

impl Numbers {
    /// The next number below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

fn bounded(name: &str) {
    if let Some(name) = demangle(name, MAX_LENGTH) {
        assert!(name.len() <= MAX_LENGTH);
    }
}

#[test]
fn random_names_are_bounded() {
    let mut numbers = Numbers(11);
    let parts = [
        "N", "E", "I", "J", "S_", "S0_", "T_", "T0_", "Dp", "F", "v", "i", "P", "R", "K", "1a",
        "2bc", "Z", "Ul", "E_", "cv", "C1", "D2", "L", "i5E", "X", "pl", "sZ", "fp_", "Dt", "M",
        "A3_", "St", "Ss", "Sa", "B1t", "St3map", "dl", "clI", "TV", "Thn8_", "fL", "qu", "sr",
        "il", "U1x", ".cold", "_", "0",
    ];
    for _ in 0..200_000 {
        let mut name = String::from("_Z");
        for _ in 0..numbers.below(40) {
            name.push_str(parts[numbers.below(parts.len())]);
        }
        bounded(&name);
    }
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    for unit in [
        "P", "N", "I", "F", "Z1aE", "Dp", "DtplS_", "1aIS_", "XplT_T_", "J",
    ] {
        for before in ["_Z1f", "_Z", "_Z1fI"] {
            bounded(&format!("{before}{}", unit.repeat(10_000)));
        }
    }
}

#[test]
fn arguments_that_double_are_bounded() {
    // Each argument doubles the one before, with empty packs that print nothing.
    let mut name = String::from("_Z1fIJEE");
    for _ in 0..60 {
        name.push_str("1aIDpT_S_S_E");
    }
    bounded(&name);
}
