//! Fast hash maps and fingerprints for numeric keys.
//!
//! The hash function is foldhash with a random seed in each process. It takes a fraction of the time of the standard
//! library's SipHash, and a recording cannot be crafted so that its keys collide.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher, Hash, Hasher},
};

use foldhash::fast::{FoldHasher, RandomState};

/// A map with this hash function.
pub(crate) type FastMap<K, V> = HashMap<K, V, FastHash>;

/// A set with this hash function.
pub(crate) type FastSet<K> = HashSet<K, FastHash>;

/// The hash function of [`FastMap`] and [`FastSet`].
pub(crate) type FastHash = RandomState;

/// Makes hashes of 128 bits, which are used instead of the hashed values: the probability that any two of a thousand
/// million different values collide is below 10^-20.
#[derive(Debug, Default)]
pub(crate) struct Fingerprints {
    hashers: [FastHash; 2],
}

/// A hash of 128 bits.
pub(crate) type Fingerprint = [u64; 2];

impl Fingerprints {
    /// Returns the fingerprint of a value.
    pub fn of(&self, thing: impl Hash) -> Fingerprint {
        let mut both = BothHashers(self.hashers.each_ref().map(BuildHasher::build_hasher));
        thing.hash(&mut both);
        both.0.map(|hasher| hasher.finish())
    }
}

/// Two hashers that hash a value in one pass.
struct BothHashers<'h>([FoldHasher<'h>; 2]);

impl Hasher for BothHashers<'_> {
    fn finish(&self) -> u64 {
        let [first, _] = &self.0;
        first.finish()
    }

    fn write(&mut self, bytes: &[u8]) {
        let [first, second] = &mut self.0;
        first.write(bytes);
        second.write(bytes);
    }

    fn write_u128(&mut self, number: u128) {
        let [first, second] = &mut self.0;
        first.write_u128(number);
        second.write_u128(number);
    }
}
