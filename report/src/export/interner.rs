//! Which number has a thing in a table of its own?

use std::hash::Hash;

use crate::fast_hash::FastMap;

/// Things that are numbered in the order in which they are first asked for.
#[derive(Debug)]
pub struct Interner<K> {
    ids: FastMap<K, u32>,
    keys: Vec<K>,
}

impl<K: Copy + Eq + Hash> Interner<K> {
    pub fn new() -> Self {
        Self {
            ids: FastMap::default(),
            keys: Vec::new(),
        }
    }

    /// The number of a thing.
    pub fn id(&mut self, key: K) -> u32 {
        let next = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
        let id = *self.ids.entry(key).or_insert(next);
        if id == next {
            self.keys.push(key);
        }
        id
    }

    /// The number of a thing that has one.
    pub fn get(&self, key: K) -> Option<u32> {
        self.ids.get(&key).copied()
    }

    /// All things by number.
    pub fn keys(&self) -> &[K] {
        &self.keys
    }
}
