//! Maps whose keys are numbers assigned by the kernel or a VM. They are used for every sample.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map with numbers as keys.
pub type ById<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;
/// A set of numbers.
pub type Ids<K> = HashSet<K, BuildHasherDefault<NumberHasher>>;

/// Distributes numbers over a table: multiplies by 2^64 divided by the golden ratio (Knuth, The Art of Computer Programming, 6.4), and
/// combines the halves of the product.
#[derive(Debug, Default, Clone, Copy)]
pub struct NumberHasher(u64);

impl NumberHasher {
    fn mix(&mut self, number: u64) {
        const GOLDEN: u128 = 0x9e37_79b9_7f4a_7c15;
        let product = u128::from(self.0 ^ number).wrapping_mul(GOLDEN);
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.mix(u64::from(*byte)));
    }

    fn write_u8(&mut self, number: u8) {
        self.mix(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.mix(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.mix(number);
    }
}
