//! How are numbers hashed?
//!
//! By foldhash, with a seed that is another one in each process: it takes a fraction of the time of the standard library's SipHash,
//! and a recording cannot be made so that its keys collide.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher, Hash},
};

use foldhash::fast::RandomState;

/// A map with such keys.
pub(crate) type FastMap<K, V> = HashMap<K, V, FastHash>;

/// A set of such keys.
pub(crate) type FastSet<K> = HashSet<K, FastHash>;

/// The hashes of a map's keys.
pub(crate) type FastHash = RandomState;

/// Makes hashes of 128 bits, which stand for what they are of: that any two of a thousand million different things have the same
/// one is less likely than one in 10^20.
#[derive(Debug, Default)]
pub(crate) struct Fingerprints {
    hashers: [FastHash; 2],
}

/// A hash of 128 bits.
pub(crate) type Fingerprint = [u64; 2];

impl Fingerprints {
    /// The fingerprint of a thing.
    pub fn of(&self, thing: impl Hash) -> Fingerprint {
        self.hashers
            .each_ref()
            .map(|hasher| hasher.hash_one(&thing))
    }
}
